"""ClassImbalance: which counts and mispredictions meet the condition, over which labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, Steps, judge, judge_to_the_end, save

from builtin_rules import ClassImbalance
from builtin_rules.statistics.class_labels import NO_CLASSES, NO_NUMBERS, NO_PAIR
from builtin_rules.tensors.data.class_imbalance import (
    LANGUAGE,
    MANY,
    POSITIONS,
    TOO_FEW,
    TOO_MANY,
)
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError

UNLIKE = "labels of shape (600,), predictions of shape (601,) do not match"
SCORED = "labels of shape (600,), predictions of shape (600, 3) do not match"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def of(**counts: int) -> "np.ndarray":
    """Return so many labels of each class, ``c0=3, c1=2``."""
    return np.repeat([int(name[1:]) for name in counts], list(counts.values()))


def guesses(labels: "np.ndarray", **wrong: int) -> "np.ndarray":
    """Return the labels with so many wrong predictions of each class."""
    predicted = labels.copy()
    for name, count in wrong.items():
        predicted[np.flatnonzero(labels == int(name[1:]))[:count]] = int(name[1:]) + 1
    return predicted


def steps_of(pairs: "list[tuple[np.ndarray, np.ndarray]]") -> Steps:
    return {
        at: {"labels": labels, "predictions": predictions}
        for at, (labels, predictions) in enumerate(pairs)
    }


def judged(root: Path, *pairs: "tuple[np.ndarray, np.ndarray]", **params: Any) -> Judged:
    """Judge labels and predictions of steps 0, 1, 2, ..."""
    return judge(ClassImbalance, save(root, steps_of(list(pairs))), **params)


def perfect(**counts: int) -> "tuple[np.ndarray, np.ndarray]":
    return of(**counts), of(**counts)


def mistaken(labels: "np.ndarray", **wrong: int) -> "tuple[np.ndarray, np.ndarray]":
    return labels, guesses(labels, **wrong)


# -- imbalance -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "met", "met_literally"),
    [
        pytest.param(perfect(c0=990, c1=10), [0], [0], id="documented"),
        pytest.param(perfect(c0=500), [], [], id="one-class"),
        pytest.param(perfect(c0=500, c1=50), [], [], id="equal-is-not-above"),
        pytest.param(perfect(c0=501, c1=50), [], [0], id="by-chance"),
        pytest.param(perfect(c0=5000, c1=300), [0], [0], id="for-sure"),
        pytest.param(perfect(c0=400, c1=99), [], [], id="one-label-short"),
    ],
)
def test_the_largest_class_is_compared_with_the_smallest(
    pair: "tuple[np.ndarray, np.ndarray]", met: list[int], met_literally: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, pair).met == met
    assert judge(ClassImbalance, tmp_path, literal="yes").met == met_literally


@pytest.mark.parametrize("literal", [False, True])
def test_labels_are_collected_over_steps(literal: bool, tmp_path: Path) -> None:
    found = judged(tmp_path, *[perfect(c0=99, c1=1)] * 7, literal=literal)
    assert (found.met, found.skipped) == ([4, 5, 6], dict.fromkeys(range(4), TOO_FEW))


def test_the_latest_labels_are_judged_beside_all(tmp_path: Path) -> None:
    late = [*[perfect(c0=50, c1=50)] * 60, *[perfect(c0=495, c1=5)] * 21]
    assert judged(tmp_path / "late", *late).met == [79, 80]
    assert judge(ClassImbalance, tmp_path / "late", literal=True).met == []
    early = [perfect(c0=9900, c1=100), *[perfect(c0=50, c1=50)] * 6]
    assert judged(tmp_path / "early", *early).met == [*range(7)]


@pytest.mark.parametrize("literal", [False, True])
def test_balanced_classes_are_met_by_chance_to_the_letter_only(
    literal: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    pairs = [(one, one) for one in rng.integers(0, 100, (40, 50))]
    assert bool(judged(tmp_path, *pairs, literal=literal).met) is literal


def test_evidence_names_the_classes(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, perfect(c3=990, c7=10), literal=True).findings
    assert (finding.tensor, finding.measured, finding.limit) == ("labels", 99.0, 10.0)
    assert finding.note == "990 labels of class 3, 10 of class 7."


# -- mispredictions ------------------------------------------------------------------------------

BALANCED = of(c0=50, c1=50)
GOOD, LOST = mistaken(BALANCED), mistaken(BALANCED, c0=50, c1=50)
NEVER, BAD = mistaken(BALANCED, c0=50), mistaken(BALANCED, c0=48)


@pytest.mark.parametrize(
    ("pairs", "met", "literally_until"),
    [
        pytest.param([NEVER] * 25, [23, 24], 25, id="never-right-while-others-are"),
        pytest.param([NEVER] * 23, [], 23, id="a-young-model"),
        pytest.param(([NEVER] * 19 + [GOOD]) * 2, [], 40, id="forgotten-now-and-then"),
        pytest.param([mistaken(BALANCED, c0=50, c1=5)] * 25, [23, 24], 25, id="a-tenth-of-others"),
        pytest.param([mistaken(BALANCED, c0=50, c1=6)] * 28, [], 28, id="more-of-others"),
        pytest.param([BAD] * 30, [28, 29], 30, id="one-class-stays-wrong"),
        pytest.param([GOOD] * 30, [], 0, id="all-right"),
        pytest.param([mistaken(BALANCED, c0=35)] * 30, [], 0, id="equal-is-not-above"),
        pytest.param([mistaken(BALANCED, c0=36)] * 30, [], 30, id="by-chance"),
        pytest.param([LOST] * 30, [], 30, id="nothing-is-learned"),
        pytest.param([BAD] * 28, [], 28, id="too-few-steps-to-tell"),
        pytest.param([BAD] * 5 + [GOOD] * 30, [], 6, id="an-untrained-start"),
        pytest.param([mistaken(of(c0=100), c0=100)] * 30, [], 30, id="no-others"),
    ],
)
def test_a_class_that_stays_mispredicted_meets_it(
    pairs: "list[tuple[np.ndarray, np.ndarray]]",
    met: list[int],
    literally_until: int,
    tmp_path: Path,
) -> None:
    assert judged(tmp_path, *pairs).met == met
    literally = judge(ClassImbalance, tmp_path, literal=True).met
    assert literally[:1] == [4] * (literally_until > 0)
    assert max(literally, default=-1) == literally_until - 1


def test_while_the_model_still_learns_mispredictions_are_none(tmp_path: Path) -> None:
    learns = [mistaken(of(c0=50, c1=50), c0=50, c1=40 - 2 * at) for at in range(20)]
    assert judged(tmp_path, *learns).met == []


def test_evidence_names_the_class_that_is_mispredicted(tmp_path: Path) -> None:
    found = judged(tmp_path, *[BAD] * 5, literal=True).findings
    assert [(one.measured, one.limit, one.note) for one in found] == [
        (0.96, 0.7, "240 of 250 labels of class 0 are mispredicted.")
    ]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    pairs = [
        mistaken(rng.permutation(of(c0=95, c1=5)) if at > 90 else BALANCED) for at in range(130)
    ]
    whole = judged(tmp_path / "whole", *pairs).met
    assert 0 < len(whole) < 26
    for end in (8, 115, 125):
        part = judged(tmp_path / str(end), *pairs[:end]).met
        assert part == [one for one in whole if one < end]


# -- modes, workers, tensors ---------------------------------------------------------------------


@pytest.mark.parametrize(("literal", "met"), [(False, [5]), (True, [])])
def test_each_mode_is_counted_by_itself(literal: bool, met: list[int], tmp_path: Path) -> None:
    pairs = [perfect(c0=99, c1=1) if at % 6 == 5 else perfect(c0=50, c1=50) for at in range(6)]
    modes = {at: EVAL if at % 6 == 5 else TRAIN for at in range(6)}
    root = save(tmp_path, steps_of(pairs), modes=modes)
    assert (
        judge(ClassImbalance, root, samples=100, threshold_imbalance=5, literal=literal).met == met
    )


def test_workers_add_up(tmp_path: Path) -> None:
    for worker, labels in (("worker_0", of(c0=300)), ("worker_1", of(c0=290, c1=5))):
        save(tmp_path, steps_of([(labels, labels)]), worker=worker, num_workers=2)
    (finding,) = judge(ClassImbalance, tmp_path).findings
    assert (finding.worker, finding.note) == (None, "590 labels of class 0, 5 of class 1.")


def test_a_worker_without_predictions_is_left_out(tmp_path: Path) -> None:
    save(tmp_path, steps_of([perfect(c0=300, c1=300)]), num_workers=2)
    save(tmp_path, {0: {"labels": of(c2=1)}}, worker="worker_1", num_workers=2)
    assert judge(ClassImbalance, tmp_path).met == []


PAIRED = {"labels_a": of(c0=300, c1=300), "predictions_a": of(c0=300, c1=300)}
ALONE = {**PAIRED, "labels_b": of(c0=597, c1=3)}


@pytest.mark.parametrize(
    ("tensors", "met"),
    [(ALONE, []), ({**ALONE, "predictions_b": of(c0=600)}, ["labels_b"])],
    ids=["first-of-each", "by-sorted-names"],
)
def test_several_tensors_are_paired(
    tensors: "dict[str, np.ndarray]", met: list[str], tmp_path: Path
) -> None:
    found = judge(ClassImbalance, save(tmp_path, {0: tensors})).findings
    assert [one.tensor for one in found] == met


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        ("labels", "predictions"),
        ("CrossEntropyLoss_input_1", "CrossEntropyLoss_input_0"),
        ("NLLLoss_input_1", "NLLLoss_input_0"),
        ("Bert_input_labels", "Bert_output_logits"),
        ("net/labels:0", "net/predictions:0"),
    ],
)
def test_names_of_all_frameworks_are_found(labels: str, predictions: str, tmp_path: Path) -> None:
    tensors = {labels: of(c0=990, c1=10), predictions: of(c0=1000)}
    assert judge(ClassImbalance, save(tmp_path, {0: tensors})).met == [0]


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        ("CrossEntropyLoss_input_10", "CrossEntropyLoss_input_0"),
        ("Linear_input_1", "Linear_input_0"),
        ("targets", "predictions"),
        ("labels", "Linear_output_0"),
    ],
)
def test_names_of_neither_are_not(labels: str, predictions: str, tmp_path: Path) -> None:
    tensors = {labels: of(c0=990, c1=10), predictions: of(c0=1000)}
    assert judge(ClassImbalance, save(tmp_path, {0: tensors})).skipped == {0: NO_PAIR}


def test_a_pattern_that_is_given_wins(tmp_path: Path) -> None:
    tensors = {"labels": of(c0=1000), "predictions": of(c0=1000), "t_7": of(c0=990, c1=10)}
    root = save(tmp_path, {0: tensors})
    assert judge(ClassImbalance, root).met == []
    assert judge(ClassImbalance, root, labels_regex="^t_", predictions_regex="pred").met == [0]


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        pytest.param({"labels": of(c0=600)}, NO_PAIR, id="no-predictions"),
        pytest.param({"predictions": of(c0=600)}, NO_PAIR, id="no-labels"),
        pytest.param({"labels": of(c0=600), "predictions": of(c0=601)}, UNLIKE, id="lengths"),
        pytest.param(
            {"labels": np.full(600, 0.5), "predictions": of(c0=600)}, NO_CLASSES, id="regression"
        ),
        pytest.param(
            {"labels": np.array(["a"]), "predictions": np.array(["a"])}, NO_NUMBERS, id="text"
        ),
        pytest.param({"labels": np.zeros(0), "predictions": np.zeros(0)}, NO_NUMBERS, id="empty"),
        pytest.param(
            {"labels": np.full(600, -100), "predictions": of(c0=600)},
            "all labels are ignored",
            id="ignored",
        ),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_what_cannot_be_judged_is_skipped(
    tensors: "dict[str, np.ndarray]", reason: str, literal: bool, tmp_path: Path
) -> None:
    found = judge(ClassImbalance, save(tmp_path, {0: tensors}), literal=literal)
    assert (found.met, found.skipped) == ([], {0: reason})


def test_more_classes_are_judged_to_the_letter(tmp_path: Path) -> None:
    pairs = [(classes, classes) for classes in (np.arange(1000), np.arange(1200))]
    assert judged(tmp_path, *pairs).skipped == {0: MANY, 1: TOO_MANY}
    assert judge(ClassImbalance, tmp_path, literal=True).skipped == {1: TOO_MANY}


def test_saved_reductions_do_not_tell(tmp_path: Path) -> None:
    means = {0: {name: {("mean", False): 1.0} for name in ("labels", "predictions")}}
    assert judge(ClassImbalance, save(tmp_path, {}, reductions=means)).skipped == {0: NO_NUMBERS}


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("argmax", "met"), [(True, [0]), ("false", [])])
def test_to_the_letter_argmax_decides(argmax: Any, met: list[int], tmp_path: Path) -> None:
    labels = of(c0=200, c1=400)
    scores = np.eye(3)[np.where(labels == 0, 2, labels)]
    found = judged(tmp_path, (labels, scores), argmax=argmax, literal=True)
    assert (found.met, found.skipped) == (met, {} if met else {0: SCORED})


def test_parameters_may_be_text(tmp_path: Path) -> None:
    params = {"samples": "50.0", "threshold_imbalance": "1", "threshold_misprediction": "1"}
    assert judged(tmp_path, perfect(c0=49), perfect(c0=1, c1=9), **params).met == [1]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold_imbalance": 0.5}, r"'threshold_imbalance' must be a finite number >= 1, got"),
        ({"threshold_misprediction": 70}, r"'threshold_misprediction' must be .* in \[0, 1\], got"),
        ({"samples": "0"}, r"'samples' must be a whole number >= 1, got '0'"),
        ({"argmax": "?"}, r"'argmax' must be true, false, .* '\?'"),
        (
            {"labels_regex": "["},
            r"'labels_regex' must be comma-separated regular expressions, got '\['",
        ),
        (
            {"predictions_regex": "("},
            r"'predictions_regex' must be comma-separated regular expressions, got '\('",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, perfect(c0=1), **params)


# -- labels that are unbalanced by nature ----------------------------------------------------------

UNBALANCED = of(c0=900, c1=10)
SCORES_OF_60 = np.eye(60)[UNBALANCED]


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        pytest.param({"labels": UNBALANCED, "predictions": SCORES_OF_60}, MANY, id="60-classes"),
        pytest.param({"labels": np.arange(510) % 51, "predictions": np.arange(510)}, MANY, id="51"),
        pytest.param(
            {"labels": UNBALANCED.reshape(10, 91), "predictions": np.ones((10, 91, 4))},
            POSITIONS,
            id="tokens-by-row",
        ),
        pytest.param(
            {
                "CrossEntropyLoss_input_1": UNBALANCED,
                "CrossEntropyLoss_input_0": SCORES_OF_60[:, :30],
                "transformer.wte.weight": np.ones(1),
            },
            LANGUAGE,
            id="30-classes-of-a-language-model",
        ),
    ],
)
def test_labels_that_are_unbalanced_by_nature_are_not_judged(
    tensors: "dict[str, np.ndarray]", reason: str, tmp_path: Path
) -> None:
    found = judge(ClassImbalance, save(tmp_path, {0: tensors}))
    assert (found.met, found.skipped) == ([], {0: reason})
    assert judge(ClassImbalance, tmp_path, literal=True, argmax=True, samples=1).skipped == {}


@pytest.mark.parametrize(("rows", "skipped"), [(91, {0: LANGUAGE}), (910, {})])
def test_a_label_for_each_token_of_a_row_is_one_of_a_language_model(
    rows: int, skipped: dict[int, str], tmp_path: Path
) -> None:
    writer = TrialWriter(tmp_path, collections={"input_sequence": "tokens"})
    tokens = np.zeros((rows, 10), np.int64)
    writer.step(0, {"tokens": tokens, "labels": UNBALANCED, "predictions": UNBALANCED})
    writer.close()
    assert judge(ClassImbalance, tmp_path).skipped == skipped


@pytest.mark.parametrize(
    ("pair", "evaluations", "met"),
    [
        pytest.param(perfect(c0=14, c1=1), 200, False, id="15-rows"),
        pytest.param(mistaken(of(c0=14, c1=1), c1=1), 200, False, id="15-rows-one-is-wrong"),
        pytest.param(perfect(c0=89, c1=2), 20, True, id="91-rows"),
    ],
)
def test_repeated_evaluations_of_a_few_rows_prove_little(
    pair: "tuple[np.ndarray, np.ndarray]", evaluations: int, met: bool, tmp_path: Path
) -> None:
    modes = dict.fromkeys(range(evaluations), EVAL)
    save(tmp_path, steps_of([pair] * evaluations), modes=modes)
    assert bool(judge(ClassImbalance, tmp_path).met) is met
    assert judge(ClassImbalance, tmp_path, literal=True).met != []


@pytest.mark.parametrize("index", [-100, -1, 255])
def test_an_ignore_index_is_no_class(index: int, tmp_path: Path) -> None:
    labels = np.concatenate([of(c0=300, c1=300), np.full(20, index)])
    tensors = {"labels": labels, "predictions": np.eye(2)[labels % 2]}
    found = judge(ClassImbalance, save(tmp_path, {0: tensors}))
    assert (found.met, found.skipped) == ([], {})


# -- answers of one class ------------------------------------------------------------------------


def answered(root: Path, answer: Any, *, loss: float, steps: int = 40, **params: Any) -> Judged:
    """Judge batches of three classes, whose answers `answer` makes of the step and the labels."""
    labels = of(c0=12, c1=10, c2=10)
    content = {
        step: {"labels": labels, "predictions": answer(step, labels), "loss": np.float32(loss)}
        for step in range(steps)
    }
    return judge_to_the_end(ClassImbalance, save(root, content), **params)


def flipping(step: int, labels: "np.ndarray") -> "np.ndarray":
    return np.full_like(labels, step % 3)


def seldom_right(step: int, labels: "np.ndarray") -> "np.ndarray":
    return labels if step % 2 else np.zeros_like(labels)


def test_answers_that_know_nothing_of_the_input_are_of_one_class(tmp_path: Path) -> None:
    result = answered(tmp_path, flipping, loss=1.2)
    assert [(found.step, found.note) for found in result.findings][-1:] == [
        (0, "All predictions of a step are of one class, whatever the input.")
    ]


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        pytest.param(flipping, {"loss": 1.0}, id="the loss knows more than the shares"),
        pytest.param(flipping, {"loss": np.nan}, id="no loss"),
        pytest.param(flipping, {"loss": 1.2, "steps": 19}, id="few steps"),
        pytest.param(flipping, {"loss": 1.2, "samples": 5000}, id="few labels"),
        pytest.param(seldom_right, {"loss": 1.2}, id="half of the steps"),
        pytest.param(flipping, {"loss": 1.2, "literal": True}, id="literal"),
    ],
)
def test_other_answers_are_not_of_one_class(
    answer: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    notes = [found.note for found in answered(tmp_path, answer, **options).findings]
    assert "All predictions of a step are of one class, whatever the input." not in notes


@pytest.mark.parametrize(("every", "met"), [(100, True), (15, False)])
def test_a_rare_class_that_is_never_predicted(every: int, met: bool, tmp_path: Path) -> None:
    """Among 500 labels it has 15, too few to be certain; those before count too."""
    random = np.random.default_rng(0)
    labels = [random.permutation(of(c0=97, c1=3)) for _ in range(50)]
    pairs = [
        mistaken(batch, **({"c1": 3} if step % every else {})) for step, batch in enumerate(labels)
    ]
    found = judged(tmp_path, *pairs, threshold_imbalance=1000).findings
    assert any("mispredicted" in (each.note or "") for each in found) == met
