"""rule-runner profile: whole output, exit codes, one sentence for each error."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import python_profile_writer
import saved
from click.testing import CliRunner, Result
from memory_store import MemoryStore
from profiled_job import write_job
from profiler_writer import cpu, write_samples

from rule_runner.cli import main
from rule_runner.commands.profile.command import parse_time
from rule_runner.commands.profile.overview import overview
from rule_runner.commands.profile.trials import look
from rule_runner.report import tables
from smdebug.trials.profiler_trial import ProfilerTrial

ODD = "odd\x1b[31m.json"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["profile", *arguments])


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a job of two minutes on two nodes, with Python profiles."""
    root = write_job(tmp_path_factory.mktemp("profiler") / "mnist", nodes=2)
    (root / "system" / "training_job_end.ts").touch()
    python_profile_writer.write_job(root)
    return str(root)


# -- show ------------------------------------------------------------------------------------


def test_show(job: str) -> None:
    done = call("show", job)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = re.sub(r"\d+\.\d kB", "SIZE kB", done.stdout).splitlines()
    assert lines[:5] == [
        "profiler data: mnist",
        f"path: {job}",
        "ended: yes",
        "nodes: 2 (algo-1, algo-2)",
        "time: 2020-09-13 12:27:00 UTC to 2020-09-13 12:28:59 UTC, 1 min 59 s",
    ]
    assert lines[5:9] == [
        "system metrics:",
        "  node    files  size     first file               last file",
        "  algo-1  2      SIZE kB  2020-09-13 12:27:00 UTC  2020-09-13 12:28:00 UTC",
        "  algo-2  2      SIZE kB  2020-09-13 12:27:00 UTC  2020-09-13 12:28:00 UTC",
    ]
    assert [line.split()[:3] for line in lines[9:13]] == [
        ["framework", "timelines:"],
        ["kind", "node", "files"],
        ["pythontimeline.json", "11-algo-1", "1"],
        ["pythontimeline.json", "12-algo-2", "1"],
    ]
    assert lines[13:] == [
        "Python profiles:",
        "  node       profiler  files  modes",
        "  11-algo-1  cprofile  9      EVAL PRE_STEP_ZERO TRAIN",
        "  12-algo-2  cprofile  9      EVAL PRE_STEP_ZERO TRAIN",
    ]


def test_show_as_json(job: str) -> None:
    done = call("show", job, "--format", "json")
    report = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (0, "")
    assert (report["schema_version"], report["nodes"]) == (1, ["algo-1", "algo-2"])
    assert report["end_us"] - report["begin_us"] == 119_037_100
    assert sum(one["nbytes"] for one in report["system"]) == sum(
        path.stat().st_size for path in Path(job).glob("system/**/*.json")
    )
    assert (report["checked"], report["problems"]) == (False, [])


def test_check_reads_everything_and_names_what_is_damaged(tmp_path: Path) -> None:
    root = write_job(tmp_path)
    first, _ = sorted(root.glob("system/**/*.json"))
    (root / "system" / "training_job_end.ts").touch()
    first.write_bytes(first.read_bytes() + b"{nonsense\x1b[31m}\n")
    assert "problems:" not in call("show", str(root)).stdout
    done = call("show", str(root), "--check")
    assert (done.exit_code, done.stderr) == (0, "")
    *_, name, headings, problem = done.stdout.splitlines()
    assert (name, headings.strip()) == ("problems:", "description")
    assert first.name in problem
    assert "\x1b" not in done.stdout


def test_show_without_timelines_and_with_many_problems(tmp_path: Path) -> None:
    root = write_job(tmp_path)
    for path in root.glob("framework/**/*.json"):
        path.unlink()
    for number in range(25):
        node = root / "framework" / "pytorch" / "cprofile" / "11-algo-1" / f"span{number}"
        node.mkdir(parents=True)
        (node / "python_stats").touch()
    done = call("show", str(root))
    assert "framework: no timelines, so steps are unknown\n" in done.stdout
    assert done.stdout.count("span") == 20
    assert done.stdout.endswith("  and 5 more\n")


def test_sizes_are_left_out_where_the_store_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore({"system/incremental/2020091312/1600000000.algo-1.json": b""})
    trial = ProfilerTrial.over(store, "mnist", "s3://bucket/mnist")
    trial.refresh()
    monkeypatch.setattr("rule_runner.commands.profile.overview.look", lambda _: trial)
    report = overview("s3://bucket/mnist")
    assert [(one.files, one.nbytes) for one in report.system] == [(1, None)]


def test_a_file_that_goes_meanwhile_has_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = look(str(write_job(tmp_path)))
    for path in tmp_path.glob("system/**/*.json"):
        path.unlink()
    monkeypatch.setattr("rule_runner.commands.profile.overview.look", lambda _: trial)
    assert [one.nbytes for one in overview(str(tmp_path)).system] == [0]


@pytest.mark.parametrize("command", ["show", "report", "timeline", "python"])
def test_a_folder_that_does_not_exist(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(command, str(tmp_path / "none"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"Error: Trial '{tmp_path / 'none'}' does not exist.\n"


def test_a_folder_without_profiler_data(tmp_path: Path) -> None:
    done = call("show", str(tmp_path))
    assert (done.exit_code, done.stderr) == (
        1,
        (
            f"Error: Folder '{tmp_path}' holds no profiler data: neither 'system/' nor "
            "'framework/' has a file of a profiler, and there is no trace of torch.profiler, dump "
            "of a flight recorder, answer of Prometheus or profile of py-spy or scalene. Give the "
            "folder that holds them.\n"
        ),
    )


def test_tables_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    empty = tables.TextTable(("a",), [], "nothing")
    nodes = tables.TextTable(("node",), [("[red]algo-1",)], "nodes")
    tables.print_tables(["[bold]head"], [empty, nodes])
    shown = capsys.readouterr().out
    assert shown.startswith("[bold]head\n")
    assert "[red]algo-1" in shown
    assert "nothing" not in shown


# -- report ----------------------------------------------------------------------------------


def test_report(job: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    given = ("-o", str(output), "-p", "cpubottleneck_PATIENCE=10")
    done = call("report", job, *given)
    page = output / "profiler-output" / "profiler-report.html"
    assert (done.exit_code, done.stdout) == (0, f"Report: {page}\n")
    assert "Profiler report of mnist" in page.read_text()
    result = saved.result(output)
    assert result["parameters"]["CPUBottleneck_patience"] == 10
    assert (result["outcome"], result["coverage"]["judged"]) == ("NoIssuesFound", 2)
    again = call("report", job, *given)
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert again.stderr.startswith(f"Output folder '{output}' holds this evaluation, which ended")
    assert call("report", job, "-o", str(output), "--overwrite").exit_code == 0


def test_a_report_on_a_job_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "mnist"
    write_samples(root, cpu(np.full(360, 50.0)))
    assert "ended: no, the end mark is missing\n" in call("show", str(root)).stdout
    done = call("report", str(root))
    (page,) = Path("rule-output").glob("mnist-*/profiler-output/profiler-report.html")
    assert done.stdout == f"Report: {page}\n"
    assert "The data was incomplete when this was written" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("-p", "BatchSize_windw=1"), 1, "Error: Unknown parameter 'BatchSize_windw' of"),
        (("-p", "nonsense"), 2, "Error: "),
        (("-o", "s3://bucket/x"), 2, "Error: --output of profile report must be a folder of this"),
    ],
)
def test_a_report_that_is_asked_for_wrongly(
    job: str, tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = call("report", job, "-o", str(tmp_path / "out"), *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(problem)


def test_a_report_on_nothing(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    done = call("report", str(tmp_path / "job"), "-o", str(tmp_path / "out"))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: No debugging data was saved by the training job.")


# -- timeline --------------------------------------------------------------------------------


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def test_timeline(job: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = call("timeline", job, "-o", str(trace))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Trace: {trace} (")
    everything = len(events_of(trace))
    bounds = ("--start", "2020-09-13T12:27:10", "--end", "1600000035.5")
    assert call("timeline", job, "-o", str(trace), *bounds).exit_code == 0
    assert 0 < len(events_of(trace)) < everything
    steps = ("--unit", "step", "--start", "1", "--end", "2", "--mode", "TRAIN")
    assert call("timeline", job, "-o", str(trace), *steps).exit_code == 0
    assert 0 < len(events_of(trace)) < everything


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (
            ("--start", "yesterday"),
            2,
            "Error: Option --start must be epoch seconds or a time in ISO format, got 'yesterday'.",
        ),
        (
            ("--end", "nan"),
            2,
            "Error: Option --end must be epoch seconds or a time in ISO format, got 'nan'.",
        ),
        (
            ("--unit", "step", "--end", "-1"),
            2,
            "Error: Option --end must be a step, got '-1'.",
        ),
        (("--start", "2000000000"), 1, "Error: Nothing to merge: no events of that range"),
    ],
)
def test_a_timeline_that_is_asked_for_wrongly(
    job: str, tmp_path: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = call("timeline", job, "-o", str(tmp_path / "trace.json"), *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(problem)
    assert list(tmp_path.iterdir()) == []


def test_a_timeline_that_cannot_be_written(job: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "trace.json"
    done = call("timeline", job, "-o", str(place))
    assert (done.exit_code, done.stderr) == (
        73,
        f"Trace '{place}' cannot be written: Not a directory.\n",
    )


def test_times() -> None:
    assert parse_time("2020-09-13T14:26:40+02:00") == parse_time("1.6e9") == 1.6e15


# -- python ----------------------------------------------------------------------------------


def test_python(job: str) -> None:
    done = call("python", job, "-n", "2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "profiles: 18 of 18 files of Python profilers",
        "nodes: 11-algo-1, 12-algo-2",
        "time: 15.75 s in 3 functions",
        "functions:",
        "  tottime   cumtime    ncalls  primitive  function",
        "  9.000000  18.000000  724     724        train.py:7(forward)",
        "  4.500000  36.000000  18      18         train.py:1(<module>)",
    ]


def test_python_of_some_profiles(job: str) -> None:
    everything = call("python", job).stdout
    chosen = call("python", job, "--node", "11-algo-1", "--mode", "train", "--sort", "cumtime")
    assert chosen.exit_code == 0
    assert "nodes: 11-algo-1\n" in chosen.stdout
    assert chosen.stdout.splitlines()[0] != everything.splitlines()[0]
    assert "train.py:1(<module>)" in chosen.stdout.splitlines()[5]


def test_names_and_problems_of_a_stranger_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    span = python_profile_writer.span(3)
    table = python_profile_writer.table(name="forward\x1b[31m")
    python_profile_writer.write_table(tmp_path, span, table)
    damaged = python_profile_writer.write_table(
        tmp_path, python_profile_writer.span(4), python_profile_writer.table()
    )
    damaged.write_bytes(b"\x1b[31mnonsense")
    done = call("python", str(tmp_path))
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert "skipped: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--step", "a:3"), 2, "Error: Option --step must be a step, or FIRST:LAST without the"),
        (("--mode", "x"), 1, "Error: The mode of a Python profile must be one of train, "),
        (("--node", "x"), 1, "Error: No cProfile profile in '"),
        (("--step", "70"), 1, "Error: No cProfile profile in '"),
    ],
)
def test_python_that_is_asked_for_wrongly(
    job: str, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = call("python", job, *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(problem)


def test_python_without_profiles(tmp_path: Path) -> None:
    done = call("python", str(tmp_path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: Folder '{tmp_path}' holds no Python profiles.")


def test_the_help_names_every_command() -> None:
    done = call("--help")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[-5:]] == [
        *("python", "record", "report", "show", "timeline"),
    ]
