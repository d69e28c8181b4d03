"""RoundHistory: the data of all rounds that the report needs, in bounded memory."""

from collections import Counter
from typing import Any, Final

from builtin_rules.reports.xgboost.figures import CLASSES_SHOWN, ConfusionCounts, ModelKind, kind_of
from builtin_rules.reports.xgboost.reading import OBJECTIVE, Round

POINTS_KEPT: Final = 1000
LABELS_KEPT: Final = 1000
SERIES_KEPT: Final = 100
PROBLEMS_KEPT: Final = 20


class ThinnedPoints:
    """Values by step; whenever there are more than `POINTS_KEPT`, every second one is dropped."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[Any] = []
        self._every = 1
        self._count = 0

    def add(self, step: int, value: Any) -> None:
        """Add the next value, unless it is thinned out."""
        if self._count % self._every == 0:
            self.steps.append(step)
            self.values.append(value)
        self._count += 1
        if len(self.steps) > POINTS_KEPT:
            self.steps, self.values = self.steps[::2], self.values[::2]
            self._every *= 2


class RoundHistory:
    """The rounds of a training so far.

    Attributes
    ----------
    losses
        Each metric by step; at most `SERIES_KEPT` metrics.
    recalls
        The recall of each class by step.
    label_counts
        The number of rows with each label over all steps; at most `LABELS_KEPT` labels.
    scored
        The last round with labels and predictions.
    """

    def __init__(self) -> None:
        self.hyperparameters: dict[str, str] = {}
        self.losses: dict[str, ThinnedPoints] = {}
        self.recalls = ThinnedPoints()
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
    def kind(self) -> ModelKind:
        """What the model predicts, by its objective or by labels and predictions."""
        rows = self.scored or Round(0)
        return kind_of(self.objective, rows.labels, rows.predictions)

    def add(self, round_data: Round) -> None:
        """Add a round."""
        self.last_step = round_data.step
        self.hyperparameters |= round_data.hyperparameters
        for name, value in round_data.metrics.items():
            if name in self.losses or len(self.losses) < SERIES_KEPT:
                self.losses.setdefault(name, ThinnedPoints()).add(round_data.step, value)
        if round_data.importances:
            self.importances, self.importances_step = round_data.importances, round_data.step
        if round_data.labels.size:
            self.scored = round_data
            self._add_classes(round_data)
        for problem in round_data.problems:
            self._add_problem(problem)

    def _add_problem(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems[problem] = None

    def _add_classes(self, round_data: Round) -> None:
        if not self.kind.has_classes:
            return
        confusion = ConfusionCounts.of(round_data.labels, round_data.predictions)
        if confusion is None:
            self._add_problem(f"There are more than {CLASSES_SHOWN} classes, too many to show.")
            return
        self.recalls.add(
            round_data.step, dict(zip(confusion.classes, confusion.recall, strict=True))
        )
        for label, count in zip(confusion.classes, confusion.support, strict=True):
            is_counted = label in self.label_counts or len(self.label_counts) < LABELS_KEPT
            if is_counted and count:
                self.label_counts[label] += count
