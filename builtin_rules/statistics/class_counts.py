"""Labels and mispredictions by class, in total and over the latest steps."""

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from builtin_rules.statistics.class_labels import LabelledClasses
from builtin_rules.statistics.noise_levels import Levels

SETTLED_DECREASE: Final = 0.02  # of the share of mispredictions, if it is settled
MIN_LEVEL_STEPS: Final = 5  # minimum steps of a level
MOST_REPEATS: Final = 2  # of a batch: more say nothing new about its labels
MOST_BATCHES: Final = 4096  # remembered, to recognise repeated ones
CONSTANT_STEPS: Final = 20  # young models answer with one class for a while
CONSTANT_SHARE: Final = 0.5  # of the steps whose labels are of several classes
ROWS_KEPT: Final = 512
INFORMED: Final = 0.98  # of the entropy of the labels: a lower loss knows something of the input


class ClassCounts(NamedTuple):
    """Labels, and mispredictions among them, by class."""

    labels: Counter[int]
    wrong: Counter[int]

    @property
    def total(self) -> int:
        """The number of labels."""
        return self.labels.total()


class Lasting(NamedTuple):
    """Which conditions have held at the latest steps without a break."""

    imbalance: bool
    misprediction: bool


@dataclass(slots=True)
class ClassWindow:
    """All labels since the start, and the counts of the latest steps with enough labels."""

    patience: int  # steps for which a condition must hold to last
    ever: Counter[int] = field(default_factory=Counter)
    all: ClassCounts = field(default_factory=lambda: ClassCounts(Counter(), Counter()))
    # Labels of each class since one was last predicted correctly.
    missed: Counter[int] = field(default_factory=Counter)
    steps: deque[ClassCounts] = field(default_factory=deque)  # at most one for each label required
    # Share of a step's labels.
    wrong: Levels = field(default_factory=lambda: Levels(MIN_LEVEL_STEPS))
    batches: set[int] = field(default_factory=set)  # hashes of labels, at most MOST_BATCHES
    distinct: int = 0  # labels without those of repeated batches
    imbalanced: int = 0  # latest steps at which the condition held
    mispredicted: int = 0

    def add(self, sample: LabelledClasses, enough: int | None) -> None:
        """Add the samples of a step, and drop steps not needed for `enough` labels."""
        mistaken = sample.labels[sample.labels != sample.predictions]
        step = ClassCounts(_count(sample.labels), _count(mistaken))
        batch = hash(sample.labels.tobytes())
        if batch not in self.batches:
            self.distinct += step.total
            if len(self.batches) < MOST_BATCHES:
                self.batches.add(batch)
        self.wrong.add(step.wrong.total() / step.total)
        self.ever.update(step.labels)
        for label, count in step.labels.items():
            self.missed[label] = count + self.missed[label] if step.wrong[label] == count else 0
        self.all.labels.update(step.labels)
        self.all.wrong.update(step.wrong)
        if enough is None:
            return
        self.steps.append(step)
        while self.all.total - self.steps[0].total >= enough:
            for counts, removed in zip(self.all, self.steps.popleft(), strict=True):
                counts.subtract(removed)
                for label in [label for label in removed if not counts[label]]:
                    del counts[label]  # a class without labels is not counted

    @property
    def ever_repeats(self) -> float:
        """The divisor of the counts since the start that makes each label count twice at most."""
        return max(1.0, self.ever.total() / self.distinct / MOST_REPEATS)

    @property
    def latest_repeats(self) -> float:
        """The divisor of the counts of the latest steps, likewise."""
        return max(1.0, self.all.total / self.distinct / MOST_REPEATS)

    def lasting(self, *, imbalance: bool, misprediction: bool) -> Lasting:
        """Take whether the conditions hold at this step; return which have held for long."""
        self.imbalanced = self.imbalanced + 1 if imbalance else 0
        self.mispredicted = self.mispredicted + 1 if misprediction else 0
        return Lasting(self.imbalanced >= self.patience, self.mispredicted >= self.patience)

    @property
    def settled(self) -> bool:
        """Whether the share of mispredictions has clearly stopped falling."""
        progress = self.wrong.progress()
        return progress is not None and progress.fall + progress.error <= SETTLED_DECREASE


@dataclass(slots=True)
class ConstantAnswers:
    """How often all predictions of a step are of one class, and what the loss knows then.

    Steps whose labels are of one class do not count.

    Attributes
    ----------
    first
        The first step whose predictions are of one class.
    """

    first: int = 0
    _constant: int = 0  # such steps
    _steps: int = 0
    # The labels of the latest steps, and their mean loss.
    _rows: "deque[tuple[Counter[int], float]]" = field(
        default_factory=lambda: deque(maxlen=ROWS_KEPT)
    )

    def add(self, step: int, sample: LabelledClasses, loss: float) -> None:
        """Add the predictions of a step, and its mean loss; NaN if it has none."""
        if not np.ptp(sample.labels):
            return
        if not np.ptp(sample.predictions):
            self.first = self.first if self._constant else step
            self._constant += 1
        self._steps += 1
        self._rows.append((_count(sample.labels), loss))

    @property
    def share(self) -> float:
        """The share of the steps whose predictions are of one class."""
        return self._constant / max(1, self._steps)

    def tell_nothing(self, enough: int) -> bool:
        """Return whether the answers do not depend on the input, judged by `enough` labels.

        Most steps are of one class, and the loss of the latest half of the rows is that of
        answers that only know how frequent each class is: 98 % of the entropy of the labels, or
        more.
        """
        labels, losses = Counter[int](), 0.0
        for counts, loss in [*self._rows][len(self._rows) // 2 :]:
            labels += counts
            losses += loss * counts.total()
        total = labels.total()
        entropy = -sum(count * math.log(count / total) for count in labels.values())
        is_judged = self._steps >= CONSTANT_STEPS and total >= enough and entropy > 0
        return is_judged and self.share > CONSTANT_SHARE and losses >= INFORMED * entropy


def _count(labels: "np.ndarray") -> Counter[int]:
    """Return the number of labels of each class."""
    values, counts = np.unique(labels, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
