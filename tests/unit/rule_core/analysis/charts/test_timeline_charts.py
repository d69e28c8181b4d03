"""Charts of system metrics: which curves they show, and how they are joined."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import profiler_writer as pw
import pytest
import timeline_writer as tw

from rule_core.analysis.charts import curves as system_curves
from rule_core.analysis.charts.chart import Bars, LineMark, Rows, Spans
from rule_core.analysis.charts.heatmap import Heatmap
from rule_core.analysis.charts.metrics_histogram import MetricsHistogram, amounts
from rule_core.analysis.charts.timeline_charts import TimelineCharts
from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame
from rule_core.analysis.frames.pytorch_dataloader_analysis import PT_dataloader_analysis
from rule_core.exceptions import SMDebugValueError
from smdebug.profiler import LocalAlgorithmMetricsReader, LocalSystemMetricsReader

S = 1_000_000
BEGIN = pw.BEGIN_US


def network(values: Any, **more: Any) -> pw.Series:
    return pw.Series("network", "Algorithm", "Receive", values, **more)


def reader(root: Path, *series: pw.Series, **more: Any) -> LocalSystemMetricsReader:
    pw.write(root, pw.files(*series, **more))
    return LocalSystemMetricsReader(root)


def timeline(found: LocalSystemMetricsReader, *more: Any, **options: Any) -> TimelineCharts:
    return TimelineCharts(found, LocalAlgorithmMetricsReader(found.path), *more, **options)


def lines(chart: TimelineCharts) -> dict[str, LineMark]:
    found = {}
    for panel in chart.chart().panels:
        assert isinstance(panel.mark, LineMark)
        found[panel.title] = panel.mark
    return found


def bars(chart: MetricsHistogram) -> dict[str, Bars]:
    found = {}
    for panel in chart.chart().panels:
        assert isinstance(panel.mark, Bars)
        found[panel.title] = panel.mark
    return found


# -- timeline --------------------------------------------------------------------------------


def test_lines_of_each_metric_and_their_mean_by_time(tmp_path: Path) -> None:
    found = reader(
        tmp_path,
        pw.cpu([10, 20, 30]),
        pw.cpu([50, 60], "cpu10", begin_s=0.5),
        pw.cpu([1], "cpu2"),
        pw.gpu([7], node="algo-2"),
    )
    drawn = lines(timeline(found))
    assert list(drawn) == [
        "CPUUtilization-nodeid:algo-1 cpu0",
        "CPUUtilization-nodeid:algo-1 cpu2",
        "CPUUtilization-nodeid:algo-1 cpu10",
        "CPUUtilization-nodeid:algo-1 total",
        "GPUUtilization-nodeid:algo-2 gpu0",
        "GPUUtilization-nodeid:algo-2 total",
    ]
    total = drawn["CPUUtilization-nodeid:algo-1 total"]
    assert total.y.tolist() == [5.5, 35, 45]
    assert (total.x - BEGIN / 1e3).tolist() == [0, 500, 1000]
    assert total.index.tolist() == [0, 1, 2]
    assert drawn["CPUUtilization-nodeid:algo-1 cpu10"].index.tolist() == [1, 2]


def test_workers_together_are_their_mean(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([10, 20]), pw.cpu([30, 40], node="algo-2"))
    drawn = lines(timeline(found, show_workers=False))
    assert {name: line.y.tolist() for name, line in drawn.items()} == {
        "CPUUtilization cpu0": [20, 30],
        "CPUUtilization total": [20, 30],
    }


def test_what_is_selected(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([1]), pw.cpu([1], "cpu1"), pw.gpu([2]), network([3]))
    chart = timeline(found, 0, None, ["GPU", "^Algo"], ["total", "gpu"])
    assert list(lines(chart)) == [
        "Algorithm-nodeid:algo-1 total",
        "GPUUtilization-nodeid:algo-1 gpu0",
        "GPUUtilization-nodeid:algo-1 total",
    ]
    labels = [(panel.y_label, panel.y_range) for panel in chart.chart().panels]
    assert labels == [("value", None), ("%", (0, 102)), ("%", (0, 102))]
    with pytest.raises(re.error, match=r"missing \)"):
        timeline(found, select_dimensions=["("])


def test_a_memory_that_is_not_in_percent_has_no_fixed_range(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.Series("memory", "MemoryUsed", None, [2e9, 3e9]))
    panel = timeline(found).chart().panels[0]
    assert (panel.title, panel.y_label) == ("MemoryUsed-nodeid:algo-1 ", "value")
    assert panel.y_range is None


def test_a_range_of_time_has_both_its_ends(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu(range(240)))
    chart = timeline(found, BEGIN + S, BEGIN + 2 * S)
    assert lines(chart)["CPUUtilization-nodeid:algo-1 cpu0"].y.tolist() == [2, 3, 4]
    everything = lines(timeline(found))["CPUUtilization-nodeid:algo-1 cpu0"]
    assert everything.y.tolist() == list(range(240))


def test_the_latest_are_seen_first(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu(range(10)))
    ranges = [timeline(found, x=width).chart().panels[0].x_range for width in (3, 100, 0)]
    end = (BEGIN + 4.5 * S) / 1000
    begin = BEGIN / 1000
    assert ranges == [(end - 1000, end), (begin, end), (begin, end)]


def test_many_windows_are_read_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_curves, "_WINDOW_US", 61 * S)
    found = reader(tmp_path, pw.cpu(range(1000)))
    assert lines(timeline(found))["CPUUtilization-nodeid:algo-1 cpu0"].y.tolist() == [*range(1000)]


def test_later_samples_are_added_once(tmp_path: Path) -> None:
    files = pw.files(pw.cpu(range(480)), pw.gpu(range(480), node="algo-2"))
    keys = sorted(files)  # of four minutes and two nodes
    pw.write(tmp_path, {key: files[key] for key in keys[:3]})
    chart = timeline(LocalSystemMetricsReader(tmp_path))
    cpu, gpu = "CPUUtilization-nodeid:algo-1", "GPUUtilization-nodeid:algo-2"
    assert [len(chart.system_metrics[one]["total"].value) for one in (cpu, gpu)] == [240, 120]
    pw.write(tmp_path, files)
    chart.update_data(BEGIN + 150 * S)
    assert chart.system_metrics[cpu]["cpu0"].value.tolist() == [*range(301)]
    assert chart.system_metrics[gpu]["gpu0"].value.tolist() == [*range(301)]
    chart.update_data(BEGIN + 150 * S)
    assert chart.times_us.tolist() == [BEGIN + at * S // 2 for at in range(301)]


def test_a_chart_that_begins_before_its_data(tmp_path: Path) -> None:
    pw.write(tmp_path, pw.END)
    chart = timeline(LocalSystemMetricsReader(tmp_path))
    assert (chart.chart().panels, chart.chart().note) == ((), "No metrics are selected.")
    with pytest.raises(SMDebugValueError, match="There are no system metrics to select from"):
        chart.find_time_annotations([0])
    pw.write(tmp_path, pw.files(pw.gpu([1, 2])))
    chart.update_data(BEGIN + S)
    assert lines(chart)["GPUUtilization-nodeid:algo-1 total"].y.tolist() == [1, 2]


def profiled(root: Path) -> TimelineCharts:
    """Return the charts of 10 s, with a step and two workers of a data loader."""
    steps = [
        tw.step(1, 2 * S, 2 * S),
        tw.Event("Forward", "Forward", 2 * S, S),
        tw.Event("GetNext", "GetNext", 3 * S, S / 2, {"worker_id": "4"}),
        tw.Event("GetNext", "GetNext", 3.5 * S, S / 4, {"bytes_fetched": "9"}),
        tw.step(2, 8 * S, S),
    ]
    tw.write(root, steps, start_us=BEGIN)
    return timeline(reader(root, pw.cpu(range(20))))


def test_cumulative_time_within_what_is_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = profiled(tmp_path)
    chart.find_time_annotations([5, 7])
    assert capsys.readouterr().out.splitlines() == [
        "Selected: 2020-09-13T12:27:02:500000 to 2020-09-13T12:27:03:500000 (UTC)",
        "Spent 1000 ms (cumulative time) in Step:ModeKeys.TRAIN_1",
        "Spent 500 ms (cumulative time) in Forward",
        "Spent 500 ms (cumulative time) in GetNext",
    ]
    chart.find_time_annotations([])
    assert capsys.readouterr().out == "No selection was made.\n"


def test_bars_of_what_is_selected(tmp_path: Path) -> None:
    chart = profiled(tmp_path)
    chart.plot_detailed_profiler_data([])
    assert chart.detailed is None
    chart.plot_detailed_profiler_data([4, 8])
    assert chart.detailed is not None
    panels = chart.detailed.chart().panels
    assert [panel.title for panel in panels] == ["Data loaders", "Phases"]
    loaders, phases = (panel.mark for panel in panels)
    assert isinstance(loaders, Spans)
    assert isinstance(phases, Spans)
    assert [row.partition(" ")[0] for row in loaders.rows] == ["worker", "thread"]
    assert loaders.names == ["GetNext", "GetNext"]
    assert (loaders.start - BEGIN / 1000).tolist() == [3000, 3500]
    assert (loaders.end - BEGIN / 1000).tolist() == [3500, 3750]
    assert phases.rows == ["Step:ModeKeys.TRAIN", "Forward"]
    assert [phases.rows[at] for at in phases.row] == ["Step:ModeKeys.TRAIN", "Forward"]
    chart.plot_detailed_profiler_data([0, 1])
    assert chart.detailed.chart().note == "There are no events in this time."


@pytest.mark.parametrize("indexes", [[0, 20], [-1, 3]])
def test_an_index_that_is_none(tmp_path: Path, indexes: list[int]) -> None:
    text = f"Indexes must be from 0 to 19, got {indexes[0]} to {indexes[1]}."
    with pytest.raises(SMDebugValueError, match=text):
        profiled(tmp_path).plot_detailed_profiler_data(indexes)


def test_events_need_their_reader(tmp_path: Path) -> None:
    chart = TimelineCharts(reader(tmp_path, pw.cpu([1])), None)
    with pytest.raises(SMDebugValueError, match="need a framework_metrics_reader, got None"):
        chart.find_time_annotations([0])


def test_the_window_of_an_analysis_of_data_loaders(tmp_path: Path) -> None:
    profiled(tmp_path)
    chart = PT_dataloader_analysis(PandasFrame(str(tmp_path))).plot_the_window(
        BEGIN, BEGIN + S, select_events=["total"]
    )
    assert lines(chart)["CPUUtilization-nodeid:algo-1 total"].y.tolist() == [0, 1, 2]


# -- histograms ------------------------------------------------------------------------------


def test_shares_are_all_counted(tmp_path: Path) -> None:
    chart = MetricsHistogram(reader(tmp_path, pw.cpu([0, 1.9, 2, 98, 99, 100])))
    chart.plot(0, None, ["CPU"], ["cpu0"])
    (only,) = bars(chart).values()
    assert only.edges.tolist() == list(range(0, 102, 2))
    assert {at: count for at, count in enumerate(only.counts.tolist()) if count} == {
        0: 2,
        1: 1,
        49: 3,
    }


def test_amounts_are_all_counted(tmp_path: Path) -> None:
    chart = MetricsHistogram(reader(tmp_path, network([1e6, 3e6, 9e6])))
    chart.plot(select_events=["total"])
    ((name, only),) = bars(chart).items()
    assert name == "Algorithm-nodeid:algo-1 total"
    assert (only.edges[0], only.edges[-1], only.counts.sum()) == (1e6, 9e6, 3)


@pytest.mark.parametrize(
    ("values", "edges", "count"),
    [
        ([5, 5], (4.9, 5.1), 2),
        ([0], (-1, 1), 1),
        ([1, np.inf, 2], (1, 2), 2),
        ([np.nan], (-1, 1), 0),
    ],
)
def test_amounts_of_any_kind(values: list[float], edges: tuple[float, float], count: int) -> None:
    found = amounts(np.array(values, dtype=float))
    assert (found.edges[0], found.edges[-1]) == edges
    assert found.counts.sum() == count


def test_a_histogram_is_updated_and_cleared(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([50] * 240))
    chart = MetricsHistogram(found)
    chart.update_data(BEGIN)  # nothing was asked for yet
    chart.plot(endtime=BEGIN + S, show_workers=False)
    assert [one.counts.sum() for one in bars(chart).values()] == [3, 3]
    chart.update_data(BEGIN + 2 * S)
    assert [one.counts.sum() for one in bars(chart).values()] == [5, 5]
    chart.clear()
    assert chart.chart().panels == ()


def test_histograms_of_two_charts_are_their_own(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([1] * 4))
    charts = [MetricsHistogram(found) for _ in range(2)]
    for chart in charts:
        chart.plot(select_events=["cpu0"])
    assert [one.counts.sum() for chart in charts for one in bars(chart).values()] == [4, 4]


# -- heatmap ---------------------------------------------------------------------------------

Heat = Callable[..., Heatmap]


def test_rows_are_joined_by_time(tmp_path: Path) -> None:
    found = reader(
        tmp_path,
        pw.cpu([0, 10, 20, 30]),
        pw.cpu([40, 50], "cpu1", begin_s=1),
        pw.cpu([70, 80, 90, 100], node="algo-2"),
        pw.gpu([5] * 4),
        network([1, 2, 4, 4]),
    )
    # Notebooks give the other reader in the second place.
    chart = Heatmap(found, LocalAlgorithmMetricsReader(tmp_path), plot_height=450)
    nan = np.nan
    expected = {
        "CPUUtilization_cpu0_algo-1": [0, 10, 20, 30],
        "CPUUtilization_cpu1_algo-1": [nan, nan, 40, 50],
        "CPUUtilization_total_algo-1": [0, 10, 30, 40],
        "GPUUtilization_gpu0_algo-1": [5] * 4,
        "GPUUtilization_total_algo-1": [5] * 4,
        "CPUUtilization_cpu0_algo-2": [70, 80, 90, 100],
        "CPUUtilization_total_algo-2": [70, 80, 90, 100],
        "CPUUtilization_total_node_total": [35, 45, 60, 70],
        "GPUUtilization_total_node_total": [5] * 4,
    }
    assert sorted(chart.rows) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(chart.rows[name], values, err_msg=name)
    assert chart.times_us.tolist() == [BEGIN + at * S // 2 for at in range(4)]
    (panel,) = chart.chart().panels
    assert panel.height == 450
    assert isinstance(panel.mark, Rows)
    assert panel.mark.rows[-1] == "CPUUtilization_cpu0_algo-1"  # on top
    assert (panel.mark.start, panel.mark.end) == (BEGIN / 1e3 - 250, BEGIN / 1e3 + 1750)


def test_what_has_no_end_is_a_share_of_the_most(tmp_path: Path) -> None:
    found = reader(tmp_path, network([1, 2, 4]), network([0, 0, 0], node="algo-2"))
    chart = Heatmap(found, select_dimensions=["Algorithm"], select_events=["total"])
    assert {name: row.tolist() for name, row in chart.rows.items()} == {
        "Algorithm_total_algo-1": [25, 50, 100],
        "Algorithm_total_algo-2": [0, 0, 0],
        "Algorithm_total_node_total": [12.5, 25, 50],
    }


def test_nodes_together(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([10]), pw.cpu([30], node="algo-2"))
    chart = Heatmap(found, show_workers=False)
    assert {name: row.tolist() for name, row in chart.rows.items()} == {
        "CPUUtilization_total_node_total": [20]
    }


def test_a_gap_stays_a_gap_and_time_runs_evenly(tmp_path: Path) -> None:
    found = reader(tmp_path, pw.cpu([10, 10, 10]), pw.cpu([30, 30], begin_s=4, name="cpu1"))
    chart = Heatmap(found, select_events=["total"])
    row = chart.rows["CPUUtilization_total_algo-1"]
    nan = np.nan
    np.testing.assert_array_equal(row, [10, 10, 10, *[nan] * 5, 30, 30])


def test_long_rows_are_means(tmp_path: Path) -> None:
    chart = Heatmap(reader(tmp_path, pw.cpu([0, 100] * 2100)), select_events=["cpu0"])
    row = chart.rows["CPUUtilization_cpu0_algo-1"]
    assert len(row) == len(chart.times_us) == 1400
    assert (row.min(), row.mean(), row.max()) == pytest.approx((100 / 3, 50, 200 / 3))


def test_a_heatmap_is_updated(tmp_path: Path) -> None:
    pw.write(tmp_path, pw.END)
    chart = Heatmap(LocalSystemMetricsReader(tmp_path), select_events=["cpu"])
    assert (chart.chart().panels, chart.chart().note) == ((), "No metrics are selected.")
    pw.write(tmp_path, pw.files(pw.cpu([1, 2])))
    chart.update_data(BEGIN + S)
    assert chart.rows["CPUUtilization_cpu0_algo-1"].tolist() == [1, 2]
    chart.update_data(BEGIN + S)
    assert len(chart.times_us) == 2
