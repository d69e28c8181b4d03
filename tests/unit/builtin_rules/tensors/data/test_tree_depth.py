"""TreeDepth: which trees are too deep, by their links and by their largest node id."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save
from trees import NOTHING, Columns, chain, full, table

from builtin_rules import TreeDepth
from builtin_rules.tensors.data.tree_depth import ESTIMATED
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NONE = "no trees at this step"
NO_NODES = "no nodes of a tree"


def judged(root: Path, *rounds: Columns | None, **params: Any) -> Judged:
    """Judge the trees of steps 0, 1, 2...; None leaves a step without them."""
    steps = {at: {"train-rmse": np.ones(1)} | (one or {}) for at, one in enumerate(rounds)}
    return judge(TreeDepth, save(root, steps), **params)


def ids(*nodes: float, dtype: Any = np.int64) -> Columns:
    return {"trees/Node": np.array(nodes, dtype)}


def without(columns: Columns, *names: str) -> Columns:
    return {name: one for name, one in columns.items() if name.removeprefix("trees/") not in names}


@pytest.mark.parametrize(
    ("nodes", "depth", "met"),
    [
        pytest.param(range(31), 4, [], id="complete-tree-of-that-depth"),
        pytest.param([*range(63), 63], 5, [0], id="one-node-more"),
        pytest.param([63], 5, [0], id="the-largest-decides"),
        pytest.param([0], 0.5, [], id="root-alone"),
        pytest.param([0, 1, 2], 0.5, [0], id="two-leaves"),
        pytest.param([0, 1, 2], "1.0", [], id="equal-is-not-deeper"),
        pytest.param([2**53 + 2], 52.5, [0], id="beyond-floats"),
        pytest.param([-5, 3], 1, [0], id="negative-id"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_node_ids_alone_are_taken_for_heap_positions(
    nodes: Any, depth: Any, met: list[int], literal: bool, tmp_path: Path
) -> None:
    assert judged(tmp_path, ids(*nodes), depth=depth, literal=literal).met == met


@pytest.mark.parametrize(
    ("tree", "deep", "literal"),
    [
        pytest.param(full(4), False, False, id="complete-4"),
        pytest.param(full(5), False, True, id="complete-5"),
        pytest.param(full(6), False, True, id="depth-of-xgboost"),
        pytest.param(full(7), True, True, id="complete-7"),
        pytest.param(chain(4), False, False, id="chain-4"),
        pytest.param(chain(6), False, False, id="chain-6"),
        pytest.param(chain(7), True, False, id="chain-7"),
        pytest.param({0: (1, 2), 1: (), 2: (61, 62), 61: (), 62: ()}, False, True, id="pruned"),
        pytest.param({0: ()}, False, False, id="stump"),
        pytest.param(chain(3000), True, True, id="very-deep"),
    ],
)
def test_links_tell_the_depth_which_ids_estimate(
    tree: Any, deep: bool, literal: bool, tmp_path: Path
) -> None:
    root = save(tmp_path, {0: table(tree)})
    found = [bool(judge(TreeDepth, root, literal=one).met) for one in (False, True)]
    assert found == [deep, literal]


def test_each_round_is_judged_by_itself(tmp_path: Path) -> None:
    found = judged(tmp_path, table(chain(7)), None, table(chain(6)), table(chain(8)))
    assert (found.met, found.skipped) == ([0, 3], {1: NONE})


def test_the_deepest_of_several_trees_is_named(tmp_path: Path) -> None:
    found = judged(tmp_path, table(full(2), chain(7), full(5)))
    note = "Tree 1; saved nodes: 15."
    assert found.findings == [Finding(0, "trees/Yes", "worker_0", 7, 4.0, note, Severity.WARNING)]


def test_evidence_says_that_a_depth_is_estimated(tmp_path: Path) -> None:
    found = judged(tmp_path, ids(31))
    assert found.findings == [
        Finding(0, "trees/Node", "worker_0", 5, 4.0, ESTIMATED, Severity.NOTE)
    ]


def test_each_worker_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: table(full(4))}, num_workers=2)
    save(tmp_path, {0: table(full(5))}, num_workers=2, worker="worker_1")
    findings = judge(TreeDepth, tmp_path).findings
    assert [(one.worker, one.measured) for one in findings] == [("worker_1", 5)]


# -- tables that are not what the hook saves -----------------------------------------------------


def changed(columns: Columns, **values: Any) -> Columns:
    return columns | {f"trees/{name}": np.array(one) for name, one in values.items()}


DEEP = table(chain(5))
RING = changed(table({0: (1, 2), 1: (), 2: ()}), Yes=["0-1", "0-0", NOTHING], No=["0-2"] * 3)


@pytest.mark.parametrize(
    ("columns", "depth", "measured"),
    [
        pytest.param(without(DEEP, "ID"), 4, 5, id="tree-and-node-for-id"),
        pytest.param(without(DEEP, "ID", "Tree"), 2, 3, id="neither-id-nor-tree"),
        pytest.param(without(DEEP, "Yes"), 2, 3, id="without-yes"),
        pytest.param(without(DEEP, "No"), 2, 3, id="without-no"),
        pytest.param(changed(DEEP, Yes=["0-1"]), 2, 3, id="lengths-differ"),
        pytest.param(changed(DEEP, Yes=[1.0] * 11, No=[2.0] * 11), 2, 3, id="other-names"),
        pytest.param(changed(without(DEEP, "ID"), Tree=[0.0] * 11), 2, 3, id="trees-are-floats"),
        pytest.param(table({0: (1, 2), 2: (5, 6)}), 1, 2, id="rows-of-children-missing"),
        pytest.param(RING, 0.5, 1, id="a-ring-that-has-no-root"),
        pytest.param(
            changed(table(full(1)), Yes=["0-1", "0-2", "0-1"], No=[NOTHING] * 3),
            1,
            2,
            id="a-ring-below-a-root",
        ),
    ],
)
def test_what_there_is_is_used(
    columns: Columns, depth: float, measured: int, tmp_path: Path
) -> None:
    found = judged(tmp_path, columns, depth=depth)
    assert [one.measured for one in found.findings] == [measured]


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({}, NONE),
        ({"trees/Gain": np.ones(3)}, NO_NODES),
        (ids(), NO_NODES),
        (ids(-1, -2), NO_NODES),
        (ids(np.nan, np.inf, dtype=np.float64), NO_NODES),
        ({"trees/Node": np.array(["31"])}, NO_NODES),
        ({"trees/Node": np.array([31j])}, NO_NODES),
        ({"my_trees/Node": np.array([31])}, NONE),
    ],
)
def test_without_nodes_nothing_is_judged(
    columns: Columns, reason: str, literal: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, columns, literal=literal)
    assert (found.met, found.skipped) == ([], {0: reason})


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, ml_dtypes.bfloat16, np.uint64])
def test_ids_of_all_types_are_read(dtype: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, ids(200, dtype=dtype), ids(0, dtype=dtype)).met == [0]


def test_nan_among_ids_is_passed_over(tmp_path: Path) -> None:
    assert judged(tmp_path, ids(np.nan, 200, dtype=np.float64)).met == [0]


def test_a_root_alone_has_no_depth(tmp_path: Path) -> None:
    found = judged(tmp_path, {"trees/Node": np.array(0)}, depth=0.5)
    assert (found.met, found.skipped) == ([], {})


def test_reductions_alone_are_not_judged(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"trees/Node": {("max", False): 31.0}}})
    assert judge(TreeDepth, tmp_path).skipped == {0: NO_NODES}


def test_what_later_steps_hold_makes_no_difference(tmp_path: Path) -> None:
    rounds = [table(chain(depth)) for depth in (4, 6, 3, 5)]
    whole = judged(tmp_path / "whole", *rounds).met
    for last in range(1, 5):
        part = judged(tmp_path / str(last), *rounds[:last]).met
        assert part == [one for one in whole if one < last]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"depth": "0"}, r"'depth' must be a finite number > 0, got '0'\."),
        ({"depth": "inf"}, r"'depth' must be a finite number > 0, got 'inf'\."),
        ({"literal": "?"}, r"'literal' must be true, false, 1, 0, yes or no, got '\?'\."),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, ids(0), **params)


# -- models of XGBoost ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_depth", "kwargs", "met"),
    [(4, {}, []), (100, {}, [0, 1, 2]), (100, {"enable_categorical": True}, [0, 1, 2])],
    ids=["4", "100", "categorical"],
)
def test_trees_of_models(
    max_depth: int, kwargs: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed.")
    from smdebug.xgboost import Hook, SaveConfig

    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 4))
    if kwargs:
        points[:, 0] = rng.integers(0, 12, 400)
        kwargs = kwargs | {"feature_types": ["c", "q", "q", "q"]}
    labels = (points[:, 1] * points[:, 2] + points[:, 0] % 3 > 0.5).astype(int)
    config = {"save_config": SaveConfig(save_interval=1), "include_collections": ["trees"]}
    with Hook(tmp_path / "trial", **config) as hook:
        xgboost.train(
            {"max_depth": max_depth, "min_child_weight": 0, "nthread": 1, "max_cat_to_onehot": 1},
            xgboost.DMatrix(points, labels, **kwargs),
            3,
            callbacks=[hook],
        )
    assert judge(TreeDepth, tmp_path / "trial").met == met
