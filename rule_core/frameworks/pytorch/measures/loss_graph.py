"""The graph of a loss: which classes it compares, and which embeddings it normalises."""

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import torch

MOST_NODES: Final = 128  # next to the loss
MOST_CLASSES: Final = 64
MOST_ROWS: Final = 4096
LEAST: Final = 8  # rows and columns of embeddings
RANK: Final = 2
HALF: Final = 0.5
_CLASSES: Final = "NllLossBackward0"
_BINARY: Final = "BinaryCrossEntropyWithLogitsBackward0"
_NORM: Final = "LinalgVectorNormBackward0"
_DIVISION: Final = "DivBackward0"
_BY_ROWS: Final = ((1,), ((1 << 64) - 1,))  # dim=1 and dim=-1, as the nodes keep them


class Classes(NamedTuple):
    """Labels and predicted classes of a batch, both int16 of shape ``(rows,)``."""

    labels: Any
    predictions: Any


def compared_classes(loss: Any) -> Classes | None:
    """Return the classes that a cross entropy in the graph of a loss compares, or None.

    There are none of more than `MOST_CLASSES` classes or `MOST_ROWS` rows, and none where a batch
    is compared with itself, as in contrastive trainings, whose labels are the row numbers.
    """
    for node in nodes_of(loss, _CLASSES, _BINARY):
        scores, labels = saved(node, "self"), saved(node, "target")
        if scores is None or labels is None or not 0 < labels.numel() <= MOST_ROWS:
            continue
        if type(node).__name__ == _BINARY:
            if scores.ndim and scores.numel() == len(scores) == labels.numel():
                return Classes(
                    (labels > HALF).short().reshape(-1), (scores > 0).short().reshape(-1)
                )
            continue
        if scores.ndim != RANK or scores.shape[1] > MOST_CLASSES:
            continue
        if torch.equal(labels, torch.arange(len(labels), device=labels.device)):
            continue
        is_kept = labels != saved(node, "ignore_index")
        kept = labels[is_kept]
        if kept.numel():
            return Classes(kept.short(), scores.argmax(1)[is_kept].short())
    return None


def spreads(loss: Any) -> Iterator[Any]:
    """Yield the spread of each batch of embeddings whose rows the graph of a loss normalises.

    It is the standard deviation over the normalised rows, averaged over the columns, times the
    square root of their number: 1 for rows spread evenly over a sphere, 0 for equal rows. Norms by
    which nothing is divided, such as those of a gradient penalty, tell of no embeddings.
    """
    nodes = [*nodes_of(loss, _NORM, _DIVISION)]
    divided = {node.next_functions[0][0] for node in nodes if type(node).__name__ == _DIVISION}
    for node in nodes:
        if type(node).__name__ != _NORM or node.next_functions[0][0] not in divided:
            continue
        rows = saved(node, "self")
        if rows is None or rows.grad_fn is None or rows.ndim != RANK or min(rows.shape) < LEAST:
            continue  # parameters that are normalised, and fixed targets, are no embeddings
        if saved(node, "dim") not in _BY_ROWS:
            continue
        unit = torch.nn.functional.normalize(rows.detach()[:MOST_ROWS].float(), dim=1)
        yield unit.std(0, correction=0).mean() * rows.shape[1] ** 0.5


def nodes_of(loss: Any, *kinds: str) -> Iterator[Any]:
    """Yield the nodes of some kinds among those of the graph that are nearest to a loss."""
    waiting, visited = deque([loss.grad_fn]), set[Any]()
    while waiting and len(visited) < MOST_NODES:
        node = waiting.popleft()
        if node is None or node in visited:
            continue
        visited.add(node)
        if type(node).__name__ in kinds:
            yield node
        waiting.extend(source for source, _ in node.next_functions)


def saved(node: Any, name: str) -> Any:
    """Return what a node keeps for its backward, or None if it is no longer there."""
    with contextlib.suppress(RuntimeError):  # freed, or changed in place since
        return getattr(node, f"_saved_{name}")
    return None
