"""History: what the report keeps of all rounds, within bounds."""

from collections import Counter
from typing import Any, Final

from builtin_rules.xgboost_report.figures import CLASSES_SHOWN, Confusion, Kind, kind_of
from builtin_rules.xgboost_report.reading import OBJECTIVE, Round

POINTS_KEPT: Final = 1000
LABELS_KEPT: Final = 1000
SERIES_KEPT: Final = 100
PROBLEMS_KEPT: Final = 20


class Points:
    """Values by step; of more than `POINTS_KEPT` every second one is dropped, again and again."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[Any] = []
        self._every = 1
        self._count = 0

    def add(self, step: int, value: Any) -> None:
        """Take one more value, if it is its turn."""
        if self._count % self._every == 0:
            self.steps.append(step)
            self.values.append(value)
        self._count += 1
        if len(self.steps) > POINTS_KEPT:
            self.steps, self.values = self.steps[::2], self.values[::2]
            self._every *= 2


class History:
    """What was seen of a training so far.

    Attributes
    ----------
    losses
        Each metric over the steps; further ones than `SERIES_KEPT` are left out.
    recalls
        The recall of each class over the steps.
    label_counts
        How many rows had each label, over all steps; further labels than `LABELS_KEPT` are left
        out.
    scored
        The last round with labels and predictions.
    """

    def __init__(self) -> None:
        self.hyperparameters: dict[str, str] = {}
        self.losses: dict[str, Points] = {}
        self.recalls = Points()
        self.label_counts: Counter[float] = Counter()
        self.importances: dict[str, dict[str, float]] = {}
        self.importances_step = 0
        self.scored: Round | None = None
        self.last_step = 0
        self.problems: dict[str, None] = {}

    @property
    def objective(self) -> str | None:
        """The objective that the training job saved."""
        return self.hyperparameters.get(OBJECTIVE)

    @property
    def kind(self) -> Kind:
        """What the model predicts, by its objective, or else by labels and predictions."""
        rows = self.scored or Round(0)
        return kind_of(self.objective, rows.labels, rows.predictions)

    def add(self, found: Round) -> None:
        """Take in one more round."""
        self.last_step = found.step
        self.hyperparameters |= found.hyperparameters
        for name, value in found.metrics.items():
            if name in self.losses or len(self.losses) < SERIES_KEPT:
                self.losses.setdefault(name, Points()).add(found.step, value)
        if found.importances:
            self.importances, self.importances_step = found.importances, found.step
        if found.labels.size:
            self.scored = found
            self._add_classes(found)
        for problem in found.problems:
            self._add_problem(problem)

    def _add_problem(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems[problem] = None

    def _add_classes(self, found: Round) -> None:
        if not self.kind.has_classes:
            return
        confusion = Confusion.of(found.labels, found.predictions)
        if confusion is None:
            self._add_problem(f"There are more than {CLASSES_SHOWN} classes, too many to be shown.")
            return
        self.recalls.add(found.step, dict(zip(confusion.classes, confusion.recall, strict=True)))
        for label, count in zip(confusion.classes, confusion.support, strict=True):
            known = label in self.label_counts or len(self.label_counts) < LABELS_KEPT
            if known and count:
                self.label_counts[label] += count
