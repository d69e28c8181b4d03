"""ReplicaDivergence: which parameters of workers differ, and which are shards."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import ReplicaDivergence
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

NAME = "fc.weight"
SAME = np.linspace(-1.0, 1.0, 100)
NAN = SAME * np.nan
MOVED = np.cos(np.arange(100.0))
NOTHING = "no replicas of a parameter"


def judged(root: Path, *workers: list[Any], name: str = NAME, **params: Any) -> Judged:
    """Judge one parameter of several workers, saved at steps 0, 1, 2..."""
    for number, values in enumerate(workers):
        steps = {
            step: {"loss": np.ones(1)} | ({} if value is None else {name: np.asarray(value)})
            for step, value in enumerate(values)
        }
        save(root, steps, worker=f"worker_{number}", num_workers=len(workers))
    return judge(ReplicaDivergence, root, **params)


@pytest.mark.parametrize(
    ("others", "met"),
    [
        pytest.param([SAME, SAME, SAME], [], id="equal"),
        pytest.param([SAME, SAME * 1.00002, SAME], [1], id="drifts"),
        pytest.param([SAME, SAME * 1.000009, SAME], [], id="within"),
        pytest.param([SAME, SAME * 3, SAME * 9], [1, 2], id="far-away"),
        pytest.param([SAME, NAN, NAN], [1, 2], id="nan-on-one"),
        pytest.param([NAN, SAME, SAME], [0], id="nan-at-first"),
        pytest.param([SAME[:50], SAME[:50], SAME[:50]], [], id="other-shapes-are-shards"),
        pytest.param([SAME[::-1], SAME[::-1], SAME], [], id="shards-of-one-shape"),
        pytest.param([SAME[::-1], SAME[::-1] + MOVED, SAME], [], id="shards-that-move"),
        pytest.param([None, SAME, SAME * 1.1], [2], id="missing-at-a-step"),
    ],
)
def test_workers_are_compared_with_the_first(
    others: list[Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, [SAME, SAME, SAME], others).met == met


@pytest.mark.parametrize(
    ("updates", "met"),
    [
        pytest.param([MOVED, MOVED], [1, 2], id="equal"),
        pytest.param([MOVED * 1.009, MOVED], [1, 2], id="nearly-equal"),
        pytest.param([MOVED * 1.02, MOVED], [], id="different"),
        pytest.param([0 * MOVED, MOVED], [2], id="none-at-first"),
        pytest.param([NAN, MOVED], [], id="nan"),
    ],
)
def test_equal_updates_tell_replicas_from_shards(
    updates: list[Any], met: list[int], tmp_path: Path
) -> None:
    firsts, others = [SAME], [SAME[::-1]]
    for update in updates:
        firsts.append(firsts[-1] + (update if not update.any() else MOVED))
        others.append(others[-1] + update)
    assert judged(tmp_path, firsts, others).met == met


def test_shards_are_named_once(tmp_path: Path) -> None:
    found = judged(tmp_path, [SAME, SAME], [SAME[::-1], SAME[::-1]])
    (note,) = found.findings
    assert (note.tensor, note.worker, note.severity) == (NAME, "worker_1", Severity.NOTE)
    assert note.note == "Differs from 'worker_0' from the start: sharded, or never a replica."
    assert found.skipped == {1: NOTHING}


ONES, HALVES = np.ones(100), np.linspace(0.9, 1.1, 100)
MATRIX, OTHER = "fc.weight", "norm.weight"


def compared(
    root: Path, rows: list[tuple[dict[str, Any], dict[str, Any]]]
) -> list[tuple[int, str | None, Severity | None]]:
    """Judge the parameters of two workers; return step, tensor and severity of findings."""
    for number in (0, 1):
        steps = {step: row[number] for step, row in enumerate(rows)}
        save(root, steps, worker=f"worker_{number}", num_workers=2)
    findings = judge(ReplicaDivergence, root).findings
    return [(one.step, one.tensor, one.severity) for one in findings]


NOTE, ERROR = Severity.NOTE, Severity.ERROR


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param(
            [
                ({MATRIX: SAME, OTHER: ONES}, {MATRIX: SAME[::-1], OTHER: ONES}),
                ({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME[::-1], OTHER: HALVES[::-1]}),
            ],
            [(0, MATRIX, NOTE), (1, OTHER, NOTE)],
            id="norms-of-shards-begin-equal",
        ),
        pytest.param(
            [({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME[::-1], OTHER: HALVES * 1.001})],
            [(0, MATRIX, NOTE), (0, OTHER, NOTE)],
            id="norms-of-shards-are-close-later",
        ),
        pytest.param(
            [
                ({MATRIX: SAME, OTHER: ONES}, {MATRIX: SAME[:9], OTHER: ONES}),
                ({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME[:9], OTHER: HALVES[::-1]}),
            ],
            [(1, OTHER, NOTE)],
            id="shards-of-other-shapes",
        ),
        pytest.param(
            [
                ({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME[::-1], OTHER: HALVES}),
                ({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME[::-1], OTHER: HALVES * 1.001}),
            ],
            [(0, MATRIX, NOTE), (1, OTHER, ERROR)],
            id="a-replica-beside-shards",
        ),
        pytest.param(
            [
                ({MATRIX: SAME, OTHER: ONES}, {MATRIX: SAME, OTHER: ONES}),
                ({MATRIX: SAME, OTHER: HALVES}, {MATRIX: SAME, OTHER: HALVES[::-1]}),
            ],
            [(1, OTHER, ERROR)],
            id="no-shards-at-all",
        ),
        pytest.param(
            [
                (
                    {MATRIX: SAME, f"gradient/{MATRIX}": HALVES},
                    {MATRIX: SAME[::-1], f"gradient/{MATRIX}": HALVES * 1.0001},
                )
            ],
            [(0, MATRIX, ERROR)],
            id="equal-gradients-of-different-replicas",
        ),
        pytest.param(
            [
                (
                    {MATRIX: SAME, f"gradient/{MATRIX}": 0 * SAME},
                    {MATRIX: SAME[::-1], f"gradient/{MATRIX}": 0 * SAME},
                )
            ],
            [(0, MATRIX, NOTE)],
            id="gradients-of-zero-tell-nothing",
        ),
        pytest.param(
            [
                (
                    {OTHER: HALVES, f"parameters/is_sharded/{OTHER}": np.ones(1)},
                    {OTHER: HALVES * 1.1},
                )
            ],
            [],
            id="marked-by-the-hook",
        ),
    ],
)
def test_shards_are_told_from_replicas(
    rows: list[Any], found: list[tuple[int, str, Severity]], tmp_path: Path
) -> None:
    assert compared(tmp_path, rows) == found


def test_evidence_names_the_worker(tmp_path: Path) -> None:
    found = judged(tmp_path, [SAME] * 2, [SAME] * 2, [SAME, SAME * 1.01])
    (finding,) = found.findings
    assert (finding.step, finding.worker, finding.limit) == (1, "worker_2", 1e-5)
    assert finding.measured == pytest.approx(0.01)
    assert (finding.note, finding.severity) == ("Compared with 'worker_0'.", Severity.ERROR)


def test_nan_on_all_workers_is_left_to_exploding_tensor(tmp_path: Path) -> None:
    assert judged(tmp_path, [SAME, NAN], [SAME, NAN]).met == []


@pytest.mark.parametrize(
    "tensors", [{"bn.weight_running_mean": 1.0}, {"loss": 1.0}, {"gradient/fc.weight": 1.0}]
)
def test_what_is_no_parameter_is_not_compared(tensors: dict[str, float], tmp_path: Path) -> None:
    for worker in (0, 1):
        values = {name: np.full(4, value + worker * 1e-3) for name, value in tensors.items()}
        save(tmp_path, {0: values}, worker=f"worker_{worker}", num_workers=2)
    assert judge(ReplicaDivergence, tmp_path).skipped == {0: NOTHING}


def test_one_worker_has_no_replicas(tmp_path: Path) -> None:
    assert judged(tmp_path, [SAME, SAME]).skipped == {0: NOTHING, 1: NOTHING}


@pytest.mark.parametrize(
    ("key", "value", "met"),
    [
        (("l2", False), 1.0001, [1]),
        (("max", True), 1.0001, [1]),
        (("l2", False), np.nan, [1]),
        (("l2", False), 1.000001, []),
        (("sum", False), 1.0001, []),
    ],
)
def test_norms_are_enough(
    key: tuple[str, bool], value: float, met: list[int], tmp_path: Path
) -> None:
    for worker, last in (("worker_0", 1.0), ("worker_1", value)):
        reductions = {0: {NAME: {key: 1.0}}, 1: {NAME: {key: last}}}
        save(tmp_path, {}, reductions=reductions, worker=worker, num_workers=2)
    assert judge(ReplicaDivergence, tmp_path).met == met


def test_evaluation_is_skipped(tmp_path: Path) -> None:
    for worker, value in (("worker_0", SAME), ("worker_1", SAME * 1.01)):
        steps = {0: {NAME: value}}
        save(tmp_path, steps, modes={0: ModeKeys.EVAL}, worker=worker, num_workers=2)
    assert judge(ReplicaDivergence, tmp_path).met == []


def test_the_threshold_is_a_parameter(tmp_path: Path) -> None:
    workers = [SAME, SAME], [SAME, SAME * 1.01]
    assert judged(tmp_path, *workers, threshold="0.02").met == []
    assert judge(ReplicaDivergence, tmp_path, threshold=0.009).met == [1]
