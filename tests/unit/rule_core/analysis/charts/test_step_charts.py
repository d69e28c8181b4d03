"""Charts of framework events: which durations they show, and that each is counted once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timeline_writer as tw

from rule_core.analysis.charts.chart import Bars, LineMark
from rule_core.analysis.charts.step_charts import StepHistogram, StepTimelineChart
from rule_core.analysis.charts.timeline_charts import DetailedTimeline
from rule_core.profiler.traces.event import TraceEvent
from smdebug.profiler import LocalAlgorithmMetricsReader

S = 1_000_000
ZERO = tw.START_US
STEP = "Step:ModeKeys.TRAIN-nodeid:algo-1-11"


def reader(root: Path, *events: tw.Event, **more: Any) -> LocalAlgorithmMetricsReader:
    tw.write(root, events, **more)
    return LocalAlgorithmMetricsReader(root)


def histograms(chart: StepHistogram) -> dict[str, Bars]:
    found = {}
    for panel in chart.chart().panels:
        assert isinstance(panel.mark, Bars)
        found[panel.title] = panel.mark
    return found


def test_durations_of_phases(tmp_path: Path) -> None:
    found = reader(
        tmp_path,
        *(tw.step(at, at * S, 1000 * (1 + at)) for at in range(4)),
        tw.Event("Forward-node", "Forward-node", 0, 7000),
        tw.Event("Other", "Other", 0, 7000),
    )
    chart = StepHistogram(found)
    assert chart.last_timestamp == ZERO + 3 * S + 4000
    chart.plot(0, chart.last_timestamp)
    assert chart.step_metrics == {
        STEP: [0.001, 0.002, 0.003, 0.004],
        "Forward-node-nodeid:algo-1-11": [0.007],
    }
    forward, steps = histograms(chart).values()
    assert (steps.edges[0], steps.edges[-1]) == (1, 2.5 + 2 * np.std([1, 2, 3, 4]))
    assert (len(steps.counts), steps.counts.sum(), forward.counts.sum()) == (50, 4, 1)


def test_durations_that_are_much_longer_are_reported(tmp_path: Path) -> None:
    steps = [tw.step(at, at * S, 10_000) for at in range(99)]
    chart = StepHistogram(reader(tmp_path, *steps, tw.step(99, 99 * S, 900_000)))
    chart.plot()
    assert histograms(chart)[STEP].counts.sum() == 99
    assert chart.chart().panels[0].x_label == "duration (ms, 1 longer not shown)"


def test_which_phases_and_nodes(tmp_path: Path) -> None:
    tw.write(tmp_path, [tw.step(0, 0, 1000)], node="12-algo-2")
    found = reader(tmp_path, tw.step(0, 0, 3000), tw.Event("Other", "Other", 0, 7000))
    chart = StepHistogram(found)
    chart.plot(select_metrics=["Step", "Oth"], show_workers=False)
    assert {name: sorted(some) for name, some in chart.step_metrics.items()} == {
        "Step:ModeKeys.TRAIN": [0.001, 0.003],
        "Other": [0.007],
    }


def test_later_durations_are_added_once(tmp_path: Path) -> None:
    found = reader(tmp_path, tw.step(0, 0, S))
    chart = StepHistogram(found)
    chart.update_data(ZERO)  # nothing was asked for yet
    chart.plot()
    # This one was over before the first was, and its file came later.
    tw.write(tmp_path, [tw.step(1, S / 4, S / 2)], node="12-algo-2")
    tw.write(tmp_path, [tw.step(1, S, 3 * S)])
    chart.update_data(ZERO + 4 * S)
    chart.update_data(ZERO + 4 * S)
    assert chart.step_metrics == {STEP: [1, 3], "Step:ModeKeys.TRAIN-nodeid:algo-2-12": [0.5]}
    assert chart.last_timestamp == ZERO + 4 * S
    chart.clear()
    assert (chart.step_metrics, chart.chart().panels) == ({}, ())


def test_a_line_of_steps_without_the_first(tmp_path: Path) -> None:
    found = reader(
        tmp_path,
        tw.step(2, 3 * S, 5000, "EVAL"),
        tw.step(0, 0, 9_000_000),
        tw.step(1, 2 * S, 4000),
        tw.Event("Step:x", "Step:x", 5 * S, 1, {"step_num": "none"}),
        tw.Event("Forward", "Forward", 5 * S, 1, {"step_num": "3"}),
    )
    chart = StepTimelineChart(found)
    expected = [[ZERO / S + 2, 0.004, 1], [ZERO / S + 3, 0.005, 2]]
    assert chart.steps_np.tolist() == expected
    assert chart.metric_names == ["Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"]
    (panel,) = chart.chart().panels
    assert isinstance(panel.mark, LineMark)
    assert (panel.mark.x.tolist(), panel.mark.y.tolist()) == ([0, 1], [4, 5])
    assert panel.mark.notes == {"step": ["1", "2"], "event": chart.metric_names}
    assert (panel.x_range, panel.y_range) == ((0, 1), (0, 5.25))


def test_only_the_latest_steps_are_seen_at_first(tmp_path: Path) -> None:
    found = reader(tmp_path, *(tw.step(at, at * S, 1000 * (9 - at)) for at in range(8)))
    (panel,) = StepTimelineChart(found, 3).chart().panels
    assert (panel.x_range, panel.y_range) == ((4, 6), (0, 1.05 * 4))


def test_steps_come_later(tmp_path: Path) -> None:
    chart = StepTimelineChart(LocalAlgorithmMetricsReader(tmp_path))
    assert chart.chart().note == "There are no steps after the first yet."
    tw.write(tmp_path, [tw.step(at, at * S, 1000) for at in range(3)])
    for _ in range(2):
        chart.update_data(ZERO + 3 * S)
    assert chart.steps_np[:, 2].tolist() == [1, 2]
    assert (chart.last_timestamp, chart.chart().note) == (ZERO + 3 * S, "")


def event(at: int, node: str) -> TraceEvent:
    return TraceEvent(at, "op", 1, 0, 0, None, node, "X", "", "phase")


@pytest.mark.parametrize(
    ("nodes", "title", "rows"),
    [
        (["a"], "Phases: the first 500 of 600", ["phase"]),
        (["a", "b"], "Phases: the first 500 of 1200", ["phase, b", "phase, a"]),
    ],
)
def test_too_many_bars_are_reported(nodes: list[str], title: str, rows: list[str]) -> None:
    events = [event(at, node) for at in range(600) for node in nodes]
    (panel,) = DetailedTimeline(events, 0, 0).chart().panels
    assert (panel.title, panel.x_range) == (title, None)
    assert panel.mark.rows == rows  # type: ignore[union-attr] # it is spans
    assert len(panel.mark.names) == 500  # type: ignore[union-attr] # likewise
