"""ClassImbalance: a class is much rarer than another, or nearly always mispredicted."""

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.class_counts import CONSTANT_SHARE, ClassWindow, ConstantAnswers
from builtin_rules.statistics.class_labels import (
    LABELS_OF_LOSS,
    NO_PAIR,
    PREDICTIONS_OF_LOSS,
    LabelledClasses,
    are_tokens,
    classes,
    label_prediction_pairs,
)
from builtin_rules.statistics.losses.objective import objectives
from builtin_rules.statistics.parameters import Declared, count, flag, names, non_negative, share
from builtin_rules.statistics.share_of_total import lower
from builtin_rules.statistics.tensor_selection import LITERAL, LOSSES, by_role, mode_of
from builtin_rules.statistics.training_scalars import finite_scalars
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import PatternsParam, Quantity

if TYPE_CHECKING:
    from collections import Counter

# Why these, and how they judge: docs/decisions/0014-class-imbalance.md.
IMBALANCE: Final = "imbalance"
MISPREDICTION: Final = "misprediction"
ONE_CLASS: Final = "one_class"
MOST_CLASSES: Final = 1000
GOOD_SHARE: Final = 0.1  # share of mispredictions of a model that has learned its classes
LASTING_STEPS: Final = 20  # steps for which what the latest labels show must last
LASTING_EVALUATIONS: Final = 5  # steps of evaluations, likewise
OUTPUT_LOGITS: Final = r"_output_logits$"  # the outputs of Hugging Face models
LABELS: Final = PatternsParam(
    "labels_regex",
    "Patterns: a tensor holds labels if one of them matches in its name.",
    default=".*labels",
    also=(LABELS_OF_LOSS,),
    collection="labels",
)
PREDICTIONS: Final = PatternsParam(
    "predictions_regex",
    "Patterns: a tensor holds predictions if one of them matches in its name.",
    default=".*predictions",
    also=(PREDICTIONS_OF_LOSS, OUTPUT_LOGITS),
    collection="predictions",
)
TOO_FEW: Final = "too few labels so far"
TOO_MANY: Final = f"more than {MOST_CLASSES} classes"
MOST_BALANCED: Final = 50  # classes: beyond them, labels are unbalanced by nature
MANY: Final = f"more than {MOST_BALANCED} classes, which are unbalanced by nature"
POSITIONS: Final = "labels of tokens or pixels (several a row), which are unbalanced by nature"
LANGUAGE: Final = "labels of a language model are tokens, which are unbalanced by nature"


class WorstClass(NamedTuple):
    """The worst class of a quantity: a lower bound of its value, and a note."""

    measured: float
    note: str


class ClassImbalance(DeclaredRule):
    """Met when a class has too few labels compared with the largest, or too many mispredictions.

    With `n` the labels of a class and `wrong` the mispredicted ones among them, the condition is
    ``max(n) / min(n) > threshold_imbalance`` over the classes seen so far, at least two, or ``wrong
    / n > threshold_misprediction`` for some class. It is judged from `samples` labels on. All
    workers are combined; each label tensor and each mode is counted separately.

    `literal` disables these refinements. Labels that are unbalanced by nature are not judged: those
    of several positions a row (tokens, pixels), those of more than 50 classes, and the tokens of
    language models. A batch whose labels were saved before, as in repeated evaluations of the same
    rows, counts at most twice in the bounds below. Mispredictions are counted over the latest steps
    with a total of `samples` labels, so that the untrained start is forgotten; if all labels of a
    class are mispredicted there, those since its latest correct prediction count. The imbalance is
    the larger of theirs and that of all labels since the start. Ratio and share are lower bounds,
    so that small counts do not meet the condition by chance (Wilson bounds, wrong in one of a
    hundred cases over all classes or pairs of them). What the latest steps show counts once it has
    lasted for 20 of them, or for 5 steps of evaluations: young models forget a class now and then.
    And mispredictions of a class count only if other classes are learned: if the class is never
    predicted correctly while at most a tenth of the other labels is mispredicted, or if, after at
    least ten steps, the share of all mispredictions has stopped falling and is not above
    `threshold_misprediction` itself. If a threshold is given, none of this applies to its
    condition, except that mispredictions are those of the latest steps; if `samples` is, to either.

    A training is reported at the end of the data if it answers each batch with one class: of 20
    steps or more whose labels are of several classes, most have predictions of one class only, and
    in the latest half of these steps, with `samples` labels or more, the loss is at least 98 % of
    the entropy of the labels. It knows no more than how frequent each class is. The step is the
    first with such predictions.

    Predictions with one axis more than the labels are scores, of which the largest is taken if
    `argmax` is not given. A single number per label is rounded, or cut at 0 if it must be a binary
    score. Labels of -100, and a single other value without a score, are ignored. With `literal`,
    `argmax` alone decides, every label since the start counts, and labels of all modes are
    combined.
    """

    READS = (
        "the values of labels and predictions: tensors of the collections of these names, with "
        "labels and predictions in their names, inputs 1 and 0 of a loss, or output logits."
    )
    SAVED = ("labels", "predictions", "classes")
    threshold_imbalance = non_negative(
        "Largest tolerated ratio of the largest to the smallest class.",
        10.0,
        "labels / labels",
        minimum=1.0,
    )
    threshold_misprediction = share(
        "Largest tolerated share of mispredictions of a class.", 0.7, "share of a class"
    )
    samples = count("Number of labels judged together; use more for more classes.", 500, "labels")
    argmax = flag("Take the index of the largest entry of each prediction.")
    labels_regex = names(LABELS)
    predictions_regex = names(PREDICTIONS)
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(IMBALANCE, "labels of the largest / the smallest class, at least", log=True),
        Quantity(MISPREDICTION, "wrong predictions of a class / its labels, at least"),
        Quantity(ONE_CLASS, "steps whose predictions are all of one class / all steps"),
    )

    def _prepare(self) -> None:
        self._inputs = (
            by_role("labels", LABELS, self.labels_regex),
            by_role("predictions", PREDICTIONS, self.predictions_regex),
        )
        self.required_inputs = self._inputs
        limits = {IMBALANCE: "threshold_imbalance", MISPREDICTION: "threshold_misprediction"}
        self._bound = {each for each, name in limits.items() if self.binds(name, "samples")}
        self._unbalanced: set[str] = set()  # label tensors, by nature
        # By label tensor and mode.
        self._windows: dict[tuple[str, ModeKeys | None], ClassWindow] = {}
        self._constant: dict[str, ConstantAnswers] = {}  # by label tensor, in training

    def invoke_at_step(self, step: int) -> bool:
        """Judge the labels and predictions up to global step `step`."""
        labels, predictions = (tensors.names(self.base_trial, step) for tensors in self._inputs)
        mode = None if self.literal else mode_of(self.base_trial, step, labels)
        reason, names = NO_PAIR, []
        for label_tensor, prediction_tensor in label_prediction_pairs(
            self.base_trial, step, labels, predictions
        ):
            sample = classes(
                label_tensor,
                prediction_tensor,
                step,
                argmax=self.argmax if self.binds("argmax") else None,
            )
            if isinstance(sample, str):
                reason = sample
                continue
            nature = "" if self.literal else self._unbalanced_by_nature(sample, step)
            if nature:
                reason = nature
                self._unbalanced.add(label_tensor.name)
                if not self._bound:
                    continue
            patience = LASTING_EVALUATIONS if mode is ModeKeys.EVAL else LASTING_STEPS
            window = self._windows.setdefault((label_tensor.name, mode), ClassWindow(patience))
            window.add(sample, None if self.literal else self.samples)
            names.append(label_tensor.name)
            if not self.literal and mode is not ModeKeys.EVAL:
                constant = self._constant.setdefault(label_tensor.name, ConstantAnswers())
                constant.add(step, sample, self._loss(step))
        answers = [
            self._judge(step, name, self._windows[name, mode]) for name in dict.fromkeys(names)
        ]
        reasons = [answer for answer in answers if isinstance(answer, str)]
        if len(reasons) == len(answers):
            return self.not_judged(reasons[0] if reasons else reason)
        return any(answer is True for answer in answers)

    def invoke_at_end(self, _: int) -> bool:
        """Judge whether training ended with answers that do not depend on the input."""
        answers = [
            self.record(
                (name, None),
                constant.first,
                ONE_CLASS,
                constant.share,
                CONSTANT_SHARE,
                met=True,
                note="All predictions of a step are of one class, whatever the input.",
            )
            for name, constant in self._constant.items()
            if constant.tell_nothing(self.samples)
        ]
        return any(answers)

    def _loss(self, step: int) -> float:
        """Return the training loss of a step; NaN if there is none."""
        losses = finite_scalars(self.base_trial, step, LOSSES)
        by_name = {name: loss for (name, _), loss in losses.items()}
        return next(iter(objectives(by_name).values()), math.nan)

    def _unbalanced_by_nature(self, sample: LabelledClasses, step: int) -> str:
        """Return why the labels are not expected to be balanced; "" if they are."""
        if sample.positions:
            return POSITIONS
        if sample.scored > MOST_BALANCED:
            return MANY
        return LANGUAGE if are_tokens(self.base_trial, sample, step) else ""

    def _judge(self, step: int, name: str, window: ClassWindow) -> bool | str:
        """Judge one label tensor, or return why it cannot be judged."""
        counts = window.all
        if len(window.ever) > MOST_CLASSES:
            return TOO_MANY
        by_nature = name in self._unbalanced or len(window.ever) > MOST_BALANCED
        if by_nature and not self._bound:
            return MANY
        if counts.total < self.samples:
            return TOO_FEW
        imbalance = self._imbalance(window.ever, window.ever_repeats)
        latest = self._imbalance(counts.labels, window.latest_repeats)
        wrong, learned = self._misprediction(window)
        lasting = window.lasting(
            imbalance=latest.measured > self.threshold_imbalance,
            misprediction=learned and wrong.measured > self.threshold_misprediction,
        )
        if lasting.imbalance and IMBALANCE not in self._bound:
            imbalance = max(imbalance, latest)
        met = False
        for quantity, (measured, note), limit, lasts in (
            (IMBALANCE, imbalance, self.threshold_imbalance, True),
            (MISPREDICTION, wrong, self.threshold_misprediction, lasting.misprediction),
        ):
            is_judged = quantity in self._bound or (lasts and not by_nature)
            exceeds = is_judged and measured > limit
            met |= self.record(
                (name, None), step, quantity, measured, limit, met=exceeds, note=note
            )
        return met

    def _imbalance(self, counts: "Counter[int]", repeats: float) -> WorstClass:
        """Return the ratio of the largest to the smallest class, each label counted once."""
        most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        large, small = counts[most], counts[least]
        ratio = large / small
        if IMBALANCE not in self._bound:
            pairs = len(counts) * (len(counts) - 1) // 2
            share = lower(large / repeats, (large + small) / repeats, pairs)
            ratio = share / (1 - share)
        return WorstClass(ratio, f"{large} labels of class {most}, {small} of class {least}.")

    def _misprediction(self, window: ClassWindow) -> tuple[WorstClass, bool]:
        """Return the class with the largest share of mispredictions, and whether it counts."""
        counts, wrong = window.all
        shares = {label: self._share(window, label) for label in counts}
        worst = max(shares, key=shares.__getitem__)
        other_labels, wrong_others = counts.total() - counts[worst], wrong.total() - wrong[worst]
        lost = wrong.total() > self.threshold_misprediction * counts.total()
        stands_out = wrong[worst] == counts[worst] and 0 < other_labels >= wrong_others / GOOD_SHARE
        note = f"{wrong[worst]} of {counts[worst]} labels of class {worst} are mispredicted."
        is_judged = stands_out or (window.settled and not lost)
        return WorstClass(shares[worst], note), is_judged

    def _share(self, window: ClassWindow, label: int) -> float:
        """Return the share of mispredictions of a class, at least."""
        counts, wrong = window.all
        count, mispredicted = counts[label], wrong[label]
        if MISPREDICTION in self._bound:
            return mispredicted / count
        certain = count / window.latest_repeats
        if mispredicted == count:  # rare classes need more labels than the window has
            certain = max(certain, window.missed[label] / window.ever_repeats)
        return lower(certain * mispredicted / count, certain, len(counts))
