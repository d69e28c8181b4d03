"""The JSON files of the report, by name: what the page shows, for programs."""

import itertools
import math
from typing import Any, Final

from builtin_rules.xgboost_report.figures import (
    Confusion,
    Kind,
    Roc,
    class_name,
    label_bins,
    residuals,
)
from builtin_rules.xgboost_report.history import History, Points
from builtin_rules.xgboost_report.reading import Round

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


def documents(history: History) -> Documents:
    """Return the files that the rounds so far have numbers for."""
    found: dict[str, dict[str, Any] | None] = {
        LOSS: _losses(history.losses),
        IMPORTANCE: _importances(history.importances),
    }
    kind, scored = history.kind, history.scored
    if scored is not None and kind.has_classes:
        found |= _of_classes(history, scored, kind)
    elif scored is not None and kind is Kind.REGRESSION:
        bins = label_bins(scored.labels, scored.predictions, scored.step)
        found |= {
            LABELS: _binned_labels(bins) if bins else None,
            RESIDUALS: residuals(scored.labels, scored.predictions, scored.step),
            ERRORS: bins,
        }
    return {name: one for name, one in found.items() if one}


def _losses(losses: dict[str, Points]) -> dict[str, Any] | None:
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
            for feature, share in sorted(shares.items(), key=lambda one: (-one[1], one[0]))
        ]
        for kind, shares in importances.items()
    }
    return {"features": features} if features else None


def _of_classes(history: History, scored: Round, kind: Kind) -> dict[str, dict[str, Any] | None]:
    confusion = Confusion.of(scored.labels, scored.predictions)
    roc = Roc.of(scored.labels, scored.predictions) if kind is Kind.BINARY else None
    counts = sorted(history.label_counts.items())
    return {
        LABELS: {
            "labels_and_samples": [
                {"labels": class_name(label), "num_samples_per_label": count}
                for label, count in counts
            ]
        }
        if counts
        else None,
        CONFUSION: confusion.document() if confusion else None,
        EVALUATION: confusion.evaluation() if confusion else None,
        ACCURACY: _accuracy(history.recalls),
        ROC: roc.document(scored.step) if roc else None,
    }


def _accuracy(recalls: Points) -> dict[str, Any]:
    """Return the recall of each class over the steps; None where no row had the class."""
    classes = sorted({one for by_class in recalls.values for one in by_class})
    return {
        class_name(label): [by_class.get(label) for by_class in recalls.values] for label in classes
    }


def _binned_labels(bins: dict[str, Any]) -> dict[str, Any]:
    """Return how many rows have labels around the middle of each bin."""
    edges = bins["edges"]
    middles = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
    return {
        "labels_and_samples": [
            {"labels": middle, "num_samples_per_label": count}
            for middle, count in zip(middles, bins["counts"], strict=True)
        ]
    }
