"""Confusion: a class is too often predicted for others and does not improve."""

import re
from collections.abc import Iterator
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.class_labels import (
    LABELS_OF_LOSS,
    NO_PAIR,
    PREDICTIONS_OF_LOSS,
    LabelledClasses,
    are_tokens,
    classes,
    label_prediction_pairs,
)
from builtin_rules.statistics.confusion_matrix import (
    MIN_BLOCKS,
    MOST_CLASSES,
    ColumnShare,
    ConfusionLimits,
    MatrixHistory,
    block,
    counted,
    worst,
)
from builtin_rules.statistics.parameters import Declared, count, share
from builtin_rules.statistics.tensor_selection import LITERAL, SavedTensor, mode_of, tensor_names
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity, TensorInput, TextParam

DIAGONAL: Final = "diagonal"
BESIDE: Final = "off-diagonal"
TOO_FEW: Final = f"too few samples so far: {MIN_BLOCKS} matrices are compared"
TOO_MANY: Final = f"more than {MOST_CLASSES} classes"
FILLING: Final = "the current matrix has too few samples or steps"
LANGUAGE: Final = "labels of a language model are tokens, which confuse each other by nature"
EVALUATED: Final = "a training step: only evaluations are judged"


def _name(meaning: str, default: str) -> Declared[str]:
    allowed = "the name of a tensor or collection"
    return Declared(TextParam("", meaning, default=default, allowed=allowed))


def _is_standard(name: str, collection: str) -> bool:
    """Return whether both parameters have defaults, so that inputs of a loss are used too."""
    return {name, collection} <= {CollectionKeys.LABELS, CollectionKeys.PREDICTIONS}


def _input(name: str, collection: str, pattern: str) -> TensorInput:
    """Return the tensor of this name, those of the collection or, by default, of a loss."""
    patterns = (f"^{re.escape(name)}$", *[pattern] * _is_standard(name, collection))
    return TensorInput(name, tuple(dict.fromkeys((name, collection))), patterns)


class Confusion(DeclaredRule):
    """Met when a share of the confusion matrix is below `min_diag` or above `max_off_diag`.

    The matrix counts samples by label and prediction. Shares are relative to a column, that is, to
    all samples predicted as one class. The share on the diagonal (correct predictions) must be at
    least `min_diag`, every other share at most `max_off_diag`. A class with labels that is never
    predicted has the share 0 on the diagonal.

    With `literal`, each step and worker has its own matrix, and a class that is never predicted is
    skipped. By default a matrix holds the samples of all workers of a whole evaluation, or of ten
    training steps, but at least 15 samples per class. Training is judged only until there are
    evaluations. Without modes, a step with the same labels as the step before, as in boosting, is
    an evaluation.

    Only confusion that is beyond chance and lasts is reported. The bound of the share (a Wilson
    bound, wrong in one of a hundred matrices) must exceed the limit in every matrix of the latest
    half of the run, which needs at least five matrices. In that half, the model must not have lost
    a fifth of its errors, nor a twentieth of them beyond chance. Tasks with noise are wrong in each
    class, and more often in those that are rare or alike. So the predictions of the class must
    surely be wrong in most cases, or most samples of the class that is most often mistaken for it,
    if at least half as frequent, must surely be among them. Or two of several classes are mostly
    mistaken for each other, and the class is surely wrong three times as often as the median class.
    The bound must still exceed the limit if the class and all errors kept improving for as long
    again. And all this must already hold one matrix earlier. So a young model is not reported.
    Steps saved before the first judged one count too.

    If `min_diag` or `max_off_diag` is given, this share is judged as with `literal`.

    Labels that are not integers are not classes (regression). Samples with label -100 are left out.
    Predictions with NaN are not judged (`ExplodingTensor` reports them).
    """

    READS = (
        "the labels and predictions of classification: values. By default the tensors or "
        "collections of these names, or else the inputs of a loss "
        "(`..._input_1`, `..._input_0`)."
    )
    SAVED = ("labels", "predictions")
    category_no = count(
        "Number of classes; by default inferred from labels and predictions.",
        None,
        "classes",
        minimum=2,
    )
    labels = _name("Name of the tensor, or a collection, of true classes.", "labels")
    predictions = _name(
        "Name of the tensor, or a collection, of predicted classes or their scores.", "predictions"
    )
    labels_collection = _name(
        "Collection of the labels, used if `labels` was not saved.", CollectionKeys.LABELS
    )
    predictions_collection = _name(
        "Collection of the predictions, used if `predictions` was not saved.",
        CollectionKeys.PREDICTIONS,
    )
    min_diag = share(
        "Smallest accepted share of correct predictions of a class.", 0.9, "share of a column"
    )
    max_off_diag = share(
        "Largest accepted share of another label among the predictions of a class.",
        0.1,
        "share of a column",
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(
            DIAGONAL, "correct predictions of the worst class (share, at most)", worse="below"
        ),
        Quantity(BESIDE, "largest share of one wrong label (at least)", worse="above"),
    )

    def _prepare(self) -> None:
        # Name, collection and pattern.
        self._labels = self.labels, self.labels_collection, LABELS_OF_LOSS
        self._predictions = self.predictions, self.predictions_collection, PREDICTIONS_OF_LOSS
        self.required_inputs = (_input(*self._labels), _input(*self._predictions))
        self._limits = ConfusionLimits(self.min_diag, self.max_off_diag)
        # The sides (on the diagonal or not) whose limits apply to each matrix alone.
        sides = {True: "min_diag", False: "max_off_diag"}
        self._alone = {side for side, name in sides.items() if self.binds(name)}
        # By prediction tensor and mode.
        self._histories: dict[tuple[str, ModeKeys], MatrixHistory] = {}
        self._has_started = False
        self._evaluates = False

    def invoke_at_step(self, step: int) -> bool:
        """Judge the labels and predictions of global step `step`."""
        lasting = len(self._alone) < len(self.QUANTITIES)
        if not self._has_started and lasting:
            for earlier in self.base_trial.steps():
                if earlier < step:
                    self._take(earlier, judge=False)
        self._has_started = True
        answers = [self._judge_alone(step)] if self._alone else []
        answers += [self._take(step, judge=True)] if lasting else []
        judged = [answer for answer in answers if isinstance(answer, bool)]
        return any(judged) if judged else self.not_judged(str(answers[0]))

    def _judge_alone(self, step: int) -> bool | str:
        """Judge the matrix of each worker at one step, or return why there is none."""
        answers, reason = [], NO_PAIR
        for saved, sample in self._classes(step):
            if isinstance(sample, str):
                reason = sample
                continue
            shares = block(counted(sample, self._size(sample)), literal=True)
            for (_, side), column in worst(shares, self._limits, set()).items():
                if side not in self._alone:
                    continue
                met = self._limits.excess(column, column.bound) > 0
                answers.append(self._report(step, column, saved.name, saved.worker, met=met))
        return any(answers) if answers else reason

    def _take(self, step: int, *, judge: bool) -> bool | str:
        """Add the samples of a step and judge complete matrices, or return why there are none."""
        mode = first_mode = self.base_trial.mode(step)
        if len(self.base_trial.modes_at(step)) > 1:
            mode = mode_of(self.base_trial, step, self._names(step, *self._labels))
        if first_mode is not ModeKeys.EVAL:
            self._end_evaluation()
        if mode is ModeKeys.TRAIN and self._evaluates:
            return EVALUATED
        reason, names = NO_PAIR, set[str]()
        for saved, sample in self._classes(step):
            if isinstance(sample, str):
                reason = sample
                continue
            if are_tokens(self.base_trial, sample, step):
                reason = LANGUAGE
                continue
            history = self._histories.setdefault(
                (saved.name, mode), MatrixHistory(mode, self._limits)
            )
            history.add(sample, self._size(sample), step)
            names.add(saved.name)
        if not names:
            return reason
        self._evaluates = self._evaluates or mode is ModeKeys.EVAL
        answers = [self._judge(step, name, mode, judge=judge) for name in sorted(names)]
        judged = [saved for saved in answers if isinstance(saved, bool)]
        return any(judged) if judged else answers[0]

    def _end_evaluation(self) -> None:
        for (_, mode), history in self._histories.items():
            if mode is ModeKeys.EVAL and history.is_full:
                history.close()

    def _judge(self, step: int, name: str, mode: ModeKeys, *, judge: bool) -> bool | str:
        """Judge the current matrix if it is whole, or return why not."""
        history = self._histories[name, mode]
        if not history.is_whole:
            return FILLING
        judged = history.judge() if judge else []
        if mode is not ModeKeys.EVAL:
            history.close()
        answers = [
            self._report(step, column, name, None, met=met)
            for column, met in judged
            if column.on_diagonal not in self._alone
        ]
        return any(answers) if answers else TOO_FEW

    # -- shared by both ----------------------------------------------------------------------------

    def _classes(self, step: int) -> Iterator[tuple[SavedTensor, LabelledClasses | str]]:
        """Yield each worker's predictions with the classes, or why there are none."""
        labels = self._names(step, *self._labels)
        predictions = self._names(step, *self._predictions)
        for labelled, predicted in label_prediction_pairs(
            self.base_trial, step, labels, predictions
        ):
            result = classes(labelled, predicted, step)
            yield predicted, result if isinstance(result, str) else self._fitting(result)

    def _names(self, step: int, name: str, collection: str, pattern: str) -> list[str]:
        """Return the tensor of this name, those of the collection or, by default, of a loss."""
        trial = self.base_trial
        if name in trial.tensor_names(step=step):
            return [name]
        names = tensor_names(trial, step, [name], []) or tensor_names(trial, step, [collection], [])
        return names or tensor_names(trial, step, [], [pattern] * _is_standard(name, collection))

    def _size(self, sample: LabelledClasses) -> int:
        """Return the number of classes: the parameter, or what labels and predictions imply."""
        highest = 1 + int(max(sample.labels.max(), sample.predictions.max()))
        return self.category_no or max(highest, sample.scored)

    def _fitting(self, sample: LabelledClasses) -> LabelledClasses | str:
        """Return classes that a matrix can hold, or why it cannot."""
        highest = int(max(sample.labels.max(), sample.predictions.max()))
        if self.category_no and highest >= self.category_no:
            return f"class {highest} is none of {self.category_no} classes"
        return TOO_MANY if self._size(sample) > MOST_CLASSES else sample

    def _report(
        self, step: int, column: ColumnShare, name: str, worker: str | None, *, met: bool
    ) -> bool:
        quantity, limit = DIAGONAL if column.on_diagonal else BESIDE, self._limits.of(column)
        key = name, worker
        return self.record(key, step, quantity, column.bound, limit, met=met, note=column.note)
