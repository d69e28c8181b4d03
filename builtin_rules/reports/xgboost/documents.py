"""The JSON files of the XGBoost report, by name: the data of the page."""

import itertools
import math
from collections.abc import Iterable
from typing import Any, Final

from builtin_rules.reports.xgboost.figures import (
    ConfusionCounts,
    ModelKind,
    RocCurve,
    class_name,
    label_bins,
    residuals,
)
from builtin_rules.reports.xgboost.history import RoundHistory, ThinnedPoints
from builtin_rules.reports.xgboost.reading import Round

LABELS: Final = "LabelsDistribution.json"
LOSS: Final = "LossData.json"
IMPORTANCE: Final = "FeatureImportance.json"
CONFUSION: Final = "ConfusionMatrix.json"
EVALUATION: Final = "EvaluationMetrics.json"
ACCURACY: Final = "IterativeClassAccuracy.json"
ROC: Final = "RocCurve.json"
RESIDUALS: Final = "ResidualDistribution.json"
ERRORS: Final = "AbsoluteErrorPerLabelBin.json"

Documents = dict[str, dict[str, Any]]


def documents(history: RoundHistory) -> Documents:
    """Return the files for which the rounds so far have data."""
    contents: dict[str, dict[str, Any] | None] = {
        LOSS: _losses(history.losses),
        IMPORTANCE: _importances(history.importances),
    }
    kind, scored = history.kind, history.scored
    if scored is not None and kind.has_classes:
        contents |= _of_classes(history, scored, kind)
    elif scored is not None and kind is ModelKind.REGRESSION:
        bins = label_bins(scored.labels, scored.predictions, scored.step)
        contents |= {
            LABELS: _binned_labels(bins) if bins else None,
            RESIDUALS: residuals(scored.labels, scored.predictions, scored.step),
            ERRORS: bins,
        }
    return {name: content for name, content in contents.items() if content}


def _losses(losses: dict[str, ThinnedPoints]) -> dict[str, Any] | None:
    rows = [
        {"steps": step, "loss": value if math.isfinite(value) else None, "category": name}
        for name, points in losses.items()
        for step, value in zip(points.steps, points.values, strict=True)
    ]
    return {"category_loss_per_step": rows} if rows else None


def _importances(importances: dict[str, dict[str, float]]) -> dict[str, Any] | None:
    features = {
        kind: [
            {"feature": feature, "importance": 100 * share}
            for feature, share in sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        ]
        for kind, shares in importances.items()
    }
    return {"features": features} if features else None


def _of_classes(
    history: RoundHistory, scored: Round, kind: ModelKind
) -> dict[str, dict[str, Any] | None]:
    confusion = ConfusionCounts.of(scored.labels, scored.predictions)
    roc = RocCurve.of(scored.labels, scored.predictions) if kind is ModelKind.BINARY else None
    counts = [(class_name(label), count) for label, count in sorted(history.label_counts.items())]
    return {
        LABELS: _distribution(counts) if counts else None,
        CONFUSION: confusion.document() if confusion else None,
        EVALUATION: confusion.evaluation() if confusion else None,
        ACCURACY: _accuracy(history.recalls),
        ROC: roc.document(scored.step) if roc else None,
    }


def _accuracy(recalls: ThinnedPoints) -> dict[str, Any]:
    """Return the recall of each class by step; None where no row had the class."""
    classes = sorted({label for by_class in recalls.values for label in by_class})
    return {
        class_name(label): [by_class.get(label) for by_class in recalls.values] for label in classes
    }


def _binned_labels(bins: dict[str, Any]) -> dict[str, Any]:
    """Return the number of labels in each bin, by the middle of the bin."""
    edges = bins["edges"]
    middles = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
    return _distribution(zip(middles, bins["counts"], strict=True))


def _distribution(counts: Iterable[tuple[Any, int]]) -> dict[str, Any]:
    rows = [{"labels": label, "num_samples_per_label": count} for label, count in counts]
    return {"labels_and_samples": rows}
