"""Charts: what stands where, and that a stranger's names stay texts."""

import math
import re
from xml.etree.ElementTree import Element, fromstring

import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st

from rule_core.model.segments import global_step
from rule_runner.report.html.series import Point, drawings
from rule_runner.report.html.svg_chart import COLOURED, COLUMNS, SvgChart, kept_points
from rule_runner.results.measurements import QuantityRecord, SeriesRecord

HOSTILE = '"></title><script>alert(1)</script>\x1b\u202e'


def chart(*records: SeriesRecord, quantity: QuantityRecord = reports.MEAN) -> SvgChart:
    (drawing,) = drawings([quantity], records)
    return SvgChart(drawing)


def parsed(text: str) -> Element:
    return fromstring(text)


def strokes(root: Element, kind: str) -> list[str]:
    """Return the paths of a class, in the order in which they are drawn."""
    return [
        one.get("d", "") for one in root.iter("path") if one.get("class", "").split()[0] == kind
    ]


def drawn(*records: SeriesRecord, quantity: QuantityRecord = reports.MEAN) -> Element:
    return parsed(chart(*records, quantity=quantity).svg("c"))


def test_values_stand_where_they_belong() -> None:
    root = drawn(reports.series({0: 1, 10: 1e-2, 20: 1e-4}, 1e-2, met=[20]))
    assert strokes(root, "trace") == ["M0 0L500 500L1000 1000"]
    assert strokes(root, "met") == ["M1000 1000h0"]
    assert strokes(root, "limit") == ["M0 500H1000"]
    (bad,) = root.iter("rect")
    assert (bad.get("y"), bad.get("height")) == ("500", "500")


def test_bad_is_above_where_the_rule_is_reported() -> None:
    linear = QuantityRecord(reports.MEAN.name, "share", "above")
    root = drawn(reports.series({0: 0, 1: 1}, 0.8, met=[1]), quantity=linear)
    (bad,) = root.iter("rect")
    assert (bad.get("y"), bad.get("height")) == ("0", "200")


def test_ticks_and_limit_are_labelled() -> None:
    root = drawn(reports.series({0: 1, 100: 1e-9}))
    texts = [one.text for one in root.iter("text")]
    assert texts == [
        *("1e-10", "1e-8", "1e-6", "1e-4", "0.01", "1"),
        *("0", "20", "40", "60", "80", "100"),
        "limit 1e-7",
    ]


def test_values_without_a_place_are_marked_at_the_edge_and_break_the_line() -> None:
    values = {0: 1, 10: "NaN", 20: 1e-2, 30: "Infinity", 40: 1e-4, 50: 0}
    root = drawn(reports.series(values, 1e-2, met=[10, 50]))
    assert strokes(root, "trace") == ["M0 0M400 500M800 1000"]
    assert strokes(root, "odd") == ["M200 1000h0M600 0h0M1000 1000h0"]
    assert strokes(root, "met") == ["M200 1000h0M1000 1000h0"]


def test_each_line_has_its_own_limit_where_they_differ() -> None:
    one, other = reports.series({0: 1, 1: 2}, [1, 2]), reports.series({0: 1, 1: 1}, 4, tensor="b")
    root = drawn(one, other)
    assert list(root.iter("rect")) == []
    assert len(strokes(root, "limit")) == 2


def test_a_limit_that_is_no_number_is_not_drawn() -> None:
    root = drawn(reports.series({0: 1, 1: 2}, "Infinity"))
    assert strokes(root, "limit") == []
    root = drawn(reports.series({0: 1, 1: 2}, [1, "NaN"]))
    assert strokes(root, "limit") == ["M0 1000"]


@pytest.mark.parametrize(
    ("quantity", "limit", "values"),
    [
        (QuantityRecord(reports.MEAN.name, "share", "above"), 4, {0: 12}),
        (QuantityRecord(reports.MEAN.name, "share", "below"), 50, {0: 12}),
        (reports.MEAN, 1e-7, {0: 1e-9}),
        (reports.MEAN, 1e-7, {0: 1}),
    ],
)
def test_both_sides_of_the_limit_are_seen(
    quantity: QuantityRecord, limit: float, values: dict[int, float]
) -> None:
    (path,) = strokes(drawn(reports.series(values, limit), quantity=quantity), "limit")
    assert 0 < int(path.removeprefix("M0 ").removesuffix("H1000")) < 1000


def test_one_point_is_seen() -> None:
    assert strokes(drawn(reports.series({7: 1}, 1)), "dot") == ["M500 500h0"]


def test_thousands_of_points_are_thinned_and_no_finding_disappears() -> None:
    values = dict.fromkeys(range(10000), 1.0) | {5003: 1e-9}
    root = drawn(reports.series(values, met=[5003]))
    assert len(re.findall("[ML]", strokes(root, "trace")[0])) <= 5 * COLUMNS
    assert strokes(root, "met") == ["M500 900h0"]


def test_the_worst_lines_have_colours_and_lie_on_top() -> None:
    root = drawn(*(reports.series({0: 1, 1: 1}, tensor=f"t{n}") for n in range(COLOURED + 2)))
    classes = [one.get("class") for one in root.iter("g")]
    assert classes == [
        "line pale",
        "line pale",
        *(f"line c{n}" for n in (4, 3, 2, 1)),
        "line c0 first",
    ]


def test_who_does_not_see_the_chart_is_reported() -> None:
    root = drawn(reports.series({0: 1, 1000: 1e-8}, met=[1000]))
    title, description = root.findtext("title"), root.findtext("desc")
    assert title == "mean |gradient| over the steps"
    assert description == (
        "1 line, steps 0 to 1,000. The condition was met first at step 1,000. Worst: gradient/fc, "
        "1e-8 at step 1,000 against the limit 1e-7; below the limit is bad."
    )
    assert root.get("aria-labelledby") == "c-title c-desc"


def test_readers_can_point_at_every_drawn_point() -> None:
    (line,) = chart(reports.series({0: 1, 1000: "NaN"}, met=[1000])).data()
    assert line == {
        "name": "gradient/fc",
        "points": [[0, 0, "0", "1", "1e-7", 0], [1000, 1000, "1,000", "NaN", "1e-7", 1]],
    }


def test_hostile_names_are_texts_in_a_chart() -> None:
    text = chart(reports.series({0: 1}, tensor=HOSTILE)).svg("c")
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert '"></title><script>alert(1)</script>\\x1b\\u202e' in (
        parsed(text).findtext("desc") or ""
    )


def test_the_repeated_part_of_a_segment_is_a_line_of_its_own() -> None:
    records = [
        reports.series({0: 1, 10: 1e-1, 20: 1e-4}, 1e-2, met=[20]),
        reports.series({20: 1e-2, 40: 1e-2}, 1e-2, segment=1),
    ]
    quantity = QuantityRecord("mean", "mean", "below", log=True)
    (drawing,) = drawings([quantity], records, [0, global_step(1, 20)])
    resumed = SvgChart(drawing)
    root = parsed(resumed.svg("c"))
    assert strokes(root, "trace") == ["M250 250L500 1000", "M0 0L250 250M500 500L1000 500"]
    assert strokes(root, "met") == ["M500 1000h0"]
    assert "first at step 20. Worst" in resumed.description()
    assert [point[2] for point in resumed.data()[0]["points"]][3:] == [
        "20 of segment 2",
        "40 of segment 2",
    ]


@given(st.lists(st.floats(), min_size=1, max_size=400), st.integers(1, 20))
def test_thinning_keeps_ends_and_extremes(values: list[float], columns: int) -> None:
    points = [Point(step, value, 0.0, met=False) for step, value in enumerate(values)]
    places = [round(1000 * step / len(points)) for step in range(len(points))]
    kept = kept_points(points, places, columns)
    assert kept == sorted(set(kept))
    assert len(kept) <= 5 * columns
    assert {0, len(points) - 1} <= set(kept)
    finite = [value for value in values if math.isfinite(value)]
    shown_values = [values[at] for at in kept if math.isfinite(values[at])]
    if finite:
        assert (min(shown_values), max(shown_values)) == (min(finite), max(finite))
    odd = any(not math.isfinite(value) for value in values)
    assert odd == any(not math.isfinite(values[at]) for at in kept)


def test_points_of_another_segment_are_not_thinned_together() -> None:
    points = [Point(0, 1.0, 0.0, met=False, segment=segment) for segment in range(3)]
    assert kept_points(points, [0, 0, 0], 100) == [0, 1, 2]
