"""Traces of plain torch.profiler, recorded here: report, rules and Perfetto have their numbers."""

import json
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from comparing_hta import asked_hta
from jobs import recorded_ranks, recorded_traces

from rule_runner.cli import main

pytest.importorskip("torch", reason="torch is not installed.")
REPORTS = "profiler-output/profiler-reports"
TOTALS = """
select iif(name glob 'ProfilerStep#*', 'step', name) as kind, count(*), sum(dur)
from slice group by kind
"""
Totals = dict[str, tuple[int, float]]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a training of one process."""
    folder = tmp_path_factory.mktemp("plain") / "trace"
    recorded_traces.make(folder, recorded_traces.nothing)
    return folder


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a training of two ranks, the second of which is late."""
    folder = tmp_path_factory.mktemp("ranks") / "traces"
    recorded_ranks.make(folder, (recorded_ranks.EVEN, recorded_ranks.slower(2)))
    return folder


def totals(*paths: Path) -> Totals:
    """Return the number of events and their microseconds by name, read from the files as JSON."""
    sums: defaultdict[str, list[float]] = defaultdict(list)
    for path in paths:
        for event in json.loads(path.read_text())["traceEvents"]:
            if event.get("ph") == "X" and event.get("cat") in {"cpu_op", "user_annotation"}:
                name = event["name"]
                sums["step" if name.startswith("ProfilerStep#") else name].append(event["dur"])
    return {name: (len(durations), sum(durations)) for name, durations in sums.items()}


def own_times(*paths: Path) -> dict[str, float]:
    """Return the microseconds of operators by name, without those of operators within them."""
    sums: defaultdict[str, float] = defaultdict(float)
    for path in paths:
        operators = [
            event
            for event in json.loads(path.read_text())["traceEvents"]
            if event.get("ph") == "X" and event.get("cat") == "cpu_op"
        ]
        enclosing: defaultdict[object, list[dict[str, Any]]] = defaultdict(list)
        for event in sorted(operators, key=lambda event: (event["ts"], -event["dur"])):
            around = enclosing[event["pid"], event["tid"]]
            while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
                around.pop()
            sums[event["name"]] += event["dur"]
            if around:
                sums[around[-1]["name"]] -= event["dur"]
            around.append(event)
    return sums


def report(folder: Path, output: Path) -> dict[str, Any]:
    """Have a report made, and return the details of each of its rules."""
    done = CliRunner().invoke(main, ["profile", "report", str(folder), "-o", str(output)])
    assert done.exit_code == 0, done.output
    return {
        path.stem: json.loads(path.read_text())["Details"]
        for path in (output / REPORTS).glob("*.json")
    }


def compare(folder: Path, output: Path) -> dict[str, Any]:
    """Require that a report has the numbers of the traces; return its details."""
    paths = [*folder.glob("*.pt.trace.json")]
    expected, own = totals(*paths), own_times(*paths)
    details = report(folder, output)
    times = details["OverallFrameworkMetrics"]
    count, microseconds = expected["step"]
    assert times["phase_time"]["Step:ModeKeys.GLOBAL"] == pytest.approx(microseconds, abs=count)
    for name, measured in times["CPU_total"].items():
        events = 4 * expected[name][0]  # each, and those within it, are rounded
        assert measured == pytest.approx(own[name], abs=events), name
    return details


def test_the_report_of_a_process(plain: Path, tmp_path: Path) -> None:
    details = compare(plain, tmp_path / "out")
    operators = details["OverallFrameworkMetrics"]["CPU_total"]  # those that took the longest
    assert any(name.startswith("aten::") for name in operators)
    assert len(details["MemoryGrows"]) == 2  # the process and the time of the window


@pytest.mark.nightly
def test_two_ranks_with_a_straggler(two_ranks: Path, tmp_path: Path) -> None:
    details = compare(two_ranks, tmp_path / "out")
    awaited = details["StragglerRank"]
    assert awaited["rank-1"] > 10 > awaited["rank-0"]
    arguments = ["--profiler-trial", str(two_ranks), "--rule", "StragglerRank"]
    done = CliRunner().invoke(main, ["evaluate", *arguments, "--output", str(tmp_path / "judged")])
    assert "The other ranks wait for rank-1" in done.output
    assert f"measured {awaited['rank-1']:.6g}, limit 10" in done.output


@pytest.mark.nightly
def test_perfetto_has_the_same_numbers(two_ranks: Path) -> None:
    perfetto_viewer = pytest.importorskip("perfetto_viewer")
    for path in two_ranks.glob("*.pt.trace.json"):
        with ExitStack() as stack:
            viewer = stack.enter_context(perfetto_viewer.served_viewer())
            query = stack.enter_context(perfetto_viewer.opened_trace(viewer, path))
            assert query(perfetto_viewer.ERRORS) == []
            rows = {name: (count, dur) for name, count, dur in query(TOTALS)}
            for name, (count, microseconds) in totals(path).items():
                assert rows[name] == (count, pytest.approx(1000 * microseconds, abs=count)), name


@pytest.mark.nightly
def test_holistic_trace_analysis_has_the_steps_only(two_ranks: Path) -> None:
    numbers = asked_hta([two_ranks])[two_ranks.name]
    steps = totals(*two_ranks.glob("*.pt.trace.json"))["step"][0] // 2
    assert len(numbers["steps"]) == steps == recorded_ranks.STEPS
    assert numbers["ranks"] == {}
