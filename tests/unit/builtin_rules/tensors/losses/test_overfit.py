"""Overfit: which phases are compared, when, and which gaps meet the condition."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, Steps, judge, judge_to_the_end, save

from builtin_rules import Overfit
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAN, INF = np.nan, np.inf
TRAIN, EVAL, GLOBAL, PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL, ModeKeys.PREDICT
LETTERS = {"T": TRAIN, "E": EVAL, "P": PREDICT, "G": GLOBAL}
WITHIN = "no evaluation phase ends here"
NO_LOSS = "no finite loss at this step"
NO_TRAINING = "no training loss before this phase, or a loss of 0"


def phased(losses: list[tuple[str, Any]]) -> tuple[Steps, dict[int, ModeKeys]]:
    """Return losses at steps 0, 1, 2, ..., and their modes; None leaves a step without a loss."""
    steps = {
        at: {"w": np.ones(1)} if value is None else {"loss": np.asarray(value)}
        for at, (_, value) in enumerate(losses)
    }
    return steps, {at: LETTERS[letter] for at, (letter, _) in enumerate(losses)}


def saved(root: Path, losses: list[tuple[str, Any]]) -> Path:
    """Save losses with the letters of their modes."""
    steps, modes = phased(losses)
    return save(root, steps, modes=modes)


def literally(root: Path, **params: Any) -> Judged:
    """Judge a trial by the documented sentence, which shows what is compared with what."""
    return judge(Overfit, root, **{"literal": True, **params})


def judged(root: Path, losses: list[tuple[str, Any]], **params: Any) -> Judged:
    """Judge losses with the letters of their modes."""
    steps, modes = phased(losses)
    return literally(save(root, steps, modes=modes), **params)


def epochs(*pairs: tuple[float, float]) -> list[tuple[str, Any]]:
    """Return a training and a validation loss for each epoch, and a last step of training."""
    losses = [one for train, val in pairs for one in (("T", train), ("E", val))]
    return [*losses, ("T", 0.0)]


@pytest.mark.parametrize(
    ("losses", "params", "met"),
    [
        pytest.param(epochs((1.0, 1.2)), {}, [2], id="at-the-step-behind-the-phase"),
        pytest.param(epochs((1.0, 0.9)), {}, [], id="validation-is-better"),
        pytest.param(epochs((1.0, 1.5)), {"ratio_threshold": 0.5}, [], id="equal-is-not-above"),
        pytest.param(
            epochs((1.0, np.nextafter(1.5, 2))), {"ratio_threshold": 0.5}, [2], id="next-above"
        ),
        pytest.param([("T", 1.0), ("E", 2.0)], {}, [], id="the-last-phase-has-not-ended"),
        pytest.param([("T", 1.0)], {}, [], id="one-step"),
        pytest.param(epochs((1.0, 1.0), (0.5, 1.1), (0.4, 1.2)), {}, [4, 6], id="each-phase"),
        pytest.param(
            epochs((1.0, 1.2), (0.5, 1.2), (0.4, 1.3)), {"patience": 2}, [4, 6], id="patience"
        ),
        pytest.param(
            epochs((1.0, 1.2), (1.3, 1.3), (0.4, 1.4)), {"patience": 2}, [], id="not-in-a-row"
        ),
        pytest.param(
            [("T", 1.0), ("T", 2.0), ("E", 1.6), ("E", 1.8), ("T", 1.0)], {}, [4], id="means"
        ),
        pytest.param(
            [("T", 1.0), ("T", 2.0), ("E", 1.6), ("E", 1.6), ("T", 1.0)], {}, [], id="means-alike"
        ),
        pytest.param(epochs((-1.0, -0.8)), {}, [2], id="negative-losses"),
        pytest.param(epochs((-1.0, -1.5)), {}, [], id="negative-losses-that-are-lower"),
        pytest.param(epochs((0.0, 1.0)), {}, [], id="training-loss-of-zero"),
        pytest.param(epochs((NAN, 2.0)), {}, [], id="nan-in-training"),
        pytest.param(epochs((1.0, NAN), (1.0, 1.2)), {}, [4], id="nan-in-validation"),
        pytest.param(epochs((1.0, INF)), {}, [], id="infinity"),
        pytest.param([("E", 5.0), ("T", 1.0), ("E", 1.0), ("T", 1.0)], {}, [], id="sanity-check"),
        pytest.param([("T", 1.0), ("T", None), ("E", 2.0), ("T", None)], {}, [3], id="no-loss"),
        pytest.param([("T", 1.0), ("E", 1.2), ("P", 9.0), ("T", 1.0)], {}, [3], id="predicting"),
        pytest.param([("G", 1.0), ("G", 2.0), ("G", 1.0)], {}, [], id="no-modes"),
        pytest.param([("T", 1), ("E", 2), ("T", 1)], {}, [2], id="integers"),
        pytest.param([("T", [1.0, 2.0]), ("E", [1.0, 3.0]), ("T", 1.0)], {}, [2], id="by-sample"),
        pytest.param(
            epochs((1.0, 1.2), (0.5, 1.2)), {"start_step": 2}, [4], id="start-step-hides-earlier"
        ),
        pytest.param(epochs((1.0, 1.2)), {"start_step": "1"}, [], id="start-step-within-a-phase"),
    ],
)
def test_it_is_met_where_the_gap_is_too_large(
    losses: list[tuple[str, Any]],
    params: dict[str, Any],
    met: list[int],
    tmp_path: Path,
) -> None:
    assert judged(tmp_path, losses, **params).met == met


FALL = [2.0 * 0.9**epoch for epoch in range(20)]
RISE = [*FALL[:8], *(FALL[8] * 1.1**epoch for epoch in range(12))]


def pairs(validation: list[float]) -> list[tuple[str, Any]]:
    """Return epochs whose training loss falls."""
    return epochs(*zip(FALL, validation, strict=False))


@pytest.mark.parametrize(
    ("losses", "step"),
    [
        pytest.param(pairs(FALL), None, id="both-fall"),
        pytest.param(pairs([10 * loss for loss in FALL]), None, id="a-gap-alone"),
        pytest.param(pairs([54.0, 60.0, 70.0, *FALL]), None, id="first-phases-are-high"),
        pytest.param(pairs(RISE), 40, id="validation-rises"),
        pytest.param(pairs([FALL[8] * 1.01] * 20), None, id="validation-is-level"),
        pytest.param(pairs([*FALL[:8], *[1.2] * 3, *FALL[9:18]]), None, id="three-phases-up"),
    ],
)
def test_a_rising_validation_loss_meets_it(
    losses: list[tuple[str, Any]], step: int | None, tmp_path: Path
) -> None:
    result = judge(Overfit, saved(tmp_path, losses))
    assert next(iter(result.met), None) == step
    assert {finding.severity for finding in result.findings} <= {Severity.WARNING}


@pytest.mark.parametrize(
    ("validation", "met"),
    [
        pytest.param(RISE[:11], False, id="two-phases-after-the-best"),
        pytest.param(RISE[:13], True, id="four-phases-after-the-best"),
        pytest.param([3.5, 3.9, 6.0, 9.5, 10.0], True, id="from-the-start"),
        pytest.param([3.5, 3.9, 6.0], False, id="three-phases"),
        pytest.param([*FALL[:8], 0.9, 0.91, 0.92], False, id="stopped-early"),
        pytest.param([*FALL[:8], *[0.9] * 3, *[0.93] * 8], False, id="a-small-rise"),
        pytest.param([3.5, 3.9, 6.0, 9.5], True, id="four-that-all-rise"),
        pytest.param([*FALL[:8], 0.91, 0.9, 0.9, 1.1, 1.2], True, id="a-large-rise-of-two-phases"),
        pytest.param([3.5, 3.9, 9.5, 6.0], False, id="three-of-four-rise"),
        pytest.param([*FALL[:8], *[1.0, 1.1, 0.95] * 4], False, id="level-for-long"),
        pytest.param([*FALL[:8], *[1.6] * 8, *FALL[9:13]], False, id="a-hump-of-eight-phases"),
        pytest.param([1.0, 1.1, 0.95, 1.08, 0.93, 1.05, 0.97, 1.1], False, id="noise"),
        pytest.param([*[3.5] * 20], True, id="worse-than-untrained"),
        pytest.param([*[FALL[0] * 0.99] * 20], False, id="as-good-as-untrained"),
        pytest.param([8.0 - 0.1 * phase for phase in range(20)], False, id="worse-but-falls"),
        pytest.param([3.5] * 4, False, id="worse-but-little-was-learned"),
    ],
)
def test_the_end_decides_by_exact_tests(validation: list[float], met: bool, tmp_path: Path) -> None:
    losses = pairs(validation)[:-1]
    root = saved(tmp_path, losses)
    assert judge_to_the_end(Overfit, root).met == [len(losses) - 1] * met


def test_one_evaluation_that_is_worse_than_the_start_is_enough(tmp_path: Path) -> None:
    losses = [*(("T", loss) for loss in (4.1, 0.5, 0.2, 0.1)), ("E", 8.4)]
    judged = judge_to_the_end(Overfit, saved(tmp_path, losses))
    assert judged.findings[0].note == "Validation loss 8.4, training loss 1.225, 4.1 at first."
    assert judged.findings[0].measured == pytest.approx((8.4 - 1.225) / 1.225)


@pytest.mark.parametrize("given", [{"patience": 1}, {"ratio_threshold": "0.1"}])
def test_a_parameter_that_is_given_binds_even_if_it_is_the_default(
    given: dict[str, Any], tmp_path: Path
) -> None:
    root = saved(tmp_path, pairs([9.5] * 3))
    assert judge(Overfit, root, **given).met
    assert judge(Overfit, root, start_step=0).met == []


def test_noise_does_not_meet_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    losses = [(kind, value * rng.uniform(0.7, 1.3)) for kind, value in pairs([0.5] * 20)]
    assert judge(Overfit, saved(tmp_path, losses)).met == []


def test_the_documented_run_is_reported_behind_its_sixth_evaluation(tmp_path: Path) -> None:
    steps: dict[int, dict[str, Any]] = {}
    modes: dict[int, ModeKeys] = {}
    for epoch in range(7):
        start = 1200 * epoch
        for at in range(0, 1000, 100):
            steps[start + at], modes[start + at] = {"loss": np.array(1.0)}, TRAIN
        for at in range(1000, 1200, 10):
            loss = 1.3 if epoch >= 5 else 1.0
            steps[start + at], modes[start + at] = {"loss": np.array(loss)}, EVAL
    assert literally(save(tmp_path, steps, modes=modes)).met == [7200]


def test_skipped_steps_say_why(tmp_path: Path) -> None:
    losses = [("T", None), ("E", 1.0), ("T", 1.0), ("E", None), ("E", 1.0), ("T", 1.0)]
    assert judged(tmp_path, losses, start_step=1).skipped == {
        0: "before start_step",
        1: WITHIN,
        2: NO_TRAINING,
        3: NO_LOSS,
        4: WITHIN,
    }


def test_evidence_holds_gap_ratio_and_losses(tmp_path: Path) -> None:
    note = "Validation loss 1.5, training loss 1, for 1 phase."
    assert judged(tmp_path, epochs((1.0, 1.5))).findings == [
        Finding(2, None, None, 0.5, 0.1, note, Severity.WARNING)
    ]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    noise = rng.uniform(0.9, 1.1, 60)
    losses = [("TTTEE"[at % 5], float(one) * (1 + at % 5 / 9)) for at, one in enumerate(noise)]
    whole = judged(tmp_path / "whole", losses).met
    assert 0 < len(whole) < 12
    for end in (11, 26, 41):
        assert judged(tmp_path / str(end), losses[:end]).met == [one for one in whole if one < end]


# -- which losses --------------------------------------------------------------------------------


def test_workers_and_tensors_are_averaged(tmp_path: Path) -> None:
    modes = {0: TRAIN, 1: EVAL, 2: TRAIN}
    for worker, losses in (("worker_0", (1.0, 1.0)), ("worker_1", (1.0, 1.5))):
        steps = {
            at: {"loss_a": np.array(one), "loss_b": np.array(1.0)}
            for at, one in enumerate((*losses, 1.0))
        }
        save(tmp_path, steps, modes=modes, worker=worker, num_workers=2)
    assert literally(tmp_path, ratio_threshold=0.13).met == []
    (finding,) = literally(tmp_path, ratio_threshold=0.12).findings
    assert finding.measured == 0.125


@pytest.mark.parametrize(
    ("regex", "met"), [("rmse", [2]), ("mae", []), ("nothing", []), ("rmse, mae", []), ("", [])]
)
def test_patterns_select_other_tensors_than_the_losses(
    regex: str, met: list[int], tmp_path: Path
) -> None:
    values = {"loss": (1.0, 1.0), "rmse": (1.0, 1.15), "mae": (1.0, 1.0)}
    steps = {at: {name: np.array(one[at % 2]) for name, one in values.items()} for at in range(3)}
    root = save(tmp_path, steps, modes={0: TRAIN, 1: EVAL, 2: TRAIN})
    assert literally(root, tensor_regex=regex).met == met


def test_each_metric_of_xgboost_is_compared_with_that_of_the_training(tmp_path: Path) -> None:
    steps = {
        10 * at: {"train-logloss": one, "validation-logloss": 1.0, "test-logloss": 0.5}
        for at, one in enumerate((1.0, 0.95, 0.8))
    }
    found = literally(save(tmp_path, steps)).findings
    assert [(one.step, one.tensor) for one in found] == [(20, "validation-logloss")]


@pytest.mark.parametrize("metric", ["rmse", "poisson-nloglik", "tweedie-nloglik@1.5"])
def test_metrics_of_several_words_are_paired(metric: str, tmp_path: Path) -> None:
    steps = {0: {f"train-{metric}": 1.0, f"my-set-{metric}": 2.0}}
    assert literally(save(tmp_path, steps), tensor_regex=".").met == [0]


@pytest.mark.parametrize("name", ["train", "dtrain", "training", "Train"])
def test_names_of_the_training_set(name: str, tmp_path: Path) -> None:
    steps = {0: {f"{name}-logloss": 1.0, "validation_0-logloss": 2.0}}
    assert literally(save(tmp_path, steps)).met == [0]


@pytest.mark.parametrize("name", ["validation_1", "trained", "strain", "eval_train"])
def test_names_of_no_training_set(name: str, tmp_path: Path) -> None:
    steps = {0: {f"{name}-logloss": 1.0, "validation_0-logloss": 2.0}}
    assert literally(save(tmp_path, steps)).skipped == {0: NO_TRAINING}


def test_metrics_of_xgboost_without_a_partner_are_left_out(tmp_path: Path) -> None:
    steps = {0: {"train-logloss": 1.0, "validation-mloss": 2.0}}
    assert literally(save(tmp_path, steps)).skipped == {0: NO_TRAINING}


@pytest.mark.parametrize(("modes", "met"), [("TTT", [1, 2]), ("TET", [2])])
def test_what_keras_saves_as_val_loss_is_a_validation_loss(
    modes: str, met: list[int], tmp_path: Path
) -> None:
    steps = {
        0: {"loss": 1.0},
        1: {"loss": 1.0, "val_loss": 1.2} if modes == "TTT" else {"loss": 1.2},
        2: {"loss": 1.0, "val_loss": 1.3},
    }
    root = save(tmp_path, steps, modes={at: LETTERS[one] for at, one in enumerate(modes)})
    assert literally(root).met == met


@pytest.mark.parametrize(
    "value",
    [np.ones((0,)), np.array(["1"]), np.array([True]), np.array([1j])],
    ids=["empty", "text", "bool", "complex"],
)
def test_what_is_no_real_number_is_no_loss(value: "np.ndarray", tmp_path: Path) -> None:
    assert judged(tmp_path, [("T", value), ("E", value)]).skipped == dict.fromkeys((0, 1), NO_LOSS)


def test_bfloat16_is_a_loss(tmp_path: Path) -> None:
    losses = [(mode, np.array(one, ml_dtypes.bfloat16)) for mode, one in epochs((1.0, 1.5))]
    assert judged(tmp_path, losses).met == [2]


def test_saved_reductions_are_no_loss(tmp_path: Path) -> None:
    means = {step: {"loss": {("mean", False): 1.0}} for step in (0, 1)}
    root = save(tmp_path, {}, reductions=means, modes={0: TRAIN, 1: EVAL})
    assert literally(root).skipped == {0: NO_LOSS, 1: NO_LOSS}


# -- the end of the data -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "met"),
    [
        pytest.param(epochs((1.0, 0.9), (0.5, 1.2))[:-1], [3], id="the-last-phase"),
        pytest.param(epochs((1.0, 0.9), (0.5, 0.4))[:-1], [], id="is-healthy"),
        pytest.param(epochs((1.0, 1.2)), [], id="was-judged-before"),
        pytest.param([("E", 1.2)], [], id="without-training"),
        pytest.param([("T", 1.2)], [], id="without-a-phase"),
    ],
)
def test_to_the_letter_the_last_phase_ends_with_the_data(
    losses: list[tuple[str, Any]], met: list[int], tmp_path: Path
) -> None:
    steps, modes = phased(losses)
    save(tmp_path, steps, modes=modes)
    found = judge_to_the_end(Overfit, tmp_path, literal=True)
    assert found.met == met
    assert [one.step for one in found.findings] == found.met


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"start_step": -1}, r"'start_step' must be a whole number >= 0, got -1"),
        ({"patience": "0"}, r"'patience' must be a whole number >= 1, got '0'"),
        ({"ratio_threshold": "x"}, r"'ratio_threshold' must be a finite number >= 0, got 'x'"),
        (
            {"tensor_regex": "["},
            r"'tensor_regex' must be comma-separated regular expressions, got '\['",
        ),
        ({"literal": "?"}, r"'literal' must be true, false, .* '\?'"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [("T", 1.0)], **params)


@pytest.mark.parametrize(("params", "met"), [({}, True), ({"literal": True}, False)])
def test_a_training_loss_of_zero_is_judged_but_by_the_sentence(
    params: dict[str, Any], met: bool, tmp_path: Path
) -> None:
    training = [0.3, 1e-5, 1e-6, *[0.0] * 11]
    pairs = zip(training, np.linspace(1.5, 1.8, 14).tolist(), strict=True)
    root = saved(tmp_path, [one for train, val in pairs for one in (("T", train), ("E", val))])
    assert bool(judge_to_the_end(Overfit, root, **params).met) is met
