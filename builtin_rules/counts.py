"""Counts: labels and wrong predictions by class, since the start and over the latest steps."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from builtin_rules.classes import Classes
from builtin_rules.levels import Levels

ENOUGH: Final = 0.02  # a share of wrong predictions that falls by less has ended to fall
STEPS: Final = 5  # so many steps make a level of it, at least


class Counts(NamedTuple):
    """Labels, and wrong predictions among them, by class."""

    labels: Counter[int]
    wrong: Counter[int]

    @property
    def total(self) -> int:
        """The number of labels."""
        return self.labels.total()


@dataclass(slots=True)
class Window:
    """The labels since the start, and the counts of the latest steps that hold enough."""

    ever: Counter[int] = field(default_factory=Counter)
    all: Counts = field(default_factory=lambda: Counts(Counter(), Counter()))
    steps: deque[Counts] = field(default_factory=deque)  # at most as many as labels are asked for
    wrong: Levels = field(default_factory=lambda: Levels(STEPS))  # share of a step's labels

    def add(self, found: Classes, enough: int | None) -> None:
        """Add a step's samples, and drop the steps that are not needed for `enough` labels."""
        mistaken = found.labels[found.labels != found.predictions]
        step = Counts(_count(found.labels), _count(mistaken))
        self.wrong.add(step.wrong.total() / step.total)
        self.ever.update(step.labels)
        self.all.labels.update(step.labels)
        self.all.wrong.update(step.wrong)
        if enough is None:
            return
        self.steps.append(step)
        while self.all.total - self.steps[0].total >= enough:
            for left, gone in zip(self.all, self.steps.popleft(), strict=True):
                left.subtract(gone)
                for label in [one for one in gone if not left[one]]:
                    del left[label]  # a class that is not seen any more

    @property
    def settled(self) -> bool:
        """Whether the share of wrong predictions has surely ended to fall."""
        progress = self.wrong.progress()
        return progress is not None and progress.fall + progress.error <= ENOUGH


def _count(labels: "np.ndarray") -> Counter[int]:
    """Return how many labels there are of each class."""
    values, counts = np.unique(labels, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
