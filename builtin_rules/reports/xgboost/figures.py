"""The numbers of the XGBoost report, computed from labels and predictions."""

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CLASSES_SHOWN: Final = 100
BINS: Final = 10  # of labels
RESIDUAL_BINS: Final = 200  # at most
CURVE_POINTS: Final = 50
ROC_POINTS: Final = 500
HALF: Final = 0.5
BINARY: Final = 2  # classes


class ModelKind(enum.Enum):
    """What a model predicts, by its objective."""

    REGRESSION = "reg:squarederror"
    BINARY = "binary:logistic"
    MULTI = "multi:softmax"
    OTHER = "another objective"

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""
        return self in {ModelKind.BINARY, ModelKind.MULTI}


def kind_of(objective: str | None, labels: Floats, predictions: Floats) -> ModelKind:
    """Return the kind of an objective; without one, the kind that fits the numbers."""
    if objective is not None:
        by_objective = {kind.value: kind for kind in ModelKind if kind is not ModelKind.OTHER}
        return by_objective.get(objective, ModelKind.OTHER)
    if not labels.size or (labels != np.rint(labels)).any():
        return ModelKind.REGRESSION if labels.size else ModelKind.OTHER
    if (predictions == np.rint(predictions)).all():
        return ModelKind.MULTI
    inside = ((predictions >= 0) & (predictions <= 1)).all() and np.isin(labels, (0, 1)).all()
    return ModelKind.BINARY if inside else ModelKind.REGRESSION


def class_name(label: float) -> str:
    """Return the name of a class.

    >>> class_name(3.0), class_name(0.5)
    ('3', '0.5')
    """
    return str(int(label)) if float(label).is_integer() else str(label)


@dataclass(frozen=True, slots=True)
class ConfusionCounts:
    """How often each class (row) was predicted as each class (column).

    Attributes
    ----------
    classes
        All classes among labels and predictions, ascending.
    counts
        Shape ``(classes, classes)``.
    """

    classes: list[float]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Floats, predictions: Floats) -> "ConfusionCounts | None":
        """Count rows by label and rounded prediction; None above `CLASSES_SHOWN` classes."""
        predicted = np.rint(predictions)
        classes, places = np.unique(np.concatenate([labels, predicted]), return_inverse=True)
        size = len(classes)
        if size > CLASSES_SHOWN:
            return None
        cells = places[: labels.size] * size + places[labels.size :]
        counts = np.bincount(cells, minlength=size * size).reshape(size, size)
        return cls([float(label) for label in classes], counts)

    @property
    def accuracy(self) -> float:
        """The share of rows with a correct prediction."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def support(self) -> list[int]:
        """The number of rows of each class."""
        return [int(count) for count in self.counts.sum(axis=1)]

    @property
    def recall(self) -> list[float | None]:
        """The share of correct predictions of each class; None without rows."""
        rows = self.counts.sum(axis=1)
        diagonal = np.diag(self.counts)
        return [float(hit / row) if row else None for hit, row in zip(diagonal, rows, strict=True)]

    def scores(self) -> Floats:
        """Return precision, recall and F1 of each class, 0 where undefined: ``(classes, 3)``."""
        hits = np.diag(self.counts).astype(np.float64)
        precision = _ratio(hits, self.counts.sum(axis=0))
        recall = _ratio(hits, self.counts.sum(axis=1))
        f1 = _ratio(2 * precision * recall, precision + recall)
        return np.stack([precision, recall, f1], axis=1)

    def document(self) -> dict[str, Any]:
        """Return ``ConfusionMatrix.json``, whose groups are the cells, row by row."""
        names = [class_name(label) for label in self.classes]
        total = self.counts.sum()
        stats = {"accuracy": self.accuracy}
        if len(self.classes) == BINARY:
            stats |= _named(self.scores()[1])
        return {
            "group_labels": [f"{true} as {predicted}" for true in names for predicted in names],
            "group_counts": self.counts.reshape(-1).tolist(),
            "group_percentages": [round(label / total, 5) for label in self.counts.reshape(-1)],
            "stats": stats,
        }

    def evaluation(self) -> dict[str, Any]:
        """Return ``EvaluationMetrics.json``."""
        scores, support = self.scores(), self.counts.sum(axis=1)
        micro = np.full(3, self.accuracy)  # each row has one label and one prediction
        averages = {
            "micro": micro,
            "macro": scores.mean(axis=0),
            "weighted": support @ scores / support.sum(),
        }
        return {
            "overall_accuracy": self.accuracy,
            "classification_report": self._report(averages),
            **{
                f"{name}_performance_metrics": _named(average) for name, average in averages.items()
            },
        }

    def _report(self, averages: Mapping[str, Floats]) -> str:
        lines = [f"{'':>12} {'precision':>10} {'recall':>10} {'f1-score':>10} {'support':>10}"]
        rows = zip(map(class_name, self.classes), self.scores(), self.support, strict=True)
        total = int(self.counts.sum())
        for name, values, count in (
            *rows,
            *((f"{name} avg", average, total) for name, average in averages.items()),
        ):
            numbers = " ".join(f"{value:10.4f}" for value in values)
            lines.append(f"{name:>12} {numbers} {count:10d}")
        return "\n".join(lines)


def _ratio(over: Floats, under: NDArray[Any]) -> Floats:
    ratio: Floats = np.divide(over, under, out=np.zeros_like(over), where=under != 0)
    return ratio


def _named(scores: Floats) -> dict[str, float]:
    return dict(zip(("precision", "recall", "f1_score"), map(float, scores), strict=True))


@dataclass(frozen=True, slots=True)
class RocCurve:
    """A receiver operating characteristic; both rates increase from 0 to 1."""

    false_rate: list[float]
    true_rate: list[float]
    auc: float

    @classmethod
    def of(cls, labels: Floats, scores: Floats) -> "RocCurve | None":
        """Return the curve of labels above 0.5 against others; None without both kinds."""
        order = np.argsort(-scores, kind="stable")
        positive = (labels[order] > HALF).astype(np.int64)
        # Rows with equal scores share one point of the curve.
        ends = np.append(np.flatnonzero(np.diff(scores[order])), labels.size - 1)
        hits = np.cumsum(positive)[ends]
        misses = ends + 1 - hits
        if not hits[-1] or not misses[-1]:
            return None
        true, false = np.append(0, hits / hits[-1]), np.append(0, misses / misses[-1])
        auc = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
        indices = np.unique(np.linspace(0, len(true) - 1, ROC_POINTS).astype(np.int64))
        return cls(false[indices].tolist(), true[indices].tolist(), auc)

    def document(self, step: int) -> dict[str, Any]:
        """Return ``RocCurve.json``."""
        return {
            "plot_step": step,
            "false_positive_rate": self.false_rate,
            "true_positive_rate": self.true_rate,
            "auc": self.auc,
        }


def residuals(labels: Floats, predictions: Floats, step: int) -> dict[str, Any] | None:
    """Return ``ResidualDistribution.json``; None if values are too close for a histogram.

    The histogram of prediction minus label is a density, comparable with the normal distribution of
    mean `mu` and standard deviation `sigma`.
    """
    errors = predictions - labels
    try:
        with np.errstate(all="ignore"):
            hist, edges = np.histogram(errors, bins=_bins(errors), density=True)
    except ValueError:  # the range holds fewer numbers than bins
        return None
    if not np.isfinite(hist).all():
        return None
    return {
        "plot_step": step,
        "hist": hist.tolist(),
        "edges": edges.tolist(),
        "x": np.linspace(edges[0], edges[-1], CURVE_POINTS).tolist(),
        "mu": float(errors.mean()),
        "sigma": float(errors.std()),
    }


def _bins(values: Floats) -> int:
    """Return numpy's automatic number of bins, bounded, as an outlier would cause millions."""
    sturges = math.ceil(math.log2(values.size)) + 1
    low, high = np.percentile(values, (25, 75))
    width = 2 * (high - low) / values.size ** (1 / 3)
    freedman = np.ptp(values) / width if width else 0.0
    return int(min(max(sturges, math.ceil(min(freedman, RESIDUAL_BINS))), RESIDUAL_BINS))


def normal(x: Sequence[float], mu: float, sigma: float) -> list[float]:
    """Return the normal density at each of `x`."""
    scale = sigma * math.sqrt(2 * math.pi)
    return [math.exp(-0.5 * ((value - mu) / sigma) ** 2) / scale for value in x]


def label_bins(labels: Floats, predictions: Floats, step: int) -> dict[str, Any] | None:
    """Return ``AbsoluteErrorPerLabelBin.json``; None if values are too close for a histogram."""
    errors = np.abs(predictions - labels)
    try:
        edges = np.histogram_bin_edges(labels, BINS)
    except ValueError:  # the range holds fewer numbers than bins
        return None
    counts, _ = np.histogram(labels, edges)
    sums, _ = np.histogram(labels, edges, weights=errors)
    means = [
        float(total / count) if count else None for total, count in zip(sums, counts, strict=True)
    ]
    return {
        "plot_step": step,
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "mean_absolute_error": means,
    }
