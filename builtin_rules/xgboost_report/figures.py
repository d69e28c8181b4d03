"""The numbers of the report, from labels, predictions and importances."""

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


class Kind(enum.Enum):
    """What a model predicts."""

    REGRESSION = "reg:squarederror"
    BINARY = "binary:logistic"
    MULTI = "multi:softmax"
    OTHER = "another objective"

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""
        return self in {Kind.BINARY, Kind.MULTI}


def kind_of(objective: str | None, labels: Floats, predictions: Floats) -> Kind:
    """Return what an objective predicts; without one, what the numbers look like."""
    if objective is not None:
        known = {kind.value: kind for kind in Kind if kind is not Kind.OTHER}
        return known.get(objective, Kind.OTHER)
    if not labels.size or (labels != np.rint(labels)).any():
        return Kind.REGRESSION if labels.size else Kind.OTHER
    if (predictions == np.rint(predictions)).all():
        return Kind.MULTI
    inside = ((predictions >= 0) & (predictions <= 1)).all() and np.isin(labels, (0, 1)).all()
    return Kind.BINARY if inside else Kind.REGRESSION


def class_name(label: float) -> str:
    """Return a class as it is shown.

    >>> class_name(3.0), class_name(0.5)
    ('3', '0.5')
    """
    return str(int(label)) if float(label).is_integer() else str(label)


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each class (row) was predicted as each class (column).

    Attributes
    ----------
    classes
        All that are labelled or predicted, ascending.
    counts
        Shape ``(classes, classes)``.
    """

    classes: list[float]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, labels: Floats, predictions: Floats) -> "Confusion | None":
        """Count rows by label and rounded prediction; None of more than `CLASSES_SHOWN` classes."""
        predicted = np.rint(predictions)
        classes, places = np.unique(np.concatenate([labels, predicted]), return_inverse=True)
        size = len(classes)
        if size > CLASSES_SHOWN:
            return None
        cells = places[: labels.size] * size + places[labels.size :]
        counts = np.bincount(cells, minlength=size * size).reshape(size, size)
        return cls([float(one) for one in classes], counts)

    @property
    def accuracy(self) -> float:
        """The share of rows that are predicted as they are labelled."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def support(self) -> list[int]:
        """The number of rows of each class."""
        return [int(one) for one in self.counts.sum(axis=1)]

    @property
    def recall(self) -> list[float | None]:
        """The diagonal of the matrix with rows divided by their sums; None without rows."""
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
        """Return ``ConfusionMatrix.json``; its groups are the cells, row by row."""
        names = [class_name(one) for one in self.classes]
        total = self.counts.sum()
        stats = {"accuracy": self.accuracy}
        if len(self.classes) == 2:  # noqa: PLR2004 - binary
            stats |= _named(self.scores()[1])
        return {
            "group_labels": [f"{true} as {predicted}" for true in names for predicted in names],
            "group_counts": self.counts.reshape(-1).tolist(),
            "group_percentages": [round(one / total, 5) for one in self.counts.reshape(-1)],
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
            **{f"{name}_performance_metrics": _named(one) for name, one in averages.items()},
        }

    def _report(self, averages: Mapping[str, Floats]) -> str:
        lines = [f"{'':>12} {'precision':>10} {'recall':>10} {'f1-score':>10} {'support':>10}"]
        rows = zip(map(class_name, self.classes), self.scores(), self.support, strict=True)
        total = int(self.counts.sum())
        for name, values, count in (
            *rows,
            *((f"{name} avg", one, total) for name, one in averages.items()),
        ):
            numbers = " ".join(f"{value:10.4f}" for value in values)
            lines.append(f"{name:>12} {numbers} {count:10d}")
        return "\n".join(lines)


def _ratio(over: Floats, under: NDArray[Any]) -> Floats:
    found: Floats = np.divide(over, under, out=np.zeros_like(over), where=under != 0)
    return found


def _named(scores: Floats) -> dict[str, float]:
    return dict(zip(("precision", "recall", "f1_score"), map(float, scores), strict=True))


@dataclass(frozen=True, slots=True)
class Roc:
    """The receiver operating characteristic of scores; both rates rise from 0 to 1."""

    false_rate: list[float]
    true_rate: list[float]
    auc: float

    @classmethod
    def of(cls, labels: Floats, scores: Floats) -> "Roc | None":
        """Return the curve of labels above 0.5 against the others; None if there is one kind."""
        order = np.argsort(-scores, kind="stable")
        positive = (labels[order] > HALF).astype(np.int64)
        # Rows of one score fall together: the curve has a point behind the last of them.
        ends = np.append(np.flatnonzero(np.diff(scores[order])), labels.size - 1)
        hits = np.cumsum(positive)[ends]
        misses = ends + 1 - hits
        if not hits[-1] or not misses[-1]:
            return None
        true, false = np.append(0, hits / hits[-1]), np.append(0, misses / misses[-1])
        auc = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
        kept = np.unique(np.linspace(0, len(true) - 1, ROC_POINTS).astype(np.int64))
        return cls(false[kept].tolist(), true[kept].tolist(), auc)

    def document(self, step: int) -> dict[str, Any]:
        """Return ``RocCurve.json``."""
        return {
            "plot_step": step,
            "false_positive_rate": self.false_rate,
            "true_positive_rate": self.true_rate,
            "auc": self.auc,
        }


def residuals(labels: Floats, predictions: Floats, step: int) -> dict[str, Any] | None:
    """Return ``ResidualDistribution.json``; None of numbers too close for a histogram.

    The histogram of prediction minus label is a density, so that the normal curve of mean `mu` and
    standard deviation `sigma` can be drawn over it.
    """
    found = predictions - labels
    try:
        with np.errstate(all="ignore"):
            hist, edges = np.histogram(found, bins=_bins(found), density=True)
    except ValueError:  # the range holds fewer numbers than bins
        return None
    if not np.isfinite(hist).all():
        return None
    return {
        "plot_step": step,
        "hist": hist.tolist(),
        "edges": edges.tolist(),
        "x": np.linspace(edges[0], edges[-1], CURVE_POINTS).tolist(),
        "mu": float(found.mean()),
        "sigma": float(found.std()),
    }


def _bins(values: Floats) -> int:
    """Return numpy's automatic number of bins, within bounds: an outlier would make millions."""
    sturges = math.ceil(math.log2(values.size)) + 1
    low, high = np.percentile(values, (25, 75))
    width = 2 * (high - low) / values.size ** (1 / 3)
    freedman = np.ptp(values) / width if width else 0.0
    return int(min(max(sturges, math.ceil(min(freedman, RESIDUAL_BINS))), RESIDUAL_BINS))


def normal(x: Sequence[float], mu: float, sigma: float) -> list[float]:
    """Return the normal density at each of `x`."""
    scale = sigma * math.sqrt(2 * math.pi)
    return [math.exp(-0.5 * ((one - mu) / sigma) ** 2) / scale for one in x]


def label_bins(labels: Floats, predictions: Floats, step: int) -> dict[str, Any] | None:
    """Return ``AbsoluteErrorPerLabelBin.json``; None of numbers too close for a histogram."""
    errors = np.abs(predictions - labels)
    try:
        edges = np.histogram_bin_edges(labels, BINS)
    except ValueError:  # the range holds fewer numbers than bins
        return None
    counts, _ = np.histogram(labels, edges)
    sums, _ = np.histogram(labels, edges, weights=errors)
    means = [float(one / count) if count else None for one, count in zip(sums, counts, strict=True)]
    return {
        "plot_step": step,
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "mean_absolute_error": means,
    }
