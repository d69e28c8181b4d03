"""ClassImbalance: a class is far rarer than another one, or nearly always mispredicted."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from builtin_rules.classes import (
    LABELS_OF_LOSS,
    NO_PAIR,
    PREDICTIONS_OF_LOSS,
    classes,
    paired,
)
from builtin_rules.counts import Window
from builtin_rules.selection import LITERAL, by_role
from builtin_rules.shares import lower
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import BoolParam, FloatParam, IntParam, PatternsParam, set_parameters

if TYPE_CHECKING:
    from collections import Counter

    from smdebug.core.modes import ModeKeys

# Why these, and how they judge: docs/decisions/0014-class-imbalance.md.
IMBALANCE: Final = "imbalance"
MISPREDICTION: Final = "misprediction"
MOST_CLASSES: Final = 1000
GOOD: Final = 0.1  # a share of wrong predictions of which a model has learned its classes
OUTPUT_LOGITS: Final = r"_output_logits$"  # what models of Hugging Face return
TOO_FEW: Final = "too few labels so far"
TOO_MANY: Final = f"more than {MOST_CLASSES} classes"


class Worst(NamedTuple):
    """The class that a quantity is largest for, and how large it is at least."""

    measured: float
    note: str


class ClassImbalance(Rule):
    """Met when a class has too few labels beside the largest, or too many wrong predictions.

    With `n` the labels of a class and `wrong` those among them that were mispredicted, the
    condition is ``max(n) / min(n) > threshold_imbalance`` over the classes that were seen, at least
    two, or ``wrong / n > threshold_misprediction`` for some class. It is judged from `samples`
    labels on. All workers add up; each label tensor and each mode is counted by itself.

    Three refinements, which `literal` leaves out. Mispredictions are those of the latest steps that
    hold `samples` labels, so that the untrained start is forgotten; the ratio is the larger one of
    theirs and of all since the start. Ratio and share are lower bounds, so that small counts by
    chance do not meet the condition (Wilson's, wrong in one of a hundred cases over all classes or
    pairs of them). And mispredictions of a class count only where others are learned: if the class
    is never predicted rightly while at most a tenth of the other labels is mispredicted, or if from
    ten steps on the share of all wrong predictions has ended to fall and is not above
    `threshold_misprediction` itself.

    Predictions with one axis more than the labels are scores, the largest of which is taken whether
    or not `argmax` says so; one number for each label is rounded, or cut at 0 where it must be a
    binary score. Labels of -100 are left out. With `literal` `argmax` alone decides, every label
    since the start counts, and labels of all modes are counted together.
    """

    READS = (
        "the values of labels and predictions: tensors of the collections of these names, with "
        "labels and predictions in their names, inputs 1 and 0 of a loss, or output logits."
    )
    PARAMS = (
        FloatParam(
            "threshold_imbalance",
            "How many times as large as the smallest class the largest may be.",
            default=10.0,
            minimum=1.0,
            unit="labels / labels",
        ),
        FloatParam(
            "threshold_misprediction",
            "Which share of a class may be mispredicted.",
            default=0.7,
            minimum=0.0,
            maximum=1.0,
            unit="share of a class",
        ),
        IntParam(
            "samples",
            "Labels that are judged together; more for more classes.",
            default=500,
            minimum=1,
            unit="labels",
        ),
        BoolParam(
            "argmax", "Take the index of the largest entry of each prediction.", default=False
        ),
        PatternsParam(
            "labels_regex",
            "Patterns: a tensor holds labels if one of them is found in its name.",
            default=".*labels",
            also=(LABELS_OF_LOSS,),
            collection="labels",
        ),
        PatternsParam(
            "predictions_regex",
            "Patterns: a tensor holds predictions if one of them is found in its name.",
            default=".*predictions",
            also=(PREDICTIONS_OF_LOSS, OUTPUT_LOGITS),
            collection="predictions",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(IMBALANCE, "labels of the largest / the smallest class, at least", log=True),
        Quantity(MISPREDICTION, "wrong predictions of a class / its labels, at least"),
    )
    PAGE = Page(
        why="""
        A model that rarely sees a class learns to do without it: the loss hardly notices, and the
        class is predicted wrongly ever after.
        """,
        save="""
        What the loss is called with. The PyTorch hook fills the collections by itself:

            Hook(out_dir, include_collections=["labels", "predictions"])
            hook.register_loss(criterion)

        XGBoost: `Hook(out_dir, validation_data=data, include_collections=["labels",
        "predictions"])`.
        """,
        missing="""
        Steps without both, and those whose shapes do not fit together, are skipped; labels that are
        no whole numbers are no classes, and predictions with NaN are none either. Labels of -100
        ("ignore") are left out.
        """,
        remedy="""
        - Weigh the classes in the loss, or sample the rare ones more often.
        - Shuffle the samples: sorted ones come class by class.
        - See whether the labels of the mispredicted class are right.
        """,
        limits="""
        Tokens of text and pixels of maps are unbalanced by nature: raise `threshold_imbalance`. A
        validation set sorted by class looks unbalanced: raise `samples` to its size. With many
        classes 500 labels prove little: raise `samples`. A class that never occurs is not missed.
        """,
    )
    threshold_imbalance: float
    threshold_misprediction: float
    samples: int
    argmax: bool
    labels_regex: tuple[str, ...]
    predictions_regex: tuple[str, ...]
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        threshold_imbalance: Any = 10.0,
        threshold_misprediction: Any = 0.7,
        samples: Any = 500,
        argmax: Any = False,
        labels_regex: Any = None,
        predictions_regex: Any = None,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            threshold_imbalance=threshold_imbalance,
            threshold_misprediction=threshold_misprediction,
            samples=samples,
            argmax=argmax,
            labels_regex=labels_regex,
            predictions_regex=predictions_regex,
            literal=literal,
        )
        # As many as label tensors and modes.
        self._windows: dict[tuple[str, ModeKeys | None], Window] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the labels and predictions up to global step `step`."""
        labels, predictions = (
            by_role(self.base_trial, step, param, getattr(self, param.name))
            for param in self.PARAMS
            if isinstance(param, PatternsParam)
        )
        mode = None if self.literal else self.base_trial.mode(step)
        reason, names = NO_PAIR, []
        for one, other in paired(self.base_trial, step, labels, predictions):
            found = classes(one, other, step, argmax=self.argmax if self.literal else None)
            if isinstance(found, str):
                reason = found
                continue
            window = self._windows.setdefault((one.name, mode), Window())
            window.add(found, None if self.literal else self.samples)
            names.append(one.name)
        answers = [
            self._judge(step, name, self._windows[name, mode]) for name in dict.fromkeys(names)
        ]
        reasons = [one for one in answers if isinstance(one, str)]
        if len(reasons) == len(answers):
            return self.not_judged(reasons[0] if reasons else reason)
        return any(one is True for one in answers)

    def _judge(self, step: int, name: str, window: Window) -> bool | str:
        """Judge one label tensor, or say why it cannot be judged."""
        counts = window.all
        if len(window.ever) > MOST_CLASSES:
            return TOO_MANY
        if counts.total < self.samples:
            return TOO_FEW
        imbalance = max(self._imbalance(window.ever), self._imbalance(counts.labels))
        wrong, learned = self._misprediction(window)
        answers = [
            self.measured(
                step,
                quantity,
                worst.measured,
                limit,
                met=counts and worst.measured > limit,
                tensor=name,
                note=worst.note,
            )
            for quantity, worst, limit, counts in (
                (IMBALANCE, imbalance, self.threshold_imbalance, True),
                (MISPREDICTION, wrong, self.threshold_misprediction, learned),
            )
        ]
        return any(answers)

    def _imbalance(self, known: "Counter[int]") -> Worst:
        """Return how much larger the largest class is than the smallest."""
        most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        large, small = known[most], known[least]
        ratio = large / small
        if not self.literal:
            share = lower(large, large + small, len(known) * (len(known) - 1) // 2)
            ratio = share / (1 - share)
        return Worst(ratio, f"{large} labels of class {most}, {small} of class {least}.")

    def _misprediction(self, window: Window) -> tuple[Worst, bool]:
        """Return the class with the largest share of wrong predictions, and whether it counts."""
        known, wrong = window.all
        shares = {
            one: wrong[one] / count if self.literal else lower(wrong[one], count, len(known))
            for one, count in known.items()
        }
        worst = max(shares, key=shares.__getitem__)
        others, wrong_others = known.total() - known[worst], wrong.total() - wrong[worst]
        lost = wrong.total() > self.threshold_misprediction * known.total()
        stands_out = wrong[worst] == known[worst] and 0 < others >= wrong_others / GOOD
        note = f"{wrong[worst]} of {known[worst]} labels of class {worst} are mispredicted."
        counts = self.literal or stands_out or (window.settled and not lost)
        return Worst(shares[worst], note), counts
