"""PT_dataloader_analysis: what it prints, and which calls took much longer than usual."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from profiled_job import loading
from profiler_writer import cpu, write_samples
from timeline_writer import Event, write

from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame
from rule_core.analysis.frames.pytorch_dataloader_analysis import PT_dataloader_analysis


def analysis(root: Path, events: list[Event]) -> PT_dataloader_analysis:
    write_samples(root, cpu([1]))
    write(root, events or [Event("a", "b", 1, 1)])
    return PT_dataloader_analysis(PandasFrame(root))


def rows(frame: pd.DataFrame | None) -> list[list[Any]]:
    assert frame is not None
    assert frame.index.tolist() == [*range(len(frame))]
    return [list(row) for row in frame.itertuples(index=False)]


def test_calls_that_took_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    durations = [100, 120, 100, 240, 900, 99]
    events = [loading(at % 2, at * 1000, dur) for at, dur in enumerate(durations)]
    found = analysis(tmp_path, events).analyze_dataloader_getnext()
    assert found is not None
    assert [*found.columns] == ["start_time", "end_time", "duration_us", "worker_id"]
    assert rows(found) == [
        ["2020-09-13T12:27:00:004000", "2020-09-13T12:27:00:004900", 900, 0],
        ["2020-09-13T12:27:00:003000", "2020-09-13T12:27:00:003240", 240, 1],
    ]
    assert capsys.readouterr().out == (
        "There are 6 calls that get the next batch. "
        "Median duration 110.0 us, maximum 900 us.\n"
        "2 took twice the median or more.\n"
    )


def test_workers_that_took_long(tmp_path: Path) -> None:
    events = [
        Event("DataLoaderWorker", "w", 1, dur, {"worker_id": dur}) for dur in (5, 10, 9, 4, 3)
    ]
    found = analysis(tmp_path, events).analyze_dataloaderWorkers()
    assert [row[2:] for row in rows(found)] == [[10, 10]]


def test_times_between_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    starts = [0, 1_000_000, 2_000_000, 4_000_000, 5_000_000]
    events = [loading(at, start, 10) for at, start in enumerate(starts)]
    write(tmp_path, [loading(9, 500_000, 10)], node="12-algo-1")
    found = analysis(tmp_path, events)
    table = found.analyze_batchtime()
    zero = pd.Timestamp("2020-09-13T12:27:00")
    second = pd.Timedelta(seconds=1)
    assert rows(table) == [[zero + 2 * second, zero + 4 * second, 2.0, 3]]
    assert table is not None
    assert [*table.columns] == [
        *("previous_batch_start", "start_time", "BatchTime_in_seconds", "worker_id"),
    ]
    assert capsys.readouterr().out == (
        "There are 4 times between batches. Median duration 1.0 s, maximum 2.0 s.\n"
        "1 took twice the median or more.\n"
    )
    pd.testing.assert_frame_equal(found.analyze_batchtime(), table)


def test_iterators_that_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "_MultiProcessingDataLoaderIter.__init__"
    args = {"num_workers": 4, "pin_memory": False}
    events = [Event("DataLoaderIterInitialize", name, at, 10 + at, args) for at in (1, 2)]
    analysis(tmp_path, events).analyze_dataloaderIter_initialization()
    assert capsys.readouterr().out == (
        f"Training uses {name} with pin_memory False and 4 workers; it was called 2 times. "
        "Median duration 11.5 us, maximum 12 us.\n"
        "Training does not use iterators of _SingleProcessDataLoaderIter.__init__.\n"
    )


def test_nothing_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = analysis(tmp_path, [])
    assert found.analyze_dataloader_getnext() is None
    assert found.analyze_dataloaderWorkers() is None
    assert found.analyze_batchtime() is None
    found.analyze_dataloaderIter_initialization()
    assert capsys.readouterr().out.splitlines() == [
        "There are no calls that get the next batch.",
        "There are no workers of data loaders.",
        "There are no times between batches.",
        "There are no events of iterators of data loaders that are made.",
    ]


def test_all_took_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = analysis(tmp_path, [loading(0, at * 10, 5) for at in range(3)])
    assert found.analyze_dataloader_getnext() is None
    assert found.analyze_batchtime() is None
    assert capsys.readouterr().out.count("None took twice the median or more.\n") == 2


def test_charts_of_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    charts = ModuleType("notebook_utils")
    charts.timeline_charts = SimpleNamespace(  # type: ignore[attr-defined] # stands for the module
        TimelineCharts=lambda *readers, **more: ([type(one).__name__ for one in readers], more)
    )
    monkeypatch.setitem(sys.modules, "rule_core.analysis.charts", charts)
    found = analysis(tmp_path, [loading(0, 0, 5)])
    readers, more = found.plot_the_window(1, 2)
    assert readers == ["LocalSystemMetricsReader", "LocalAlgorithmMetricsReader"]
    assert more == {
        "starttime": 1,
        "endtime": 2,
        "select_events": [".*"],
        "select_dimensions": [".*"],
    }
    assert found.plot_the_window(1, 2, ["a"], ["b"])[1]["select_events"] == ["a"]
