"""TreeDepth: some tree of an XGBoost model is deeper than it should be."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.selection import LITERAL, Saved, numbers, saved, view
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, set_parameters

LEVELS: Final = "depth"
_DEPTH: Final = 4.0
_TREES: Final = "trees/"
ESTIMATED: Final = "Estimated from the largest node id: it is right where ids are heap positions."
# What stands where a node has no child, in the columns of text that hooks save.
_NOTHING: Final = frozenset({"", "nan", "None", "<NA>"})

Columns = Mapping[str, Saved]


class Tree(NamedTuple):
    """A tree: its name, how deep it is, and how many of its nodes were saved."""

    name: str
    depth: int
    nodes: int


class TreeDepth(Rule):
    """Met when the deepest tree of a round has more than `depth` levels below its root.

    The depth is counted along the links `trees/Yes` and `trees/No` from each node that no other
    names, so it is right for trees that grew unevenly, for categorical splits and where nodes were
    pruned. A child that a link names counts although its own row is missing. Without links that
    make sense, and always with `literal`, it is ``floor(log2(largest node id + 1))`` of
    `trees/Node`, which takes every tree for a full one.

    Each step is judged by itself, and so is each worker. A depth that equals `depth` does not meet
    the condition. Node ids that are negative or no numbers are passed over.
    """

    READS = "the collection trees: ID (or Tree and Node), Yes and No; without them Node alone."
    PARAMS = (
        FloatParam(
            "depth",
            "A tree that is deeper than this is reported.",
            default=_DEPTH,
            minimum=0.0,
            minimum_open=True,
            unit="levels below the root",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(LEVELS, "depth of the deepest tree (levels)", worse="above"),)
    PAGE = Page(
        why="""
        Each level can double the leaves of a tree. Deep trees fit single rows of the training data:
        they cost memory and time, and the model judges new data worse.
        """,
        save="""
        The collection `trees` of the XGBoost hook:

            Hook(
                out_dir,
                include_collections=["trees"],
                save_config=SaveConfig(save_interval=10),
            )
        """,
        missing="""
        A round without `trees/...` is skipped. NaN among the node ids is passed over.
        """,
        remedy="""
        - Lower `max_depth`, or raise `min_child_weight` or `gamma`.
        - With `grow_policy=lossguide` bound `max_leaves` and give `max_depth`, which is 0 there.
        - See whether the validation loss rises meanwhile (`Overfit`, `Overtraining`).
        """,
        limits="""
        The documented default of 4 is less than the 6 that XGBoost allows by default, so a healthy
        model with default parameters fires: give `depth` the model's `max_depth`. Only the trees of
        the rounds that are saved are seen.
        """,
    )
    depth: float
    literal: bool

    def __init__(self, base_trial: Any, depth: Any = _DEPTH, literal: Any = False) -> None:
        super().__init__(base_trial)
        set_parameters(self, depth=depth, literal=literal)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the trees of global step `step`."""
        names = self.base_trial.tensor_names(step=step, regex=f"^{_TREES}")
        workers: dict[str, dict[str, Saved]] = {}
        for one in saved(self.base_trial, step, names):
            workers.setdefault(one.worker, {})[one.name.removeprefix(_TREES)] = one
        answers = [self._judge(columns, step) for columns in workers.values()]
        if all(answer is None for answer in answers):
            return self.not_judged("no trees at this step" if not names else "no nodes of a tree")
        return any(answers)

    def _judge(self, columns: Columns, step: int) -> bool | None:
        """Say whether a worker's trees are too deep, or None if that cannot be told."""
        trees = [] if self.literal else _trees(columns, step)
        largest = None if trees else _largest_id(columns, step)
        if trees:
            deepest = max(trees, key=lambda tree: tree.depth)
            levels, name = deepest.depth, "Yes"
            note = f"Tree {deepest.name}, of which {deepest.nodes} nodes were saved."
        elif largest is not None:
            levels, name, note = (largest + 1).bit_length() - 1, "Node", ESTIMATED
        else:
            return None
        met = levels > self.depth
        one = columns[name]
        return self.measured(
            step, LEVELS, levels, self.depth, met=met, tensor=one.name, worker=one.worker, note=note
        )


def _largest_id(columns: Columns, step: int) -> int | None:
    """Return the largest node id, or None if there is none."""
    ids = numbers(columns["Node"], step) if "Node" in columns else None
    if ids is None:
        return None
    with np.errstate(invalid="ignore"):
        known = ids[np.isfinite(ids) & (ids >= 0)]
    return int(known.max()) if known.size else None


def _trees(columns: Columns, step: int) -> list[Tree]:
    """Return the trees that the links make; none without links of one length."""
    ids, yes, no = _ids(columns, step), _texts(columns, "Yes", step), _texts(columns, "No", step)
    if not ids or not len(ids) == len(yes) == len(no):
        return []
    children = {
        node: [child for child in pair if child not in _NOTHING]
        for node, pair in zip(ids, zip(yes, no, strict=True), strict=True)
    }
    below = {child for pair in children.values() for child in pair}
    if below and below.isdisjoint(children):
        return []  # the links speak of other names
    return [_tree(root, children) for root in children if root not in below]


def _tree(root: str, children: Mapping[str, Iterable[str]]) -> Tree:
    """Follow the links from a root, level by level; a node that was seen is not seen again."""
    depth, level, seen = 0, [root], {root}
    while True:
        below = dict.fromkeys(child for node in level for child in children.get(node, ()))
        level = [child for child in below if child not in seen]
        if not level:
            return Tree(root.rpartition("-")[0] or root, depth, len(seen & children.keys()))
        seen.update(level)
        depth += 1


def _ids(columns: Columns, step: int) -> list[str]:
    """Return the name ``<tree>-<node>`` of each node."""
    ids = _texts(columns, "ID", step)
    if ids:
        return ids
    trees, nodes = _integers(columns, "Tree", step), _integers(columns, "Node", step)
    return [f"{tree}-{node}" for tree, node in zip(trees, nodes, strict=False)]


def _integers(columns: Columns, name: str, step: int) -> list[int]:
    """Return a column of integers; nothing if it was not saved, or as something else."""
    array = numbers(columns[name], step) if name in columns else None
    return [] if array is None or array.dtype.kind not in "iu" else array.reshape(-1).tolist()


def _texts(columns: Columns, name: str, step: int) -> list[str]:
    """Return a column as text; nothing if it was not saved."""
    array = view(columns[name], step) if name in columns else None
    return [] if array is None else [str(one) for one in array.reshape(-1).tolist()]
