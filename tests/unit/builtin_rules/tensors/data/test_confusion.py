"""Confusion: which matrices meet the condition, at which steps, and what is no matrix."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, opened, save

from builtin_rules import Confusion
from builtin_rules.statistics.class_labels import NO_CLASSES, NO_NUMBERS, NO_PAIR, LabelledClasses
from builtin_rules.statistics.confusion_matrix import ColumnShare, ConfusionLimits, MatrixHistory
from builtin_rules.tensors.data.confusion import (
    BESIDE,
    DIAGONAL,
    EVALUATED,
    FILLING,
    TOO_FEW,
    TOO_MANY,
)
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
Pair = tuple[Any, Any]
TEN = np.arange(10)
ONE_WRONG = np.where(TEN == 4, 7, TEN)


def saved_pairs(pairs: Mapping[int, Pair]) -> dict[int, dict[str, Any]]:
    return {at: {"labels": known, "predictions": told} for at, (known, told) in pairs.items()}


def judged(root: Path, pairs: "list[Pair]", **params: Any) -> Judged:
    """Judge labels and predictions of the steps 0, 1, 2..."""
    return judge(Confusion, save(root, saved_pairs(dict(enumerate(pairs)))), **params)


def mixed(right: int, *, classes: int = 3, each: int = 40, first: int = 0) -> Pair:
    """Return labels and predictions: so many of class 0 are right, the rest is taken for 1.

    `first` samples of class 1 are taken for 0.
    """
    labels = np.repeat(np.arange(classes), each)
    predictions = labels.copy()
    predictions[right:each] = 1
    predictions[each : each + first] = 0
    return labels, predictions


GOOD, BAD = mixed(40), mixed(10)
ABSENT = mixed(0)  # 0 is never predicted
NOISE = np.random.default_rng(0).integers(0, 10, 100)

# -- to the letter -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "predictions", "params", "met"),
    [
        pytest.param(NOISE, NOISE, {}, [], id="perfect"),
        pytest.param(TEN, ONE_WRONG, {}, [0], id="one-wrong-of-ten"),
        pytest.param(TEN, ONE_WRONG, {"min_diag": 0, "max_off_diag": 0.01}, [0], id="beside"),
        pytest.param(TEN, ONE_WRONG, {"min_diag": 0, "max_off_diag": 0.5}, [], id="equal-beside"),
        pytest.param(TEN, ONE_WRONG, {"min_diag": 0.5, "max_off_diag": 1}, [], id="equal-diagonal"),
        pytest.param(TEN, ONE_WRONG, {"min_diag": 0.51, "max_off_diag": 1}, [0], id="diagonal"),
        pytest.param([0] * 10, [0] * 10, {}, [], id="one-class"),
        pytest.param(
            [0, 1, 1], [0, 0, 0], {"min_diag": 0.3, "max_off_diag": 0.7}, [], id="empty-column"
        ),
        pytest.param([0] * 9 + [1], [0] * 10, {}, [], id="ninety-percent"),
        pytest.param([0] * 89 + [1] * 11, [0] * 100, {}, [0], id="eighty-nine-percent"),
    ],
)
def test_to_the_letter_each_step_is_a_matrix(
    labels: Any, predictions: Any, params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    pair = np.array(labels), np.array(predictions)
    assert judged(tmp_path, [pair], literal=True, **params).met == met


@pytest.mark.parametrize(
    "pair", [(NOISE, NOISE), (TEN, ONE_WRONG), (TEN, TEN + 1)], ids=["perfect", "one", "all"]
)
def test_one_small_step_proves_nothing(pair: Pair, tmp_path: Path) -> None:
    found = judged(tmp_path, [pair])
    assert (found.met, set(found.skipped)) == ([], {0})


def test_to_the_letter_each_worker_has_a_matrix(tmp_path: Path) -> None:
    save(tmp_path, saved_pairs({0: (TEN, TEN)}), num_workers=2)
    save(tmp_path, saved_pairs({0: (TEN, ONE_WRONG)}), num_workers=2, worker="worker_1")
    found = judge(Confusion, tmp_path, literal=True, max_off_diag=1)
    note = "Predictions of class 7: 1 of 2 are correct."
    assert found.findings == [
        Finding(0, "predictions", "worker_1", 0.5, 0.9, note, Severity.WARNING)
    ]


def test_evidence_names_classes_and_counts(tmp_path: Path) -> None:
    found = judged(tmp_path, [(TEN, ONE_WRONG)], literal=True, min_diag=0)
    note = "Predictions of class 7: 1 of 2 are labelled 4."
    assert found.findings == [
        Finding(0, "predictions", "worker_0", 0.5, 0.1, note, Severity.WARNING)
    ]


# -- by the matrices so far ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "met"),
    [
        pytest.param([BAD] * 8, [6, 7], id="stays-bad"),
        pytest.param([GOOD] * 8, [], id="stays-good"),
        pytest.param([BAD] * 6, [], id="five-are-too-few"),
        pytest.param([ABSENT] * 8, [6, 7], id="a-class-that-is-never-predicted"),
        pytest.param([BAD] * 7 + [GOOD] + [BAD] * 9, [6, 15, 16], id="good-within-the-half"),
        pytest.param([mixed(one) for one in (5, 5, 10, 15, 20, 25, 30, 35)], [], id="gets-better"),
        pytest.param([mixed(40, first=2)] * 9, [], id="within-the-limits"),
        pytest.param([mixed(40, first=5)] * 9, [], id="by-chance"),
        pytest.param([mixed(10, first=30)] * 9, [6, 7, 8], id="beyond-chance"),
        pytest.param([mixed(40, each=400, first=60)] * 8, [6, 7], id="many-samples-tell-more"),
        pytest.param([GOOD] * 6 + [BAD] * 7, [11, 12], id="becomes-bad"),
        pytest.param([mixed(3, each=10)] * 9, [], id="too-few-samples-for-four-matrices"),
    ],
)
def test_what_stays_bad_meets_it(pairs: "list[Pair]", met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, pairs).met == met


def test_steps_are_pooled_until_there_are_15_samples_a_class(tmp_path: Path) -> None:
    found = judged(tmp_path, [mixed(0, each=8)] * 12)
    assert found.met == [11]
    assert found.skipped == {
        **dict.fromkeys((0, 2, 4, 6, 8, 10), FILLING),
        **dict.fromkeys((1, 3, 5, 7), TOO_FEW),
    }


def other_order(pair: Pair, seed: int) -> Pair:
    order = np.random.default_rng(seed).permutation(len(pair[0]))
    return pair[0][order], pair[1][order]


@pytest.mark.parametrize("mode", [ModeKeys.GLOBAL, TRAIN])
def test_batches_of_training_are_pooled_by_tens(mode: ModeKeys, tmp_path: Path) -> None:
    steps = {at: other_order(BAD, at) for at in range(60)}
    save(tmp_path, saved_pairs(steps), modes=dict.fromkeys(range(60), mode))
    assert judge(Confusion, tmp_path).met == [59]


def test_the_same_batch_again_is_training_in_mode_train(tmp_path: Path) -> None:
    steps = saved_pairs(dict.fromkeys(range(60), BAD))
    save(tmp_path, steps, modes=dict.fromkeys(range(60), TRAIN))
    assert judge(Confusion, tmp_path).met == [59]


def test_workers_add_up(tmp_path: Path) -> None:
    for worker in ("worker_0", "worker_1"):
        steps = saved_pairs(dict.fromkeys(range(8), mixed(0, each=8)))
        save(tmp_path, steps, worker=worker, num_workers=2)
    found = judge(Confusion, tmp_path)
    assert (found.met, {one.worker for one in found.findings}) == ([6, 7], {None})


def evaluated(root: Path, phases: "list[list[Pair]]", train: Pair = BAD, **params: Any) -> Judged:
    """Judge phases of evaluation with a step of training before each and behind the last."""
    pairs: list[Pair] = []
    modes: list[ModeKeys] = []
    for phase in phases:
        pairs += [train, *phase]
        modes += [TRAIN, *[EVAL] * len(phase)]
    steps = saved_pairs(dict(enumerate([*pairs, train])))
    save(root, steps, modes=dict(enumerate([*modes, TRAIN])))
    return judge(Confusion, root, **params)


def test_once_there_are_evaluations_training_is_not_judged(tmp_path: Path) -> None:
    found = evaluated(tmp_path, [[GOOD]] * 6)
    assert (found.met, found.skipped[0]) == ([], FILLING)
    assert {found.skipped[at] for at in range(2, 13, 2)} == {EVALUATED}


def test_training_is_judged_until_there_are_evaluations(tmp_path: Path) -> None:
    steps = saved_pairs({**dict.fromkeys(range(60), BAD), 60: GOOD, 61: BAD})
    save(tmp_path, steps, modes=dict.fromkeys([*range(60), 61], TRAIN) | {60: EVAL})
    assert judge(Confusion, tmp_path).met == [59]


def test_an_evaluation_is_one_matrix_and_judged_once_it_is_as_large(tmp_path: Path) -> None:
    # Its labels come class by class: parts of it look confused.
    zeros, ones = np.zeros(40, int), np.ones(40, int)
    phase = [(zeros, np.r_[zeros[:38], ones[:2]]), (ones, ones)]
    found = evaluated(tmp_path, [phase] * 6, train=GOOD)
    assert (found.met, sorted(set(range(19)) - set(found.skipped))) == ([], [14, 17])


def test_evaluations_that_stay_bad_meet_it(tmp_path: Path) -> None:
    assert evaluated(tmp_path, [[BAD, ABSENT]] * 6, train=GOOD).met == [17]


def test_a_short_evaluation_is_pooled_with_the_next(tmp_path: Path) -> None:
    found = evaluated(tmp_path, [[mixed(0, each=8)]] * 12, train=GOOD)
    assert found.met == [23]


def test_what_was_saved_before_the_walk_counts(tmp_path: Path) -> None:
    whole = evaluated(tmp_path, [[BAD]] * 6)
    late = judge(Confusion, tmp_path, start=11)
    assert (whole.met, late.met) == ([11], [11])
    assert late.skipped == {12: EVALUATED}


def test_modes_are_counted_apart(tmp_path: Path) -> None:
    modes = {at: (ModeKeys.GLOBAL, ModeKeys.PREDICT)[at % 2] for at in range(8)}
    save(tmp_path, saved_pairs(dict.fromkeys(range(8), BAD)), modes=modes)
    assert judge(Confusion, tmp_path).met == []


def test_tensors_are_counted_apart(tmp_path: Path) -> None:
    pair = {"a_loss_input_1": BAD[0], "a_loss_input_0": BAD[1]}
    other = {"b_loss_input_1": GOOD[0], "b_loss_input_0": GOOD[1]}
    found = judge(Confusion, save(tmp_path, dict.fromkeys(range(7), pair | other)))
    assert found.met == [6]
    assert {one.tensor for one in found.findings} == {"a_loss_input_0"}


@pytest.mark.parametrize("start", [5, 9, 30])
def test_no_later_step_is_read(start: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(start)
    pairs = [mixed(int(one)) for one in rng.integers(0, 41, 40)]
    whole = judged(tmp_path / "whole", pairs).met
    cut = judged(tmp_path / "cut", pairs[:start]).met
    assert cut == [at for at in whole if at < start]


def test_of_a_long_run_some_matrices_are_kept(tmp_path: Path) -> None:
    pairs = [GOOD] * 60 + [BAD] * 90
    assert judged(tmp_path, pairs).met[0] == pytest.approx(120, abs=4)


def test_a_run_that_loses_its_errors_is_not_accused(tmp_path: Path) -> None:
    # Class 0 is as bad as ever, but of all errors ever fewer are left.
    def pair(wrong: int) -> Pair:
        labels, predictions = mixed(40, classes=30, first=40)
        for at in range(2, 30):
            predictions[40 * at : 40 * at + wrong] = at + 1 if at < 29 else 2
        return labels, predictions

    assert judged(tmp_path / "a", [pair(4)] * 7).met == [6]
    falling = [pair(one) for one in (4, 4, 4, 4, 4, 4, 2)]
    assert judged(tmp_path / "b", falling).met == []


@pytest.mark.parametrize(
    ("on_diagonal", "hits", "before", "factor", "expected"),
    [
        pytest.param(True, 60, 60, 1.0, 0.7, id="as-it-was"),
        pytest.param(True, 60, 50, 1.0, 0.8, id="with-the-gain"),
        pytest.param(True, 60, 70, 1.0, 0.7, id="no-loss-is-expected"),
        pytest.param(True, 60, 20, 1.0, 1.0, id="one-at-most"),
        pytest.param(True, 60, 60, 0.5, 0.85, id="with-fewer-errors"),
        pytest.param(False, 60, 60, 1.0, 0.7, id="beside-as-it-was"),
        pytest.param(False, 60, 70, 1.0, 0.6, id="beside-with-the-gain"),
        pytest.param(False, 60, 50, 1.0, 0.7, id="beside-no-loss-is-expected"),
        pytest.param(False, 0, 100, 1.0, 0.0, id="beside-nothing-at-least"),
        pytest.param(False, 60, 60, 0.5, 0.35, id="beside-with-fewer-errors"),
    ],
)
def test_extrapolated_bound(
    on_diagonal: bool, hits: int, before: int, factor: float, expected: float
) -> None:
    label = 0 if on_diagonal else 1
    now, then = ColumnShare(label, 0, hits, 100, 0.7), ColumnShare(label, 0, before, 100, 0.9)
    assert now.extrapolated(then, factor) == pytest.approx(expected)


def test_a_class_that_is_never_predicted_is_named(tmp_path: Path) -> None:
    found = judged(tmp_path, [ABSENT] * 7, max_off_diag=1)
    assert [one.note for one in found.findings] == [
        "Class 0 is never predicted, but 40 samples have this label."
    ]


@pytest.mark.parametrize(("length", "kept"), [(60, 32), (400, 32)])
def test_of_long_runs_a_bounded_number_of_matrices_is_kept(length: int, kept: int) -> None:
    history = MatrixHistory(ModeKeys.GLOBAL, ConfusionLimits(0.9, 0.1))
    labels, predictions = BAD
    for step in range(length):
        history.add(LabelledClasses(labels, predictions, 0), 3, step)
        history.close()
        assert len(history._kept) <= kept


# -- what is no matrix ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        pytest.param((TEN / 7, TEN / 7), NO_CLASSES, id="regression"),
        pytest.param((TEN, np.zeros((10, 12)) * np.nan), "predictions with NaN", id="nan"),
        pytest.param((TEN, np.array(["a"] * 10)), NO_NUMBERS, id="text"),
        pytest.param((np.zeros(0), np.zeros(0)), NO_NUMBERS, id="empty"),
        pytest.param((TEN, TEN + 1000), TOO_MANY, id="too-many-classes"),
        pytest.param(
            (TEN, TEN[:4]),
            "labels of shape (10,), predictions of shape (4,) do not match",
            id="lengths-differ",
        ),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_what_cannot_be_judged_is_skipped(
    pair: Pair, reason: str, literal: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, [pair] * 5, literal=literal)
    assert (found.met, found.skipped) == ([], dict.fromkeys(range(5), reason))


def test_steps_that_cannot_be_judged_leave_the_others_alone(tmp_path: Path) -> None:
    nan = np.arange(3), np.full((3, 3), np.nan)
    found = judged(tmp_path, [BAD, nan, BAD, BAD, nan, BAD, BAD, BAD, BAD])
    assert found.met == [8]


def test_a_step_without_labels_is_skipped(tmp_path: Path) -> None:
    steps = {0: {"predictions": TEN}, 1: {"labels": TEN}, 2: {"loss": np.ones(1)}}
    save(tmp_path, steps)
    assert judge(Confusion, tmp_path).skipped == dict.fromkeys(range(3), NO_PAIR)


def test_reductions_are_no_classes(tmp_path: Path) -> None:
    means = {0: {name: {("mean", False): 0.5} for name in ("labels", "predictions")}}
    assert judge(Confusion, save(tmp_path, {}, reductions=means)).skipped == {0: NO_NUMBERS}


def test_batches_of_other_shapes_and_classes_are_counted_together(tmp_path: Path) -> None:
    labels, predictions = BAD
    scores = np.eye(3)[predictions]
    pairs = [BAD, (labels[:, None], scores), (labels, scores.astype(ml_dtypes.bfloat16))]
    found = judged(tmp_path, [*pairs, *pairs, (labels, np.eye(5)[predictions])])
    assert found.met == [6]


# -- parameters ----------------------------------------------------------------------------------


def renamed(root: Path, labels: str, predictions: str, pair: Pair = (TEN, ONE_WRONG)) -> Path:
    return save(root, {0: {labels: pair[0], predictions: pair[1]}})


@pytest.mark.parametrize(
    ("names", "params", "met"),
    [
        (("labels", "predictions"), {}, [0]),
        (("CrossEntropyLoss_input_1", "CrossEntropyLoss_input_0"), {}, [0]),
        (("softmaxcrossentropyloss0_input_1", "softmaxcrossentropyloss0_input_0"), {}, [0]),
        (("y", "p"), {"labels": "y", "predictions": "p"}, [0]),
        (("loss_y", "loss_p"), {"labels": "losses", "predictions": "losses"}, []),
        (("gradient_y", "loss_p"), {"labels": "gradients", "predictions": "losses"}, [0]),
        (
            ("gradient_y", "loss_p"),
            {"labels_collection": "gradients", "predictions_collection": "losses"},
            [0],
        ),
        # decoys
        (("y", "p"), {}, []),
        (("Linear_input_1", "Linear_input_0"), {}, []),
        (("old_labels", "old_predictions"), {}, []),
        (("CrossEntropyLoss_input_1", "CrossEntropyLoss_input_0"), {"labels": "y"}, []),
        (("labels", "predictions"), {"predictions": "p", "predictions_collection": "q"}, []),
    ],
)
def test_names_of_tensors_and_collections(
    names: tuple[str, str], params: dict[str, str], met: list[int], tmp_path: Path
) -> None:
    assert judge(Confusion, renamed(tmp_path, *names), literal=True, **params).met == met


@pytest.mark.parametrize(
    ("category_no", "skipped"),
    [
        ("10", {}),
        (20, {}),
        (9, {0: "class 9 is none of 9 classes"}),
        (1001, {0: TOO_MANY}),
    ],
)
def test_the_number_of_classes_may_be_given(
    category_no: Any, skipped: dict[int, str], tmp_path: Path
) -> None:
    found = judge(
        Confusion,
        renamed(tmp_path, "labels", "predictions"),
        category_no=category_no,
        literal=True,
    )
    assert found.skipped == skipped


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"category_no": 1}, "'category_no' must be a whole number >= 2, got 1"),
        ({"min_diag": 1.1}, r"'min_diag' must be a finite number in \[0, 1\], got 1.1"),
        ({"max_off_diag": "x"}, r"'max_off_diag' must be a finite number in \[0, 1\], got 'x'"),
        ({"labels": 7}, "'labels' must be the name of a tensor or collection, got 7"),
    ],
)
def test_bad_parameters_are_one_sentence(
    params: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [(TEN, TEN)], **params)


def test_both_quantities_are_measured_met_or_not(tmp_path: Path) -> None:
    save(tmp_path, saved_pairs(dict.fromkeys(range(6), mixed(40, first=2))))
    rule = Confusion(opened(tmp_path))
    for step in range(6):
        rule.invoke_at_step(step)
    found = {
        (one.step, one.quantity, met)
        for one in rule.take_measurements()
        for _, _, met in one.points
    }
    assert found == {(at, name, False) for at in (5,) for name in (DIAGONAL, BESIDE)}


# -- noise of the task, and models that still learn ------------------------------------------------


def noisy(right: float, others: float, classes: int, per_class: int = 200) -> Any:
    """Return labels and predictions of which class 0 is right so often, and the others."""
    labels = np.repeat(np.arange(classes), per_class)
    shares = np.where(labels == 0, right, others)
    is_right = np.tile(np.arange(per_class), classes) < shares * per_class
    return labels, np.where(is_right, labels, (labels + 1) % classes)


def evaluations(root: Path, pairs: list[Any]) -> Path:
    """Save an evaluation of each pair of labels and predictions, after a step of training."""
    steps: dict[int, dict[str, Any]] = {}
    for at, (labels, predictions) in enumerate(pairs):
        steps |= {2 * at: {"loss": 1.0}, 2 * at + 1: {"labels": labels, "predictions": predictions}}
    modes = {at: ModeKeys.EVAL if at % 2 else ModeKeys.TRAIN for at in steps}
    return save(root, steps, modes=modes)


@pytest.mark.parametrize(
    ("right", "others", "classes", "met"),
    [
        pytest.param(0.8, 0.8, 2, False, id="label-noise"),
        pytest.param(0.65, 0.8, 2, False, id="the-rare-class-is-worse"),
        pytest.param(0.75, 0.75, 10, False, id="noise-in-ten-classes"),
        pytest.param(0.5, 0.97, 10, False, id="a-class-is-harder"),
        pytest.param(0.0, 0.8, 4, True, id="never-right"),
        pytest.param(0.33, 0.33, 3, True, id="nothing-is-learned"),
    ],
)
def test_noise_in_all_classes_is_not_confusion(
    right: float, others: float, classes: int, met: bool, tmp_path: Path
) -> None:
    evaluations(tmp_path, [noisy(right, others, classes)] * 12)
    assert bool(judge(Confusion, tmp_path).met) is met
    assert judge(Confusion, tmp_path, literal=True).met == [*range(1, 24, 2)]


def test_a_model_that_learns_slowly_is_not_confused(tmp_path: Path) -> None:
    accuracies = [0.05 + 0.04 * at for at in range(20)]
    evaluations(tmp_path, [noisy(share, share, 10) for share in accuracies])
    assert judge(Confusion, tmp_path).met == []
