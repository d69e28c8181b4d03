"""The page of the XGBoost report: one HTML file without scripts or external resources."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

from builtin_rules.reports.page_template import template
from builtin_rules.reports.xgboost import documents as names
from builtin_rules.reports.xgboost.documents import Documents
from builtin_rules.reports.xgboost.figures import ModelKind, normal
from builtin_rules.reports.xgboost.history import RoundHistory
from smdebug.rules.extensions import Plot, plot

NAME: Final = "xgboost_report.html"
POOR_AUC: Final = 0.6
FEATURES_SHOWN: Final = 20
LABELS_SHOWN: Final = 100
LINES_SHOWN: Final = 16
SUPPORTED: Final = tuple(kind.value for kind in ModelKind if kind is not ModelKind.OTHER)


def render(trial_name: str, history: RoundHistory, contents: Documents, made_at: datetime) -> str:
    """Return the page.

    Parameters
    ----------
    contents
        The documents of `history`.
    made_at
        The current time; aware.
    """
    scored = history.scored
    return template(Path(__file__).parent).render(
        trial=trial_name,
        made_at=f"{made_at:%Y-%m-%d %H:%M %Z}",
        width=Plot.WIDTH,
        height=Plot.HEIGHT,
        warnings=_warnings(history),
        kind=history.kind,
        hyperparameters=sorted(history.hyperparameters.items()),
        last_step=history.last_step,
        plot_step=None if scored is None else scored.step,
        importances_step=history.importances_step,
        rows=0 if scored is None else scored.labels.size,
        labels=_labels(contents),
        loss=_loss(history, contents),
        importances=_importances(contents),
        confusion=_confusion(contents),
        evaluation=contents.get(names.EVALUATION),
        accuracy=_accuracy(history, contents),
        roc=_roc(contents),
        auc=contents.get(names.ROC, {}).get("auc"),
        poor_auc=POOR_AUC,
        residuals=_residuals(contents),
        spread=contents.get(names.RESIDUALS),
        errors=_errors(contents),
    )


def _warnings(history: RoundHistory) -> list[str]:
    """Return the warnings at the top of the page."""
    warnings = []
    if history.objective is None and history.scored is not None:
        warnings.append(
            f"The objective was not saved; labels and predictions look like {history.kind.value}. "
            "Pass 'hyperparameters' to the hook to save it."
        )
    if history.objective is not None and history.kind is ModelKind.OTHER:
        warnings.append(
            f"Plots of labels and predictions do not support objective {history.objective!r}. "
            f"Supported objectives: {', '.join(SUPPORTED)}."
        )
    if history.scored is None:
        warnings.append(
            "Labels and predictions were not saved together. Save both at the same steps."
        )
    if history.last_step == 0:
        warnings.append("Only the first round was saved. Save at least one more.")
    return [*warnings, *history.problems]


def _labels(contents: Documents) -> list[tuple[str, int, float]]:
    """Return label, count and share of the largest count of each row."""
    rows = contents.get(names.LABELS, {}).get("labels_and_samples", [])[:LABELS_SHOWN]
    counts = [row["num_samples_per_label"] for row in rows]
    return [
        (_brief(row["labels"]), count, _part(count, max(counts)))
        for row, count in zip(rows, counts, strict=True)
    ]


def _brief(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _loss(history: RoundHistory, contents: Documents) -> Plot | None:
    if names.LOSS not in contents:
        return None
    lines = [(name, points.steps, points.values) for name, points in history.losses.items()]
    return plot("Metrics over the rounds", ("step", "metric"), lines[:LINES_SHOWN])


def _importances(contents: Documents) -> dict[str, list[tuple[str, float, float]]]:
    """Return feature, percentage and share of the largest of each row, by kind."""
    kinds = contents.get(names.IMPORTANCE, {}).get("features", {})
    return {
        kind: [
            (row["feature"], row["importance"], _part(row["importance"], rows[0]["importance"]))
            for row in rows[:FEATURES_SHOWN]
        ]
        for kind, rows in kinds.items()
    }


def _part(value: float, most: float) -> float:
    """Return a share between 0 and 1."""
    return min(max(value / most, 0.0), 1.0) if most > 0 else 0.0


def _confusion(contents: Documents) -> dict[str, Any] | None:
    document = contents.get(names.CONFUSION)
    if document is None:
        return None
    size = round(len(document["group_counts"]) ** 0.5)
    first_row = document["group_labels"][:size]
    classes = [label.partition(" as ")[2] for label in first_row]
    rows = []
    for row, name in enumerate(classes):
        counts = document["group_counts"][row * size : (row + 1) * size]
        total = sum(counts) or 1
        rows.append((name, [(count, count / total) for count in counts]))
    return {"classes": classes, "rows": rows}


def _accuracy(history: RoundHistory, contents: Documents) -> Plot | None:
    classes = list(contents.get(names.ACCURACY, {}).items())[:LINES_SHOWN]
    lines = [(f"class {name}", history.recalls.steps, values) for name, values in classes]
    if not lines:
        return None
    return plot("Accuracy of each class", ("step", "recall"), lines, from_zero=True)


def _roc(contents: Documents) -> Plot | None:
    curve = contents.get(names.ROC)
    if curve is None:
        return None
    lines = [
        ("model", curve["false_positive_rate"], curve["true_positive_rate"]),
        ("chance", [0.0, 1.0], [0.0, 1.0]),
    ]
    return plot("ROC curve", ("false positive rate", "true positive rate"), lines)


def _residuals(contents: Documents) -> Plot | None:
    content = contents.get(names.RESIDUALS)
    if content is None:
        return None
    x, mu, sigma = content["x"], content["mu"], content["sigma"]
    lines = [("normal curve", x, normal(x, mu, sigma))] if sigma else []
    bars = (content["edges"], content["hist"])
    return plot("Residuals", ("prediction minus label", "density"), lines, bars)


def _errors(contents: Documents) -> Plot | None:
    content = contents.get(names.ERRORS)
    if content is None:
        return None
    bars = (content["edges"], content["mean_absolute_error"])
    return plot("Absolute error by label", ("label", "mean absolute error"), (), bars)
