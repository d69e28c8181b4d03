"""Overtraining: from which step on no loss improves, by the sentence and by levels."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, judge_to_the_end, save

from builtin_rules import Overtraining
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAN, INF = np.nan, np.inf
LETTERS = {
    "T": ModeKeys.TRAIN,
    "E": ModeKeys.EVAL,
    "P": ModeKeys.PREDICT,
    "G": ModeKeys.GLOBAL,
}
NO_LOSS = "no finite loss at this step"
TOO_FEW = "too few losses"
WITHIN = "no phase of evaluation ends here"
ONE = {"patience_train": 1, "patience_validation": 1}
ONES = [1.0, 1.0, 1.0, 1.0]
TWO = {"patience_train": 2, "patience_validation": 2}


class ByLevels(Overtraining):
    """Judges by levels of a given length, which the parameters of users do not do: short tables."""

    def binds(self, *names: str) -> bool:
        """Return whether the documented sentence decides; parameters do not bind here."""
        del names
        return bool(self.literal)


def judged(root: Path, letters: str, losses: list[Any], **params: Any) -> Judged:
    """Judge losses at steps 0, 1, 2, ... of the modes of these letters; None leaves one out."""
    steps = {
        at: {"w": np.ones(1)} if value is None else {"loss": np.asarray(value)}
        for at, value in enumerate(losses)
    }
    modes = {at: LETTERS[letters[at % len(letters)]] for at in steps}
    return judge(ByLevels, save(root, steps, modes=modes), **params)


def stops(result: Judged) -> list[int]:
    """Return the steps at which no loss improves: those of notes, and of warnings later on."""
    return sorted({each.step for each in result.findings if each.recovered_at is None})


@pytest.mark.parametrize(
    ("letters", "losses", "params", "met"),
    [
        pytest.param("T", [3.0, *[1.0] * 8], {}, [6, 7, 8], id="patience-of-five"),
        pytest.param("T", [1.0] * 6, {}, [5], id="never-learned"),
        pytest.param("T", [1.0], {}, [], id="one-step"),
        pytest.param("T", [1.0, 0.75, 0.5], {"delta": 0.25, **ONE}, [1], id="equal-is-no-better"),
        pytest.param("T", [1.0, 0.74, 0.25], {"delta": 0.25, **ONE}, [], id="just-better"),
        pytest.param("T", [1.0, 0.8, 0.6, 0.4], {"delta": 0.25, **ONE}, [1, 3], id="the-best"),
        pytest.param("T", [1.0, 1.0], {"delta": 0, **ONE}, [1], id="delta-of-zero"),
        pytest.param("E", [1.0] * 12, {}, [10, 11], id="validation-alone"),
        pytest.param("TE", [1.0, 3.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.5], TWO, [], id="val-falls"),
        pytest.param("TE", [9.0, 1.0, 8.0, 1.0, 7.0, 1.0, 6.0, 1.0], TWO, [], id="training-falls"),
        pytest.param("TE", [1.0] * 8, TWO, [5, 6, 7], id="both"),
        pytest.param("TP", [1.0] * 8, TWO, [4, 6], id="predicting-does-not-count"),
        pytest.param("G", [1.0] * 4, TWO, [2, 3], id="no-modes-is-training"),
        pytest.param("T", [1.0, NAN, 1.0, INF, 1.0], TWO, [4], id="not-finite"),
        pytest.param("T", [1.0, None, 1.0, 1.0], TWO, [3], id="missing"),
        pytest.param("T", [1, 1, 1], TWO, [2], id="integers"),
        pytest.param("T", [[1.0, 3.0], [2.0, 2.0], 2.0], TWO, [2], id="by-sample"),
    ],
)
def test_to_the_letter_each_loss_counts(
    letters: str, losses: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, letters, losses, literal=True, **params).met == met


@pytest.mark.parametrize(
    ("letters", "losses", "params", "met"),
    [
        pytest.param("T", [3.0, *[1.0] * 9], {}, [], id="a-level-with-the-start-in-it"),
        pytest.param("T", [3.0, *[1.0] * 12], {}, [10, 11, 12], id="two-levels-without-it"),
        pytest.param("T", [1.0] * 20, {}, [], id="never-learned"),
        pytest.param("T", [1.0 - 0.001 * at for at in range(60)], {}, [], id="a-steady-fall"),
        pytest.param("T", [1.0], {}, [], id="one-step"),
        pytest.param("T", [4.0, *ONES], {"delta": 1.0, **ONE}, [], id="learned-three-deltas"),
        pytest.param("T", [5.0, *ONES], {"delta": 1.0, **ONE}, [], id="learned-four"),
        pytest.param("T", [5.1, *ONES], {"delta": 1.0, **ONE}, [3, 4], id="learned-more"),
        pytest.param("T", [6.0, *ONES, 0.8], {"delta": 1.0, **ONE}, [3, 4, 5], id="equal"),
        pytest.param("T", [6.0, *ONES, 0.79], {"delta": 1.0, **ONE}, [3, 4], id="just-better"),
        pytest.param("T", [6.0, *ONES, 3.0], {"delta": 1.0, **ONE}, [3, 4, 5], id="worse"),
        pytest.param("T", [0.4, *[0.01] * 4], {"delta": 0.2, **ONE}, [3, 4], id="small-losses"),
        pytest.param(
            "T", [0.4, *[0.05] * 3, 0.0], {"delta": 0.1, **ONE}, [3], id="delta-is-a-part"
        ),
        pytest.param("TE", [9.0, 9.0, *[1.0] * 7], ONE, [8], id="both"),
        pytest.param(
            "TEE", [9.0, 9.0, 9.0, *[1.0, 1.0, 3.0] * 3, 1.0], ONE, [12], id="means-of-phases"
        ),
        pytest.param(
            "TE", [9.0, 9.0, 1.0, 7.0, 1.0, 5.0, 1.0, 3.0, 1.0], ONE, [], id="validation-falls"
        ),
        pytest.param("TE", [9.0, 2.0, 7.0, 2.0, 5.0, 2.0, 3.0], ONE, [], id="training-falls"),
        pytest.param("TE", [9.0, *[2.0, 1.0] * 3], ONE, [6], id="one-has-learned"),
        pytest.param("E", [9.0, *ONES], ONE, [3, 4], id="validation-alone"),
        pytest.param("TP", [9.0, *[1.0] * 6], ONE, [6], id="predicting-does-not-count"),
        pytest.param("G", [9.0, *ONES], ONE, [3, 4], id="no-modes-is-training"),
        pytest.param("T", [9.0, NAN, 1.0, INF, 1.0, 1.0], ONE, [5], id="not-finite"),
        pytest.param("T", [9.0, None, 1.0, 1.0, 1.0], ONE, [4], id="missing"),
        pytest.param("T", [9, 1, 1, 1], ONE, [3], id="integers"),
    ],
)
def test_it_is_met_where_no_level_improves(
    letters: str, losses: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert stops(judged(tmp_path, letters, losses, **params)) == met


@pytest.mark.parametrize(
    "given", [{"patience_train": 5}, {"patience_validation": "10"}, {"delta": 0.01}]
)
def test_a_parameter_that_is_given_binds_even_if_it_is_the_default(
    given: dict[str, Any], tmp_path: Path
) -> None:
    steps = {at: {"loss": np.asarray(value)} for at, value in enumerate([3.0, *[1.0] * 8])}
    root = save(tmp_path, steps, modes=dict.fromkeys(steps, ModeKeys.TRAIN))
    assert judge(Overtraining, root, **given).met == [6, 7, 8]
    assert judge(Overtraining, root).met == []


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_noise_hides_no_improvement(literal: bool, noise: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    healthy = 2.3 / np.sqrt(1 + np.arange(200) / 20) * (1 + noise * rng.standard_normal(200))
    assert bool(stops(judged(tmp_path, "T", list(healthy), literal=literal))) is literal


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
def test_a_long_plateau_is_found_in_noise(noise: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    flat = (0.1 + 2 * np.exp(-np.arange(600) / 20)) * (1 + noise * rng.standard_normal(600))
    met = stops(judged(tmp_path, "T", list(flat)))
    assert met
    assert met[0] > 100


def test_skipped_steps_say_why(tmp_path: Path) -> None:
    losses = [None, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert judged(tmp_path, "TTETEE", losses, **ONE).skipped == {
        0: NO_LOSS,
        1: TOO_FEW,
        2: WITHIN,
        3: TOO_FEW,
        4: WITHIN,
        5: WITHIN,
    }


def test_evidence_holds_both_levels_and_their_limits(tmp_path: Path) -> None:
    losses = [9.0, *[2.0, 1.0] * 3]
    expected = [(None, 1.0, 0.99), (None, 2.0, 1.99)]
    found = judged(tmp_path, "TE", losses, **ONE).findings
    assert found == [Finding(6, None, *one, severity=Severity.NOTE) for one in expected]
    found = judge(Overtraining, tmp_path, literal="1", **ONE).findings
    assert found[:2] == [Finding(4, None, *one, severity=Severity.WARNING) for one in expected]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    losses = list(1 + 3 * np.exp(-np.arange(90) / 5) + 0.01 * rng.standard_normal(90))
    whole = stops(judged(tmp_path / "whole", "TTE", losses, delta=0.1, **TWO))
    assert 2 < len(whole) < 60
    for end in (20, 40, 70):
        part = stops(judged(tmp_path / str(end), "TTE", losses[:end], delta=0.1, **TWO))
        assert part == [one for one in whole if one < end]


# -- which losses --------------------------------------------------------------------------------


def test_sets_of_xgboost_are_training_and_validation(tmp_path: Path) -> None:
    losses = [(9.0, 9.0), (1.0, 2.0), *[(1.0, 1.5)] * 4]
    steps = {
        10 * at: {"train-logloss": train, "validation-logloss": val}
        for at, (train, val) in enumerate(losses)
    }
    assert stops(judge(ByLevels, save(tmp_path, steps), **ONE)) == [50]


def test_a_run_of_xgboost_without_a_training_set_has_validation_losses(tmp_path: Path) -> None:
    steps = {at: {"test-logloss": one} for at, one in enumerate((9.0, 1.0, 1.0, 1.0))}
    assert stops(judge(ByLevels, save(tmp_path, steps), **ONE)) == [3]


def test_workers_and_tensors_are_averaged(tmp_path: Path) -> None:
    for worker, sign in (("worker_0", 1.0), ("worker_1", -1.0)):
        steps = {
            at: {"loss_a": np.array(one + sign * at), "loss_b": np.array(one)}
            for at, one in enumerate((9.0, 1.0, 1.0, 1.0))
        }
        save(tmp_path, steps, worker=worker, num_workers=2)
    found = judge(ByLevels, tmp_path, **ONE)
    assert (stops(found), [one.measured for one in found.findings]) == ([3], [1.0])


@pytest.mark.parametrize(
    "value",
    [np.ones((0,)), np.array(["1"]), np.array([True]), np.array([1j])],
    ids=["empty", "text", "bool", "complex"],
)
def test_what_is_no_real_number_is_no_loss(value: "np.ndarray", tmp_path: Path) -> None:
    found = judged(tmp_path, "TE", [value, value])
    assert found.skipped == dict.fromkeys((0, 1), NO_LOSS)


def test_bfloat16_is_a_loss(tmp_path: Path) -> None:
    losses = [np.array(one, ml_dtypes.bfloat16) for one in (9.0, 1.0, 1.0, 1.0)]
    assert stops(judged(tmp_path, "T", losses, **ONE)) == [3]


def test_saved_reductions_are_no_loss(tmp_path: Path) -> None:
    root = save(tmp_path, {}, reductions={0: {"loss": {("mean", False): 1.0}}})
    assert judge(Overtraining, root).skipped == {0: NO_LOSS}


# -- the end of the data -------------------------------------------------------------------------


@pytest.mark.parametrize("fallen", [True, False])
def test_the_last_phase_ends_with_the_data(fallen: bool, tmp_path: Path) -> None:
    losses = [9.0, 9.0, *[1.0] * 28]
    losses[-1] = 0.1 if fallen else 1.0
    steps = {at: {"loss": np.asarray(value)} for at, value in enumerate(losses)}
    modes = {at: LETTERS["TE"[at % 2]] for at in steps}
    save(tmp_path, steps, modes=modes)
    params = {"patience_train": 2, "patience_validation": 1}
    assert stops(judge_to_the_end(ByLevels, tmp_path, **params)) == ([] if fallen else [29])
    assert judge_to_the_end(ByLevels, tmp_path, literal=True, **params).met == []


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"patience_train": 0}, r"'patience_train' must be a whole number >= 1, got 0"),
        ({"patience_validation": "x"}, r"'patience_validation' must be a whole number >= 1, got"),
        ({"delta": "-1"}, r"'delta' must be a finite number >= 0, got '-1'"),
        ({"literal": "?"}, r"'literal' must be true, false, .* '\?'"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, "T", [1.0], **params)


def test_converged_is_a_note_and_a_warning_once_a_quarter_is_wasted(tmp_path: Path) -> None:
    losses = [2.0 * 0.9 ** (row // 2) if row < 30 else 0.5 for row in range(120)]
    result = judged(tmp_path, "TE", losses)
    first = stops(result)[0]
    severities = {finding.step: finding.severity for finding in result.findings}
    assert severities[first] is Severity.NOTE
    assert result.met[0] >= 1.25 * first
    assert severities[result.met[0]] is Severity.WARNING
    assert judged(tmp_path / "alone", "T", losses[::2]).met == []  # notes, without a validation


@pytest.mark.parametrize(("fall", "met"), [(0.0, True), (0.08, False)])
def test_a_loss_that_certainly_still_falls_is_a_note(
    fall: float, met: bool, tmp_path: Path
) -> None:
    losses = [(2.0 * 0.9**row if row < 15 else 0.5) - fall * row / 200 for row in range(100)]
    result = judged(tmp_path, "TE", [each for each in losses for _ in "TE"])
    assert stops(result)
    assert bool(result.met) is met
