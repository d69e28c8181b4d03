"""LossNotDecreasing: which losses are judged, when, and which states meet the condition."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, judge_to_the_end, save

from builtin_rules import LossNotDecreasing
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAN, INF = np.nan, np.inf
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
TOO_FEW = "too few steps since the last evaluation"
NO_LOSS = "no scalar loss at this step"
DOCUMENTED = {0: 0.30, 4: 0.33, 8: 0.31, 12: 0.30, 16: 0.28}


def written(root: Path, losses: dict[int, Any], **more: Any) -> Path:
    """Write losses by step."""
    return save(root, {step: {"loss": np.array([loss])} for step, loss in losses.items()}, **more)


def judged(root: Path, losses: dict[int, Any], *, start: int = 0, **params: Any) -> Judged:
    """Judge losses by step."""
    return judge(LossNotDecreasing, written(root, losses), start=start, **params)


# -- to the letter of the documentation ----------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "params", "met"),
    [
        pytest.param(DOCUMENTED, {"diff_percent": 0}, [12], id="documented"),
        pytest.param(
            DOCUMENTED | {20: 0.20, 24: 0.42}, {"diff_percent": 20}, [12, 24], id="documented-rise"
        ),
        pytest.param({0: 4.0, 10: 3.0}, {"diff_percent": 25}, [], id="decrease-equal"),
        pytest.param({0: 4.0, 10: 3.01}, {"diff_percent": 25}, [10], id="decrease-too-small"),
        pytest.param({0: 4.0, 10: 5.0}, {"increase_threshold_percent": 25}, [], id="rise-equal"),
        pytest.param(
            {0: 4.0, 10: 5.01}, {"increase_threshold_percent": 25}, [10], id="rise-too-large"
        ),
        pytest.param(
            {0: 4.0, 10: 4.002}, {"increase_threshold_percent": 0}, [10], id="no-rise-is-tolerated"
        ),
        pytest.param({0: 1.0, 10: 1.0}, {"diff_percent": 0}, [10], id="no-change"),
        pytest.param({0: 1.0, 10: 0.9999}, {"diff_percent": 0}, [], id="any-decrease-will-do"),
        pytest.param({0: 1.0}, {}, [], id="one-step"),
        pytest.param({0: 1.0, 9: 1.0}, {}, [], id="no-partner"),
        pytest.param({0: 1.0, 10: 1.0, 19: 1.0, 20: 1.0}, {}, [10, 20], id="every-num-steps"),
        pytest.param({0: 1.0, 2: 0.5, 11: 0.6, 13: 0.9}, {}, [], id="first-partner-first"),
        pytest.param({0: 1.0, 1: 0.5, 11: 0.6}, {}, [11], id="newest-partner-far-enough"),
        pytest.param({0: 1.0, 10: NAN, 20: 0.9}, {}, [10], id="nan-then-the-finite-partner"),
        pytest.param({0: 1.0, 10: INF}, {}, [10], id="infinity"),
        pytest.param({0: 1.0, 10: -INF}, {}, [10], id="minus-infinity"),
        pytest.param({0: NAN, 10: NAN}, {}, [10], id="nan-from-the-start"),
        pytest.param({0: NAN, 10: 1.0, 20: 0.9}, {}, [], id="nan-at-the-start"),
        pytest.param({0: 0.0, 10: 0.0}, {"diff_percent": 0}, [10], id="zero"),
        pytest.param({0: 0.0, 10: 1e-9}, {}, [10], id="a-rise-from-zero"),
        pytest.param({0: -1.0, 10: -2.0}, {}, [], id="negative-decrease"),
        pytest.param({0: -2.0, 10: -1.0}, {}, [10], id="negative-rise"),
        pytest.param({0: 1, 1: 1, 2: 1}, {"num_steps": 1}, [1, 2], id="integers"),
        pytest.param({0: 1.0, 10: 0.9, 20: 0.927, 30: 0.927}, {}, [30], id="plateau-after-a-rise"),
        pytest.param({0: 1e308, 10: -1e308}, {}, [10], id="a-decrease-beyond-all-numbers"),
    ],
)
def test_it_is_met_where_the_decrease_is_too_small(
    losses: dict[int, Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, losses, literal=True, **params).met == met


@pytest.mark.parametrize("start", [13, 14, 15, 16])
def test_started_later_the_documented_losses_are_silent(start: int, tmp_path: Path) -> None:
    found = judged(tmp_path, DOCUMENTED, start=start, diff_percent=0, literal=True)
    assert (found.met, found.skipped) == ([], {})


@pytest.mark.parametrize(
    ("start", "pairs"),
    [(0, [(12, 0), (24, 12), (36, 24)]), (19, [(21, 9), (33, 21)]), (21, [(21, 9), (33, 21)])],
)
def test_saved_every_third_step_the_documented_pairs_are_compared(
    start: int, pairs: list[tuple[int, int]], tmp_path: Path
) -> None:
    losses = {step: float(step + 1) for step in range(0, 37, 3)}  # each rise is too large
    found = judged(tmp_path, losses, start=start, literal=True)
    assert [(one.step, one.limit) for one in found.findings] == [
        (step, partner + 1.0) for step, partner in pairs
    ]


# -- as shipped ----------------------------------------------------------------------------------


FALL = [2.0 * 0.95**row for row in range(40)]
STUCK = [2.3, 2.31, 2.29, 2.3, 2.32] * 8


@pytest.mark.parametrize(("noise", "rows", "learned"), [(0.07, 240, False), (0.001, 150, True)])
def test_a_first_row_that_noise_explains_is_no_start(
    noise: float, rows: int, *, learned: bool, tmp_path: Path
) -> None:
    level = 1.0 + np.random.default_rng(5).normal(0.0, noise, rows)
    result = judged(tmp_path, dict(enumerate([1.07, *level])))
    assert (not result.met) is learned


@pytest.mark.parametrize(
    ("losses", "row", "state"),
    [
        pytest.param(STUCK * 3, 99, "Never learned", id="never-learned"),
        pytest.param(FALL, None, "", id="falls"),
        pytest.param([*FALL, *[FALL[-1]] * 60], None, "", id="converged"),
        pytest.param([2.3, 3.0, 50.0, 4e5, 2e9], 4, "Diverged", id="blows-up-in-five-rows"),
        pytest.param([2.3, 30.0, 4.0, 1.0], None, "", id="one-row-up"),
        pytest.param([*FALL, *[2.0] * 20], 57, "Diverged", id="falls-back-to-the-start"),
        pytest.param([*FALL, *[2.0] * 10, *FALL], None, "", id="ten-rows-are-a-spike"),
        pytest.param([2.0 * 1.04**row for row in range(40)], 22, "Diverged", id="rises"),
        pytest.param([*FALL[:9], 0.0, 0.0, 0.0], 11, "Dead at zero", id="dead-at-zero"),
        pytest.param([*FALL[:9], 0.0, 0.0, 1.2], None, "", id="two-zeros"),
        pytest.param([0.0] * 3, 2, "Dead at zero", id="dead-from-the-start"),
        pytest.param([*(0.1**row for row in range(9)), 0.0, 0.0, 0.0], None, "", id="to-zero"),
        pytest.param([*FALL[:9], *[NAN] * 10], 18, "Not finite, lasting", id="nan-stays"),
        pytest.param([*FALL[:9], *[NAN] * 9, *FALL[9:]], None, "", id="nan-passes"),
        pytest.param([NAN, INF, *FALL], None, "", id="infinite-at-first"),
        pytest.param([NAN, *STUCK * 3], 100, "Never learned", id="stuck-behind-a-nan"),
        pytest.param([-2.0 - row / 10 for row in range(40)], None, "", id="negative-and-falling"),
    ],
)
def test_the_states_it_reports(
    losses: list[float], row: int | None, state: str, tmp_path: Path
) -> None:
    result = judged(tmp_path, dict(enumerate(losses)))
    assert next(iter(result.met), None) == row
    if row is not None:
        (note,) = {finding.note for finding in result.findings if finding.step == row}
        assert (note or "").startswith(f"{state} for ")


@pytest.mark.parametrize(
    ("losses", "measured", "limit", "note"),
    [
        pytest.param(
            [2.0, 30.0, 50.0, 40.0],
            *(30.0, 20.0, "Diverged for 3 rows. It rose to more than 10 times the first loss."),
            id="blown-up",
        ),
        pytest.param(
            [*FALL[:9], *[NAN] * 10], None, None, "Not finite, lasting for 10 rows.", id="nan"
        ),
    ],
)
def test_evidence_shows_why(
    losses: list[float], measured: float | None, limit: float | None, note: str, tmp_path: Path
) -> None:
    (finding,) = judged(tmp_path, dict(enumerate(losses))).findings
    assert (finding.limit, finding.note) == (limit, note)
    assert measured is None or finding.measured == measured


@pytest.mark.parametrize(
    "losses", [STUCK, FALL, [*FALL, *[2.0] * 20]], ids=["stuck", "falls", "lost"]
)
@pytest.mark.parametrize(
    "number", [lambda row: row + 1000, lambda row: 7 * row], ids=["offset", "factor"]
)
def test_step_numbers_change_no_verdict(
    losses: list[float], number: Callable[[int], int], tmp_path: Path
) -> None:
    rows = judged(tmp_path / "rows", dict(enumerate(losses))).met
    steps = judged(tmp_path / "steps", {number(row): loss for row, loss in enumerate(losses)}).met
    assert steps == [number(row) for row in rows]


def test_severities(tmp_path: Path) -> None:
    found = {
        name: {
            finding.severity for finding in judged(tmp_path / name, dict(enumerate(rows))).findings
        }
        for name, rows in (("stuck", STUCK * 3), ("up", [2.3, 50.0, 60.0, 70.0]))
    }
    assert found == {"stuck": {Severity.WARNING}, "up": {Severity.ERROR}}


def test_a_nan_that_stays_to_the_end_is_found_there(tmp_path: Path) -> None:
    root = written(tmp_path, dict(enumerate([*FALL[:9], NAN, NAN, NAN])))
    (finding,) = judge_to_the_end(LossNotDecreasing, root).findings
    assert (finding.step, finding.severity) == (11, Severity.ERROR)


OUTLIER = [25.0, *([8.0] * 7), *([4.0] * 8), *([2.0] * 14)]  # the first row is far above the rest


def slow(fall: float) -> list[float]:
    """Return a loss that falls so far in 50 rows, with noise."""
    return [1.13 - fall * row / 50 + 0.01 * (row * 7 % 5 - 2) for row in range(50)]


@pytest.mark.parametrize(
    ("losses", "state"),
    [
        pytest.param(STUCK[:3], "", id="three-rows-show-nothing"),
        pytest.param(STUCK[:5], "Never learned", id="stuck-for-five-rows"),
        pytest.param(STUCK[:30], "Never learned", id="stuck"),
        pytest.param(slow(0.0)[:4], "", id="four-rows-with-noise"),
        pytest.param([1.6, 11.8, 2.3], "Diverged", id="blown-up-in-three-rows"),
        pytest.param([1.6, 11.8, *[2.31, 2.29, 2.3] * 8], "Diverged", id="at-chance-after-it"),
        pytest.param([1.6, 11.8, 9.0, 6.5, 4.0, 3.0], "", id="on-its-way-back"),
        pytest.param([1.6, 11.8, 2.3, 1.5], "", id="back"),
        pytest.param([1.6, 1.5, 11.8], "", id="one-high-row-at-the-end"),
        pytest.param([9.0, 6.0, 4.0, 3.0, 2.0, 7.0, 7.5, 7.2], "Diverged", id="lost-in-three-rows"),
        pytest.param([9.0, 6.0, 4.0, 3.0, 2.0, 7.0, 7.5], "", id="lost-in-two-rows"),
        pytest.param(slow(0.005), "Never learned", id="falls-by-half-a-percent"),
        pytest.param(slow(0.025), "", id="falls-by-two-percent"),
        pytest.param([*STUCK[:30], *FALL], "", id="learns-late"),
        pytest.param([*OUTLIER, *[8.0] * 8], "", id="lost-for-eight-rows"),
        pytest.param([*OUTLIER, *[8.0] * 9], "Diverged", id="lost-for-nine-rows"),
    ],
)
def test_fewer_rows_are_enough_at_the_end(losses: list[float], state: str, tmp_path: Path) -> None:
    result = judge_to_the_end(LossNotDecreasing, written(tmp_path, dict(enumerate(losses))))
    assert [(finding.note or "").partition(" for ")[0] for finding in result.findings] == (
        [state] if state else []
    )
    assert judged(tmp_path / "live", dict(enumerate(losses))).met == []


@pytest.mark.parametrize(
    "given", [{"num_steps": "10"}, {"diff_percent": 0.1}, {"increase_threshold_percent": 5}]
)
def test_a_parameter_that_is_given_binds_even_if_it_is_the_default(
    given: dict[str, Any], tmp_path: Path
) -> None:
    root = written(tmp_path, dict(enumerate([2.0] * 12)))
    assert judge(LossNotDecreasing, root, **given).met == [10]
    assert judge(LossNotDecreasing, root, mode="GLOBAL").met == []


@pytest.mark.parametrize(("level", "met"), [(0.0, False), (0.3, True)])
def test_a_loss_about_zero_is_a_difference(level: float, met: bool, tmp_path: Path) -> None:
    losses = [level + 0.05 * (row * 7 % 5 - 2) + (row >= 40) for row in range(90)]
    assert bool(judged(tmp_path, dict(enumerate(losses))).met) is met


@pytest.mark.parametrize(
    ("names", "judged_names"),
    [
        pytest.param({"aux_loss": 0.1, "loss": 1.0}, {"loss"}, id="called-loss"),
        pytest.param({"a_loss": 0.9, "b_loss": 0.1, "c_loss": 1.0}, {"c_loss"}, id="the-sum"),
        pytest.param({"box_loss": 1.0, "cls_loss": 2.0}, {None}, id="their-sum"),
        pytest.param({"loss": 1.0, "val_loss": 1.0}, {"loss"}, id="without-validation"),
        pytest.param(
            {"train-logloss": 1.0, "train-mlogloss": 1.0},
            {"train-logloss", "train-mlogloss"},
            id="metrics",
        ),
        pytest.param({"generator_loss": 1.0, "discriminator_loss": 1.0}, set(), id="adversarial"),
        pytest.param({"policy_loss": 1.0, "value_loss": 1.0}, set(), id="reinforcement"),
    ],
)
def test_the_objective_is_judged(
    names: dict[str, float], judged_names: set[str | None], tmp_path: Path
) -> None:
    root = save(tmp_path, dict.fromkeys(range(40), names))
    findings = judge_to_the_end(LossNotDecreasing, root).findings
    assert {finding.tensor for finding in findings} == judged_names


@pytest.mark.parametrize(("name", "met"), [("train-merror", False), ("loss", True)])
def test_errors_of_boosted_trees_reach_zero(name: str, met: bool, tmp_path: Path) -> None:
    values = [0.14, 0.0, 0.01, 0.0, 0.0, 0.0]
    root = save(tmp_path, {step: {name: value} for step, value in enumerate(values)})
    assert bool(judge(LossNotDecreasing, root).findings) is met


@pytest.mark.parametrize(
    ("name", "met"),
    [("train-aucpr", False), ("train-map@6", False), ("train-ndcg@3-", False), ("train-mae", True)],
)
def test_metrics_of_boosted_trees_may_rise(name: str, met: bool, tmp_path: Path) -> None:
    steps = {at: {name: np.array([0.5 + at / 100])} for at in range(50)}
    save(tmp_path, steps, collections={"losses": "^train-"})
    assert bool(judge(LossNotDecreasing, tmp_path).findings) is met
    selected = judge(LossNotDecreasing, tmp_path, tensor_regex="^train-")
    assert selected.findings


def test_a_step_that_is_not_its_turn_is_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, {0: 1.0, 5: 1.0, 10: 0.5, 19: 1.0, 20: 0.2}, literal=True)
    assert (found.met, found.skipped) == ([], dict.fromkeys((0, 5, 19), TOO_FEW))


def test_a_missing_loss_moves_the_evaluation(tmp_path: Path) -> None:
    steps = {0: {"loss": 1.0}, 10: {"weight": 1.0}, 13: {"loss": 1.0}, 22: {"loss": 0.5}}
    found = judge(LossNotDecreasing, save(tmp_path, steps), literal=True)
    assert (found.met, found.skipped) == ([13], {0: TOO_FEW, 10: NO_LOSS, 22: TOO_FEW})


def test_evidence_holds_both_losses(tmp_path: Path) -> None:
    assert judged(tmp_path, {0: 2.0, 10: 2.5}, literal=True).findings == [
        Finding(10, "loss", None, 2.5, 2.0, "A rise of 25 percent.", Severity.WARNING)
    ]


# -- which losses --------------------------------------------------------------------------------


def test_losses_of_workers_are_averaged(tmp_path: Path) -> None:
    written(tmp_path, {0: 1.0, 10: 0.5}, num_workers=2)
    written(tmp_path, {0: 2.0, 10: 2.5}, num_workers=2, worker="worker_1")
    (finding,) = judge(LossNotDecreasing, tmp_path, literal=True).findings
    assert (finding.worker, finding.measured, finding.limit) == (None, 1.5, 1.5)


def test_one_worker_whose_loss_is_nan_spoils_the_mean(tmp_path: Path) -> None:
    written(tmp_path, {0: 1.0, 10: 0.5}, num_workers=2)
    written(tmp_path, {0: 2.0, 10: NAN}, num_workers=2, worker="worker_1")
    assert judge(LossNotDecreasing, tmp_path, literal=True).met == [10]


def test_infinities_of_workers_that_cancel_meet_it(tmp_path: Path) -> None:
    written(tmp_path, {0: 1.0, 10: INF}, num_workers=2)
    written(tmp_path, {0: 2.0, 10: -INF}, num_workers=2, worker="worker_1")
    assert judge(LossNotDecreasing, tmp_path, literal=True).met == [10]


def test_each_loss_is_judged_by_itself(tmp_path: Path) -> None:
    steps = {0: {"loss_a": 1.0}, 5: {"loss_b": 1.0}, 10: {"loss_a": 0.5}, 15: {"loss_b": 1.0}}
    found = judge(LossNotDecreasing, save(tmp_path, steps), literal=True)
    assert [(one.step, one.tensor) for one in found.findings] == [(15, "loss_b")]


@pytest.mark.parametrize(
    "value",
    [np.ones(2), np.ones((0,)), np.array(["1"]), np.array([True]), np.array([1j])],
    ids=["vector", "empty", "text", "bool", "complex"],
)
def test_what_is_no_single_number_is_passed_over(value: "np.ndarray", tmp_path: Path) -> None:
    root = save(tmp_path, {step: {"loss": value} for step in (0, 10)})
    assert judge(LossNotDecreasing, root).skipped == {0: NO_LOSS, 10: NO_LOSS}


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.uint8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_of_any_type_and_shape_is_a_loss(
    dtype: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    root = save(tmp_path, {step: {"loss": np.ones(shape, dtype)} for step in (0, 10)})
    assert judge(LossNotDecreasing, root, literal=True).met == [10]


def test_saved_reductions_are_no_loss(tmp_path: Path) -> None:
    means = {step: {"loss": {("mean", False): 1.0}} for step in (0, 10)}
    found = judge(LossNotDecreasing, save(tmp_path, {}, reductions=means))
    assert (found.met, found.skipped) == ([], {0: NO_LOSS, 10: NO_LOSS})


@pytest.mark.parametrize(
    ("params", "tensors"),
    [
        pytest.param({}, ["loss"], id="losses-by-default"),
        pytest.param({"use_losses_collection": "no", "tensor_regex": "rmse"}, ["rmse"]),
        pytest.param({"use_losses_collection": "False"}, [], id="nothing"),
        pytest.param({"tensor_regex": "rmse, nothing"}, ["loss", "rmse"], id="united"),
        pytest.param({"collection_names": "weights"}, ["fc.weight", "loss"], id="collection"),
    ],
)
def test_selectors_are_united(params: dict[str, str], tensors: list[str], tmp_path: Path) -> None:
    tensor_values = dict.fromkeys(("loss", "rmse", "fc.weight"), 1.0)
    found = judge(
        LossNotDecreasing,
        save(tmp_path, {0: tensor_values, 10: tensor_values}),
        literal=True,
        **params,
    )
    assert [one.tensor for one in found.findings] == tensors


# -- modes ---------------------------------------------------------------------------------------

# Training falls, validation does not.
MIXED = {0: 1.0, 5: 2.0, 10: 0.9, 15: 2.0, 20: 0.8, 25: 2.0}
MODES = {0: TRAIN, 5: EVAL, 10: TRAIN, 15: EVAL, 20: TRAIN, 25: EVAL}


@pytest.mark.parametrize(
    ("mode", "num_steps", "met"),
    [
        pytest.param("GLOBAL", 10, [15, 25], id="global-steps-within-one-mode"),
        pytest.param("", 10, [15, 25], id="default"),
        pytest.param("EVAL", 10, [], id="too-few-steps-of-the-mode"),
        pytest.param("eval", 1, [15, 25], id="steps-of-the-mode"),
        pytest.param("EVAL", 2, [25], id="every-second-step-of-the-mode"),
        pytest.param("TRAIN", 1, [], id="training-falls"),
    ],
)
def test_steps_count_within_the_mode(
    mode: str, num_steps: int, met: list[int], tmp_path: Path
) -> None:
    root = written(tmp_path, MIXED, modes=MODES)
    assert judge(LossNotDecreasing, root, mode=mode, num_steps=num_steps, literal=True).met == met


def test_a_step_of_another_mode_is_not_judged(tmp_path: Path) -> None:
    root = written(tmp_path, {0: 1.0, 5: 1.0}, modes={0: TRAIN, 5: EVAL})
    found = judge(LossNotDecreasing, root, mode=TRAIN)
    assert found.skipped == {0: "too few rows", 5: "a step of another mode"}


def test_a_training_without_modes_has_no_steps_of_a_mode(tmp_path: Path) -> None:
    found = judged(tmp_path, {0: 1.0, 10: 1.0}, mode="TRAIN")
    assert found.skipped == dict.fromkeys((0, 10), "a step of another mode")


# -- parameters ----------------------------------------------------------------------------------


def test_parameters_may_be_text(tmp_path: Path) -> None:
    params = {"num_steps": "4.0", "diff_percent": "50", "increase_threshold_percent": "None"}
    losses = {0: 8.0, 4: 4.0, 8: 3.0, 12: 1.0}
    assert judged(tmp_path, losses, literal=True, **params).met == [8]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_steps": "0"}, r"'num_steps' must be a whole number >= 1, got '0'"),
        ({"num_steps": 2.5}, r"'num_steps' must be a whole number >= 1, got 2\.5"),
        ({"diff_percent": "100"}, r"'diff_percent' must be a finite number in \[0, 100\), got"),
        ({"diff_percent": "x"}, r"'diff_percent' must be a finite number in \[0, 100\), got 'x'"),
        (
            {"increase_threshold_percent": -1},
            r"'increase_threshold_percent' must be a finite number in \[0, 100\), got -1",
        ),
        ({"mode": "PREDICT"}, r"'mode' must be one of 'EVAL', 'TRAIN', 'GLOBAL', got 'PREDICT'"),
        ({"use_losses_collection": "?"}, r"'use_losses_collection' must be true, false, .* '\?'"),
        (
            {"tensor_regex": "["},
            r"'tensor_regex' must be comma-separated regular expressions, got '\['",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, {0: 1.0}, **params)


@pytest.mark.parametrize(("rates", "met"), [(1, True), (40, False)])
def test_a_rate_that_was_saved_once_does_not_rise(rates: int, met: bool, tmp_path: Path) -> None:
    steps = {row: {"loss": np.array([loss])} for row, loss in enumerate(STUCK)}
    for row in range(rates):
        steps[row]["lr"] = np.array([0.001 * (row + 1)])
    root = save(tmp_path, steps, collections={"losses": "loss", "learning_rates": "lr"})
    assert bool(judge_to_the_end(LossNotDecreasing, root).met) is met
