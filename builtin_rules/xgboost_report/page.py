"""The page of the report: one HTML file that needs no other, no network and no script."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

import jinja2

from builtin_rules.xgboost_report import documents as names
from builtin_rules.xgboost_report.chart import HEIGHT, WIDTH, Chart, chart
from builtin_rules.xgboost_report.documents import Documents
from builtin_rules.xgboost_report.figures import Kind, normal
from builtin_rules.xgboost_report.history import History

NAME: Final = "xgboost_report.html"
POOR_AUC: Final = 0.6
FEATURES_SHOWN: Final = 20
LABELS_SHOWN: Final = 100
LINES_SHOWN: Final = 16
SUPPORTED: Final = tuple(kind.value for kind in Kind if kind is not Kind.OTHER)


def render(trial_name: str, history: History, found: Documents, made_at: datetime) -> str:
    """Return the page.

    Parameters
    ----------
    found
        What `documents` made of `history`.
    made_at
        Aware.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scored = history.scored
    return environment.get_template("page.html.jinja").render(
        trial=trial_name,
        made_at=f"{made_at:%Y-%m-%d %H:%M %Z}",
        width=WIDTH,
        height=HEIGHT,
        warnings=_warnings(history),
        kind=history.kind,
        hyperparameters=sorted(history.hyperparameters.items()),
        last_step=history.last_step,
        plot_step=None if scored is None else scored.step,
        importances_step=history.importances_step,
        rows=0 if scored is None else scored.labels.size,
        labels=_labels(found),
        loss=_loss(history, found),
        importances=_importances(found),
        confusion=_confusion(found),
        evaluation=found.get(names.EVALUATION),
        accuracy=_accuracy(history, found),
        roc=_roc(found),
        auc=found.get(names.ROC, {}).get("auc"),
        poor_auc=POOR_AUC,
        residuals=_residuals(found),
        spread=found.get(names.RESIDUALS),
        errors=_errors(found),
    )


def _warnings(history: History) -> list[str]:
    """Return what whoever reads the page should know first."""
    said = []
    if history.objective is None and history.scored is not None:
        said.append(
            f"The objective was not saved; labels and predictions look like {history.kind.value}. "
            "Give the hook 'hyperparameters' to say it."
        )
    if history.objective is not None and history.kind is Kind.OTHER:
        said.append(
            f"Objective {history.objective!r} has no plots of labels and predictions. "
            f"These have: {', '.join(SUPPORTED)}."
        )
    if history.scored is None:
        said.append("No labels and predictions were saved together: give the hook both.")
    if history.last_step == 0:
        said.append("The last saved round is the first one: at least one more has to be saved.")
    return [*said, *history.problems]


def _labels(found: Documents) -> list[tuple[str, int, float]]:
    """Return label, number and share of the largest number of each row."""
    rows = found.get(names.LABELS, {}).get("labels_and_samples", [])[:LABELS_SHOWN]
    counts = [row["num_samples_per_label"] for row in rows]
    return [
        (_brief(row["labels"]), count, _part(count, max(counts)))
        for row, count in zip(rows, counts, strict=True)
    ]


def _brief(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _loss(history: History, found: Documents) -> Chart | None:
    if names.LOSS not in found:
        return None
    lines = [(name, one.steps, one.values) for name, one in history.losses.items()]
    return chart("Metrics over the rounds", ("step", "metric"), lines[:LINES_SHOWN])


def _importances(found: Documents) -> dict[str, list[tuple[str, float, float]]]:
    """Return feature, percent and share of the largest of each row, by kind."""
    kinds = found.get(names.IMPORTANCE, {}).get("features", {})
    return {
        kind: [
            (row["feature"], row["importance"], _part(row["importance"], rows[0]["importance"]))
            for row in rows[:FEATURES_SHOWN]
        ]
        for kind, rows in kinds.items()
    }


def _part(value: float, most: float) -> float:
    """Return a length between 0 and 1."""
    return min(max(value / most, 0.0), 1.0) if most > 0 else 0.0


def _confusion(found: Documents) -> dict[str, Any] | None:
    document = found.get(names.CONFUSION)
    if document is None:
        return None
    size = round(len(document["group_counts"]) ** 0.5)
    classes = [
        label.partition(" as ")[2] for label in document["group_labels"][:size]
    ]  # of the first row
    rows = []
    for at, name in enumerate(classes):
        counts = document["group_counts"][at * size : (at + 1) * size]
        total = sum(counts) or 1
        rows.append((name, [(count, count / total) for count in counts]))
    return {"classes": classes, "rows": rows}


def _accuracy(history: History, found: Documents) -> Chart | None:
    classes = list(found.get(names.ACCURACY, {}).items())[:LINES_SHOWN]
    lines = [(f"class {name}", history.recalls.steps, values) for name, values in classes]
    if not lines:
        return None
    return chart("Accuracy of each class", ("step", "recall"), lines, from_zero=True)


def _roc(found: Documents) -> Chart | None:
    curve = found.get(names.ROC)
    if curve is None:
        return None
    lines = [
        ("model", curve["false_positive_rate"], curve["true_positive_rate"]),
        ("chance", [0.0, 1.0], [0.0, 1.0]),
    ]
    return chart("ROC curve", ("false positive rate", "true positive rate"), lines)


def _residuals(found: Documents) -> Chart | None:
    one = found.get(names.RESIDUALS)
    if one is None:
        return None
    curve = normal(one["x"], one["mu"], one["sigma"]) if one["sigma"] else []
    lines = [("normal curve", one["x"], curve)] if curve else []
    bars = (one["edges"], one["hist"])
    return chart("Residuals", ("prediction minus label", "density"), lines, bars)


def _errors(found: Documents) -> Chart | None:
    one = found.get(names.ERRORS)
    if one is None:
        return None
    bars = (one["edges"], one["mean_absolute_error"])
    return chart("Absolute error by label", ("label", "mean absolute error"), (), bars)
