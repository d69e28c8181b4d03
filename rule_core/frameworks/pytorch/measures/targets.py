"""Targets of a loss: how many count, and how they relate to input tokens and predictions."""

import math
from typing import Any, Final

import torch

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.measures.loss_graph import nodes_of, saved

COUNTED: Final = "targets/counted"
# Of these, how many are compared with tokens, and are the token one or two positions later.
COMPARED: Final = "targets/compared"
NEXT: Final = "targets/next_tokens"
AFTER_NEXT: Final = "targets/tokens_after_next"
FARTHEST: Final = 2  # positions
# Last tokens of padded rows that are the padding token, after a target that counts.
ENDS: Final = "targets/end_tokens"
IGNORED_ENDS: Final = "targets/ignored_end_tokens"
# How many losses compare each prediction with each target.
BROADCAST: Final = "targets/broadcast"
SHORTEST: Final = 4  # tokens of a row
_OF_CLASSES: Final = ("NllLossBackward0", "NllLoss2DBackward0")
_OF_NUMBERS: Final = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")


class TargetCounts:
    """Counts the targets of the losses of a step, on their device.

    The graph of a loss keeps its targets, whoever has shifted or masked them: the model, the loss
    or the script. The target at a position is compared with the tokens that the model was called
    with.

    Attributes
    ----------
    counts
        The counts of the step so far, by name.
    """

    def __init__(self) -> None:
        self.begin_step()

    def begin_step(self) -> None:
        """Forget the inputs and the counts of the last step."""
        self.counts: dict[str, Any] = {}
        self._tokens: Any = None
        self._mask: Any = None

    def note_inputs(self, arguments: Any) -> None:
        """Note the tokens and the attention mask of the step's first call of a model."""
        if self._tokens is not None:
            return
        for key, tensor in modules.tensors_in(arguments):
            if key == "attention_mask":
                self._mask = tensor
            elif self._tokens is None:
                is_sequence = modules.input_collection(tensor, key or 0) == "input_sequence"
                self._tokens = tensor if is_sequence else None

    def count(self, loss: Any) -> None:
        """Count the targets in the graph of a loss."""
        for node in nodes_of(loss, *_OF_CLASSES, *_OF_NUMBERS):
            targets = saved(node, "target")
            if targets is None:
                continue
            if type(node).__name__ in _OF_NUMBERS:
                self._add(BROADCAST, torch.tensor(_is_crossed(saved(node, "self"), targets)))
                continue
            counts = targets != saved(node, "ignore_index")
            self._add(COUNTED, counts)
            if self._tokens is not None and self._tokens.device == targets.device:
                rows, length = self._tokens.shape
                sizes = [rows * (length - offset) for offset in range(FARTHEST + 1)]
                if rows and length >= SHORTEST and targets.numel() in sizes:
                    self._compare(targets.reshape(rows, -1), counts.reshape(rows, -1))

    def _add(self, name: str, flags: Any) -> None:
        self.counts[name] = self.counts.get(name, 0) + flags.sum()

    def _compare(self, targets: Any, counts: Any) -> None:
        """Compare targets with tokens, both of shape ``(rows, positions)``."""
        tokens, mask = self._tokens, self._mask
        width = min(targets.shape[1], tokens.shape[1] - FARTHEST)
        compared = counts[:, :width]
        self._add(COMPARED, compared)
        for name, offset in ((NEXT, 1), (AFTER_NEXT, FARTHEST)):
            later = tokens[:, offset : offset + width]
            self._add(name, compared & (targets[:, :width] == later))
        if mask is not None and (mask.shape, mask.device) == (tokens.shape, tokens.device):
            self._count_ends(tokens, counts, mask != 0)

    def _count_ends(self, tokens: Any, counts: Any, attends: Any) -> None:
        last = (attends * torch.arange(tokens.shape[1], device=tokens.device)).amax(1, keepdim=True)
        padding = tokens.gather(1, attends.int().argmin(1, keepdim=True))
        # The target at a position is the token after it.
        before, end = (
            counts.gather(1, (last - offset).clamp(0, counts.shape[1] - 1)) for offset in (2, 1)
        )
        is_end = before & ~attends.all(1, keepdim=True) & (tokens.gather(1, last) == padding)
        self._add(ENDS, is_end)
        self._add(IGNORED_ENDS, is_end & ~end)


def _is_crossed(predictions: Any, targets: Any) -> bool:
    """Return whether as many predictions as targets are repeated along different dimensions.

    >>> _is_crossed(torch.zeros(3, 1).expand(3, 3), torch.zeros(3).expand(3, 3))
    True
    """
    if predictions is None:
        return False
    repeated, crossed = _repeated(predictions), _repeated(targets)
    sizes = predictions.shape
    is_crossed = repeated.isdisjoint(crossed) and bool(repeated and crossed)
    return is_crossed and _product(sizes, repeated) == _product(sizes, crossed)


def _repeated(tensor: Any) -> set[int]:
    """Return the dimensions along which the same elements are repeated."""
    strides = enumerate(zip(tensor.shape, tensor.stride(), strict=True))
    return {dimension for dimension, (size, stride) in strides if size > 1 and stride == 0}


def _product(sizes: Any, dimensions: set[int]) -> int:
    return math.prod(sizes[dimension] for dimension in dimensions)
