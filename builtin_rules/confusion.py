"""Confusion: some class is too often predicted for others, and gets no better."""

from collections.abc import Iterator
from typing import Any, Final

from builtin_rules.classes import (
    LABELS_OF_LOSS,
    NO_PAIR,
    PREDICTIONS_OF_LOSS,
    Classes,
    classes,
    paired,
)
from builtin_rules.matrices import (
    BLOCKS,
    MOST_CLASSES,
    Column,
    History,
    Limits,
    block,
    counted,
    worst,
)
from builtin_rules.selection import LITERAL, Saved, named
from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, TextParam, set_parameters

DIAGONAL: Final = "diagonal"
BESIDE: Final = "off-diagonal"
TOO_FEW: Final = f"too few samples so far: {BLOCKS} matrices are compared"
TOO_MANY: Final = f"more than {MOST_CLASSES} classes"
FILLING: Final = "the matrix in hand has too few samples or steps"
EVALUATED: Final = "evaluations are judged, and this is training"


def _name(name: str, meaning: str, default: str) -> TextParam:
    return TextParam(name, meaning, default=default, allowed="the name of a tensor or collection")


class Confusion(Rule):
    """Met when a share of the confusion matrix is below `min_diag` or above `max_off_diag`.

    The matrix counts samples by label and prediction; shares are those of a column, that is of all
    samples that are predicted as one class. The one on the diagonal, the right ones, must be at
    least `min_diag`, each of the others at most `max_off_diag`. A class that is labelled and never
    predicted has the share 0 on the diagonal.

    With `literal` each step and worker has a matrix of its own, and a class that is never predicted
    is passed over. By default a matrix holds all workers' samples of a whole evaluation, or of ten
    steps of training, but at least 15 samples a class; evaluations are judged as soon as there are
    any, and training until then. Without modes a step whose labels are those of the step before, as
    in boosting, is an evaluation.

    What counts is beyond chance and lasts: the bound of the share (Wilson's, wrong in one of a
    hundred matrices) is beyond the limit in every matrix of the latest half of the run, of five at
    least; in that half the model has not lost a fifth of its errors; the bound would be beyond the
    limit after as long again, if the class gained and all errors fell as fast; and all this was so
    one matrix before. So a young model is not accused. What was saved before the first step that is
    judged counts likewise.

    Labels that are no whole numbers are no classes (regression). Samples with label -100 are left
    out. Predictions with NaN are not judged (`ExplodingTensor` owns them).
    """

    READS = (
        "the labels and predictions of classification: values. By default the tensors or "
        "collections of these names, or else what a loss is called with "
        "(`..._input_1`, `..._input_0`)."
    )
    PARAMS = (
        IntParam(
            "category_no",
            "Number of classes; by default it is told by labels and predictions.",
            minimum=2,
            unit="classes",
        ),
        _name("labels", "Name of the tensor of true classes, or of a collection.", "labels"),
        _name(
            "predictions",
            "Name of the tensor of predicted classes or their scores, or of a collection.",
            "predictions",
        ),
        _name(
            "labels_collection",
            "Collection of the labels, if `labels` names nothing that was saved.",
            CollectionKeys.LABELS,
        ),
        _name(
            "predictions_collection",
            "Collection of the predictions, if `predictions` names nothing that was saved.",
            CollectionKeys.PREDICTIONS,
        ),
        FloatParam(
            "min_diag",
            "Smallest accepted share of right predictions among those of a class.",
            default=0.9,
            minimum=0.0,
            maximum=1.0,
            unit="share of a column",
        ),
        FloatParam(
            "max_off_diag",
            "Largest accepted share of one other label among the predictions of a class.",
            default=0.1,
            minimum=0.0,
            maximum=1.0,
            unit="share of a column",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(DIAGONAL, "right predictions of the worst class (share, at most)", worse="below"),
        Quantity(BESIDE, "largest share of one wrong label (at least)", worse="above"),
    )
    PAGE = Page(
        why="""
        A good mean hides a class that the model does not know: its label is wrong in the data, it
        was never learnt, or it cannot be told from another.
        """,
        save="""
        Labels and predictions, of evaluations above all:

            Hook(out_dir, include_collections=["labels", "predictions"])
            hook.register_loss(criterion)  # PyTorch: what it is called with
            hook.set_mode(ModeKeys.EVAL)  # before each evaluation, ModeKeys.TRAIN behind it

        XGBoost: the collections `labels` and `predictions`.
        """,
        missing="""
        Steps without labels and predictions that belong together are skipped, with the reason: no
        classes (regression), NaN, lengths that differ. So are the first ones, until there are
        five matrices: of five evaluations, rounds of boosting, or runs of steps. Label -100 is left
        out.
        """,
        remedy="""
        - Look at samples of the class and label that the note names: are they labelled rightly?
        - See whether the class is among the training data, and often enough (`ClassImbalance`).
        - See whether labels of training and evaluation are numbered alike.
        - If the classes cannot be told apart, lower `min_diag` and raise `max_off_diag`.
        """,
        limits="""
        Many good models predict a class rightly in less than 90 % of the cases: set `min_diag` to
        what the task allows. With fewer than six evaluations nothing is found, and with few samples
        only gross confusion is: judge a finished model with `literal` and `--start-step` at its
        last evaluation. A model that learns nothing for long at its start is accused meanwhile.
        More than 1000 classes, such as tokens of a language, are not judged.
        """,
    )
    category_no: int | None
    labels: str
    predictions: str
    labels_collection: str
    predictions_collection: str
    min_diag: float
    max_off_diag: float
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        category_no: Any = None,
        labels: Any = "labels",
        predictions: Any = "predictions",
        labels_collection: Any = CollectionKeys.LABELS,
        predictions_collection: Any = CollectionKeys.PREDICTIONS,
        min_diag: Any = 0.9,
        max_off_diag: Any = 0.1,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            category_no=category_no,
            labels=labels,
            predictions=predictions,
            labels_collection=labels_collection,
            predictions_collection=predictions_collection,
            min_diag=min_diag,
            max_off_diag=max_off_diag,
            literal=literal,
        )
        self._limits = Limits(self.min_diag, self.max_off_diag)
        # As many as prediction tensors and modes.
        self._histories: dict[tuple[str, ModeKeys], History] = {}
        self._begun = False
        self._evaluates = False

    def invoke_at_step(self, step: int) -> bool:
        """Judge the labels and predictions of global step `step`."""
        if not self._begun and not self.literal:
            for earlier in self.base_trial.steps():
                if earlier < step:
                    self._take(earlier, judge=False)
        self._begun = True
        answer = self._judge_alone(step) if self.literal else self._take(step, judge=True)
        return self.not_judged(answer) if isinstance(answer, str) else answer

    def _judge_alone(self, step: int) -> bool | str:
        """Judge each worker's matrix of one step, or say why there is none."""
        answers, reason = [], NO_PAIR
        for one, found in self._classes(step):
            if isinstance(found, str):
                reason = found
                continue
            shares = block(counted(found, self._size(found)), literal=True)
            for column in worst(shares, self._limits, set()).values():
                met = self._limits.excess(column, column.bound) > 0
                answers.append(self._report(step, column, one.name, one.worker, met=met))
        return any(answers) if answers else reason

    def _take(self, step: int, *, judge: bool) -> bool | str:
        """Count a step's samples, and judge the matrices that are whole by now, or say why not."""
        mode = self.base_trial.mode(step)
        if mode is not ModeKeys.EVAL:
            self._end_evaluation()
        if mode is ModeKeys.TRAIN and self._evaluates:
            return EVALUATED
        reason, names = NO_PAIR, set[str]()
        for one, found in self._classes(step):
            if isinstance(found, str):
                reason = found
                continue
            history = self._histories.setdefault((one.name, mode), History(mode, self._limits))
            history.add(found, self._size(found), step)
            names.add(one.name)
        if not names:
            return reason
        self._evaluates = self._evaluates or mode is ModeKeys.EVAL
        answers = [self._judge(step, name, mode, judge=judge) for name in sorted(names)]
        judged = [one for one in answers if isinstance(one, bool)]
        return any(judged) if judged else answers[0]

    def _end_evaluation(self) -> None:
        for (_, mode), history in self._histories.items():
            if mode is ModeKeys.EVAL and history.is_full:
                history.close()

    def _judge(self, step: int, name: str, mode: ModeKeys, *, judge: bool) -> bool | str:
        """Judge the matrix in hand if it is whole, or say why not."""
        history = self._histories[name, mode]
        if not history.is_whole:
            return FILLING
        judged = history.judge() if judge else []
        if mode is not ModeKeys.EVAL:
            history.close()
        answers = [self._report(step, column, name, None, met=met) for column, met in judged]
        return any(answers) if answers else TOO_FEW

    # -- what both need ----------------------------------------------------------------------------

    def _classes(self, step: int) -> Iterator[tuple[Saved, Classes | str]]:
        """Yield each worker's predictions with the classes, or why there are none."""
        labels = self._names(step, self.labels, self.labels_collection, LABELS_OF_LOSS)
        predictions = self._names(
            step, self.predictions, self.predictions_collection, PREDICTIONS_OF_LOSS
        )
        for known, told in paired(self.base_trial, step, labels, predictions):
            found = classes(known, told, step)
            yield told, found if isinstance(found, str) else self._fitting(found)

    def _names(self, step: int, name: str, collection: str, pattern: str) -> list[str]:
        """Return the tensor of a name, or those of the collection, or of a loss by default."""
        trial = self.base_trial
        if name in trial.tensor_names(step=step):
            return [name]
        found = named(trial, step, [name], []) or named(trial, step, [collection], [])
        standard = {name, collection} <= {CollectionKeys.LABELS, CollectionKeys.PREDICTIONS}
        return found or (named(trial, step, [], [pattern]) if standard else [])

    def _size(self, found: Classes) -> int:
        """Return the number of classes: the given one, or what labels and predictions tell."""
        highest = 1 + int(max(found.labels.max(), found.predictions.max()))
        return self.category_no or max(highest, found.scored)

    def _fitting(self, found: Classes) -> Classes | str:
        """Return classes that a matrix can hold, or why it cannot."""
        highest = int(max(found.labels.max(), found.predictions.max()))
        if self.category_no and highest >= self.category_no:
            return f"class {highest} is none of {self.category_no} classes"
        return TOO_MANY if self._size(found) > MOST_CLASSES else found

    def _report(
        self, step: int, column: Column, name: str, worker: str | None, *, met: bool
    ) -> bool:
        return self.measured(
            step,
            DIAGONAL if column.on_diagonal else BESIDE,
            column.bound,
            self._limits.of(column),
            met=met,
            tensor=name,
            worker=worker,
            note=column.note,
        )
