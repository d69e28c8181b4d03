"""The numbers of CreateXgboostReport against slow versions that count row by row."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rules.reports.xgboost.figures import (
    ConfusionCounts,
    ModelKind,
    RocCurve,
    kind_of,
    label_bins,
    normal,
    residuals,
)
from builtin_rules.reports.xgboost.history import POINTS_KEPT, ThinnedPoints
from rule_core.analysis.plot import AxisTick, plot

Rows = list[tuple[float, float]]


def columns(rows: Rows) -> tuple[Any, Any]:
    labels, predictions = zip(*rows, strict=True)
    return np.array(labels, np.float64), np.array(predictions, np.float64)


classes = st.lists(
    st.tuples(st.integers(0, 4).map(float), st.sampled_from([0.0, 0.4, 0.6, 1.0, 2.2, 3.0])),
    min_size=1,
    max_size=30,
)


@given(classes)
def test_confusion_and_scores(rows: Rows) -> None:
    confusion = ConfusionCounts.of(*columns(rows))
    assert confusion is not None
    rounded = [(label, float(round(one))) for label, one in rows]
    names = sorted({one for row in rounded for one in row})
    counts = [[rounded.count((label, one)) for one in names] for label in names]
    assert (confusion.classes, confusion.counts.tolist()) == (names, counts)

    scores = []
    for at, _ in enumerate(names):
        hits, predicted, labelled = (
            counts[at][at],
            sum(row[at] for row in counts),
            sum(counts[at]),
        )
        precision = hits / predicted if predicted else 0.0
        recall = hits / labelled if labelled else 0.0
        both = precision + recall
        scores.append([precision, recall, 2 * precision * recall / both if both else 0.0])
    np.testing.assert_allclose(confusion.scores(), scores)

    found = confusion.evaluation()
    accuracy = sum(label == one for label, one in rounded) / len(rounded)
    weights = [sum(row) / len(rows) for row in counts]
    for at, name in enumerate(("precision", "recall", "f1_score")):
        column = [one[at] for one in scores]
        assert found["micro_performance_metrics"][name] == accuracy
        assert math.isclose(
            found["macro_performance_metrics"][name], sum(column) / len(names), abs_tol=1e-12
        )
        weighted = sum(one * weight for one, weight in zip(column, weights, strict=True))
        assert math.isclose(found["weighted_performance_metrics"][name], weighted, abs_tol=1e-12)


def test_the_report_in_text_is_a_table() -> None:
    confusion = ConfusionCounts.of(np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 1]))
    assert confusion is not None
    assert confusion.evaluation()["classification_report"].splitlines() == [
        "              precision     recall   f1-score    support",
        "           0     1.0000     0.5000     0.6667          2",
        "           1     0.6667     1.0000     0.8000          2",
        "   micro avg     0.7500     0.7500     0.7500          4",
        "   macro avg     0.8333     0.7500     0.7333          4",
        "weighted avg     0.8333     0.7500     0.7333          4",
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.1, 0.3, 0.5, 0.9])),
        min_size=1,
        max_size=30,
    )
)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows: Rows) -> None:
    good = [score for label, score in rows if label]
    bad = [score for label, score in rows if not label]
    roc = RocCurve.of(*columns(rows))
    if not good or not bad:
        assert roc is None
        return
    assert roc is not None
    pairs = [(one > other) + (one == other) / 2 for one in good for other in bad]
    assert math.isclose(roc.auc, sum(pairs) / len(pairs), abs_tol=1e-12)
    curve = list(zip(roc.false_rate, roc.true_rate, strict=True))
    expected = [(0.0, 0.0)] + [
        (sum(one >= limit for one in bad) / len(bad), sum(one >= limit for one in good) / len(good))
        for limit in sorted({score for _, score in rows}, reverse=True)
    ]
    np.testing.assert_allclose(curve, expected)


def test_a_long_curve_keeps_its_ends_and_its_area() -> None:
    labels = np.arange(10_000) % 2.0
    roc = RocCurve.of(labels, np.arange(10_000.0))
    assert roc is not None
    assert (len(roc.true_rate), roc.true_rate[0], roc.true_rate[-1]) == (500, 0.0, 1.0)
    assert math.isclose(roc.auc, 0.5, abs_tol=1e-3)


numbers = st.floats(-100, 100, allow_nan=False).map(lambda one: round(one, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40))
def test_regression(rows: Rows) -> None:
    labels, predictions = columns(rows)
    errors = [one - label for label, one in rows]
    found = residuals(labels, predictions, 7)
    assert found is not None
    mean = sum(errors) / len(errors)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in errors) / len(errors))
    assert math.isclose(found["mu"], mean, abs_tol=1e-9)
    assert math.isclose(found["sigma"], deviation, abs_tol=1e-9)
    widths = np.diff(found["edges"])
    assert math.isclose(sum(widths * found["hist"]), 1, rel_tol=1e-9)
    assert (len(found["x"]), found["plot_step"]) == (50, 7)

    bins = label_bins(labels, predictions, 7)
    assert bins is not None
    edges, counts, means = bins["edges"], bins["counts"], bins["mean_absolute_error"]
    assert (len(edges), sum(counts)) == (11, len(rows))
    total = sum(count * (one or 0.0) for count, one in zip(counts, means, strict=True))
    assert math.isclose(total, sum(map(abs, errors)), abs_tol=1e-9)
    assert [one is None for one in means] == [count == 0 for count in counts]


def test_an_outlier_does_not_make_millions_of_bins() -> None:
    labels = np.zeros(1001)
    predictions = np.append(np.linspace(0, 1, 1000), 1e9)
    found = residuals(labels, predictions, 0)
    assert found is not None
    assert len(found["hist"]) == 200


def test_the_normal_curve() -> None:
    assert normal([0.0, 1.0], 0.0, 1.0) == pytest.approx([0.39894228, 0.24197072])


@pytest.mark.parametrize(
    ("objective", "labels", "predictions", "kind"),
    [
        ("binary:logistic", [0.5], [7], ModelKind.BINARY),
        ("multi:softmax", [], [], ModelKind.MULTI),
        ("multi:softprob", [0], [1], ModelKind.OTHER),
        ("another objective", [0], [1], ModelKind.OTHER),
        (None, [], [], ModelKind.OTHER),
        (None, [0.5], [0.5], ModelKind.REGRESSION),
        (None, [0, 1], [0.5, 0.25], ModelKind.BINARY),
        (None, [0, 1], [0, 1], ModelKind.MULTI),
        (None, [0, 2], [0.5, 0.25], ModelKind.REGRESSION),
        (None, [0, 1], [0.5, 1.25], ModelKind.REGRESSION),
    ],
)
def test_kinds(
    objective: str | None, labels: list[float], predictions: list[float], kind: ModelKind
) -> None:
    assert kind_of(objective, np.array(labels, float), np.array(predictions, float)) is kind


def test_points_are_thinned_evenly() -> None:
    points = ThinnedPoints()
    for step in range(10 * POINTS_KEPT):
        points.add(step, -step)
        assert len(points.steps) <= POINTS_KEPT
    gaps = set(np.diff(points.steps))
    assert (points.steps[0], gaps, len(points.steps) > POINTS_KEPT / 2) == (0, {16}, True)
    assert points.values == [-step for step in points.steps]


# -- charts --------------------------------------------------------------------------------------


def test_lines_lie_between_their_axes() -> None:
    drawn = plot("t", ("x", "y"), [("a", [0, 10, 20], [0.0, 1.0, 0.5])])
    assert drawn.x_ticks[0] == AxisTick(62, "0")
    assert drawn.x_ticks[-1] == AxisTick(468, "20")
    assert [tick.text for tick in drawn.y_ticks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert (drawn.y_ticks[0].position, drawn.y_ticks[-1].position) == (214, 12)
    (line,) = drawn.lines
    assert (line.name, line.pieces) == ("a", ("62.0,214.0 265.0,12.0 468.0,113.0",))


@pytest.mark.parametrize("gap", [None, math.nan, math.inf])
def test_gaps_part_a_line_and_points_stay_points(gap: float | None) -> None:
    drawn = plot("t", ("x", "y"), [("a", [0, 1, 2, 3], [0.0, 1.0, gap, 1.0])])
    assert [len(one.split()) for one in drawn.lines[0].pieces] == [2, 2]


def test_bars_stand_on_zero_and_take_the_first_colour() -> None:
    drawn = plot("t", ("x", "y"), [("c", [0, 2], [0.0, 4.0])], ([0, 1, 2], [4.0, None]))
    (bar,) = drawn.bars
    assert (bar.x, bar.y, bar.y + bar.height) == (62, 12, 214)
    assert drawn.lines[0].colour == 1


magnitudes = st.floats(-1e100, 1e100, allow_nan=False)


@given(st.lists(magnitudes, max_size=5), st.lists(st.floats(), min_size=5, max_size=5))
def test_every_chart_can_be_drawn(xs: list[float], ys: list[float]) -> None:
    capped = [one if math.isnan(one) or abs(one) <= 1e100 else math.inf for one in ys]
    drawn = plot("t", ("x", "y"), [("a", xs, capped[: len(xs)])])
    places = [
        float(one)
        for line in drawn.lines
        for p in line.pieces
        for one in p.replace(",", " ").split()
    ]
    places += [tick.position for tick in (*drawn.x_ticks, *drawn.y_ticks)]
    assert all(math.isfinite(one) and -1 <= one <= 481 for one in places)
    assert len(drawn.x_ticks) <= 9
