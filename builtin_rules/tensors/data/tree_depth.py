"""TreeDepth: a tree of an XGBoost model is too deep."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, positive
from builtin_rules.statistics.tensor_selection import (
    LITERAL,
    SavedTensor,
    any_met,
    numbers,
    saved_tensors,
    view,
)
from smdebug.rules.extensions import Quantity, Severity, TensorInput

LEVELS: Final = "depth"
_DEPTH: Final = 4.0
USUAL_DEPTH: Final = 6  # XGBoost's own max_depth
_TREES: Final = "trees/"
TREES: Final = TensorInput("trees", patterns=(f"^{_TREES}",))
ESTIMATED: Final = "Estimated from the largest node id; exact if ids are heap positions."
# Placeholders for a missing child in the text columns that hooks save.
_NO_CHILD: Final = frozenset({"", "nan", "None", "<NA>"})

Columns = Mapping[str, SavedTensor]


class Tree(NamedTuple):
    """A tree: its name, depth and number of saved nodes."""

    name: str
    depth: int
    nodes: int


class TreeDepth(DeclaredRule):
    """Met when the deepest tree of a round has more than `depth` levels below its root.

    The depth is counted along the links `trees/Yes` and `trees/No` from each node that no other
    node links to, so it is correct for unbalanced trees, categorical splits and pruned nodes. A
    linked child counts even if its own row is missing. Without consistent links, and always with
    `literal`, the depth is ``floor(log2(largest node id + 1))`` of `trees/Node`, which assumes full
    trees.

    Unless `depth` is given or `literal` is set, trees of up to 6 levels, XGBoost's own default, are
    only noted. Each step and each worker is judged separately. A depth equal to `depth` does not
    meet the condition. Node ids that are negative or not numbers are skipped.
    """

    READS = "the collection trees: ID (or Tree and Node), Yes and No; without them Node alone."
    SAVED = ("trees",)
    depth = positive("Trees deeper than this are reported.", _DEPTH, "levels below the root")
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(LEVELS, "depth of the deepest tree (levels)", worse="above"),)

    required_inputs = (TREES,)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the trees of global step `step`."""
        names = TREES.names(self.base_trial, step)
        workers: dict[str, dict[str, SavedTensor]] = {}
        for saved in saved_tensors(self.base_trial, step, names):
            workers.setdefault(saved.worker, {})[saved.name.removeprefix(_TREES)] = saved
        answers = [self._judge(columns, step) for columns in workers.values()]
        reason = "no nodes of a tree" if names else "no trees at this step"
        return any_met(self, answers, reason)

    def _judge(self, columns: Columns, step: int) -> bool | None:
        """Return whether the trees of a worker are too deep, or None if unknown."""
        trees = [] if self.literal else _trees(columns, step)
        largest = None if trees else _largest_id(columns, step)
        if trees:
            deepest = max(trees, key=lambda tree: tree.depth)
            levels, name = deepest.depth, "Yes"
            note = f"Tree {deepest.name}; saved nodes: {deepest.nodes}."
        elif largest is not None:
            levels, name, note = (largest + 1).bit_length() - 1, "Node", ESTIMATED
        else:
            return None
        is_usual = levels <= USUAL_DEPTH and not self.binds("depth")
        key, limit, severity = columns[name].key, self.depth, Severity.NOTE if is_usual else None
        return self.record(
            key, step, LEVELS, levels, limit, met=levels > limit, note=note, severity=severity
        )


def _largest_id(columns: Columns, step: int) -> int | None:
    """Return the largest node id, or None if there is none."""
    ids = numbers(columns["Node"], step) if "Node" in columns else None
    if ids is None:
        return None
    with np.errstate(invalid="ignore"):
        valid = ids[np.isfinite(ids) & (ids >= 0)]
    return int(valid.max()) if valid.size else None


def _trees(columns: Columns, step: int) -> list[Tree]:
    """Return the trees that the links form; none if the columns differ in length."""
    ids, yes, no = _ids(columns, step), _texts(columns, "Yes", step), _texts(columns, "No", step)
    if not ids or not len(ids) == len(yes) == len(no):
        return []
    children = {
        node: [child for child in pair if child not in _NO_CHILD]
        for node, pair in zip(ids, zip(yes, no, strict=True), strict=True)
    }
    below = {child for pair in children.values() for child in pair}
    if below and below.isdisjoint(children):
        return []  # the links use other names
    return [_tree(root, children) for root in children if root not in below]


def _tree(root: str, children: Mapping[str, Iterable[str]]) -> Tree:
    """Follow the links from a root, level by level, visiting each node once."""
    depth, level, visited = 0, [root], {root}
    while True:
        below = dict.fromkeys(child for node in level for child in children.get(node, ()))
        level = [child for child in below if child not in visited]
        if not level:
            return Tree(root.rpartition("-")[0] or root, depth, len(visited & children.keys()))
        visited.update(level)
        depth += 1


def _ids(columns: Columns, step: int) -> list[str]:
    """Return the name ``<tree>-<node>`` of each node."""
    ids = _texts(columns, "ID", step)
    if ids:
        return ids
    trees, nodes = _integers(columns, "Tree", step), _integers(columns, "Node", step)
    return [f"{tree}-{node}" for tree, node in zip(trees, nodes, strict=False)]


def _integers(columns: Columns, name: str, step: int) -> list[int]:
    """Return a column of integers; empty if it was not saved as integers."""
    array = numbers(columns[name], step) if name in columns else None
    return [] if array is None or array.dtype.kind not in "iu" else array.reshape(-1).tolist()


def _texts(columns: Columns, name: str, step: int) -> list[str]:
    """Return a column as text; empty if it was not saved."""
    array = view(columns[name], step) if name in columns else None
    return [] if array is None else [str(item) for item in array.reshape(-1).tolist()]
