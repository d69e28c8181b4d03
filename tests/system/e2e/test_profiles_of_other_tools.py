"""Profiles of other tools, as users give them to the commands, and as the tools write them."""

import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import saved
from click.testing import CliRunner, Result
from flight_recorder_writer import Dump, training, write_all
from kineto_writer import KinetoTrace
from prometheus_writer import write_node
from tool_profile_writer import sampled, scalene_entry, write_scalene, write_speedscope

from rule_core.profiler.flight_recorder.conversion import CONVERSION
from rule_runner.cli import main

FRAMES: Final = [("main", "a.py", 1), ("step", "a.py", 5)]
PROGRAM: Final = """
import time


def step(depth):
    if depth:
        return step(depth - 1)
    end = time.perf_counter() + 0.4
    while time.perf_counter() < end:
        sum(range(1000))


def main():
    step(3)


main()
"""
# Rank 1 leaves before the fourth all-reduce, which ends that of rank 0 with an error; both ranks
# write what the recorder of Gloo holds.
RANKS: Final = """
import os, sys
from pathlib import Path
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
store = dist.FileStore(str(folder / "store"), 2)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
for _ in range(3):
    dist.all_reduce(torch.ones(4, 3))
if rank == 1:
    store.wait(["joined"])
else:
    store.set("joined", "three")
    try:
        dist.all_reduce(torch.ones(4, 3))
    except RuntimeError:
        pass
text = c10d._dump_fr_trace_json()
(folder / f"json/rank_{rank}.json").write_bytes(text if isinstance(text, bytes) else text.encode())
(folder / f"pickles/nccl_trace_rank_{rank}").write_bytes(c10d._dump_fr_trace())
os._exit(0)
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def evaluated(folder: Path, *rules: str, options: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    output = folder.parent / f"{folder.name}-out"
    chosen = [part for rule in rules for part in ("--rule", rule)]
    done = call(
        "evaluate", "--profiler-trial", folder, *chosen, "--no-wait", "--output", output, *options
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return {result["rule"]: result for result in saved.results(output).values()}


# -- the commands ----------------------------------------------------------------------------


def test_functions_of_speedscope(tmp_path: Path) -> None:
    path = write_speedscope(tmp_path, FRAMES, sampled([[0], [0, 1, 1]], [1.0, 2.0]))
    expected = (
        "profiles: 1 file of speedscope\n"
        'threads: 1 (Thread 7 "MainThread")\n'
        "time: 3 s in 2 functions\n"
        "functions:\n"
        "  tottime   cumtime   function\n"
        "  2.000000  2.000000  a.py(step)\n"
        "  1.000000  3.000000  a.py(main)\n"
    )
    for place in (path, tmp_path):
        done = call("profile", "python", place)
        assert (done.exit_code, done.stdout) == (0, expected)
    by_cumtime = call("profile", "python", path, "--sort", "cumtime", "-n", "1")
    assert by_cumtime.stdout.endswith("  1.000000  3.000000  a.py(main)\n")
    assert "  a.py:5(step)\n" in call("profile", "python", path, "--lines").stdout


def test_functions_and_memory_of_scalene(tmp_path: Path) -> None:
    entries = [
        scalene_entry("forward", 2, n_cpu_percent_c=40, n_peak_mb=1.5, n_malloc_mb=70),
        scalene_entry("load", 6, n_cpu_percent_python=10, n_peak_mb=3),
    ]
    path = write_scalene(tmp_path, entries)
    done = call("profile", "python", path)
    assert done.stdout == (
        "profiles: 1 file of scalene\n"
        "elapsed: 10 s under scalene\n"
        "memory: 44.25 MB at most\n"
        "functions:\n"
        "  time   python  native  system  gpu    peak MB  allocated MB  function\n"
        "  4.000  0.000   4.000   0.000   0.000  1.5      70.0          train.py:2(forward)\n"
        "  1.000  1.000   0.000   0.000   0.000  3.0      0.0           train.py:6(load)\n"
    )
    by_memory = call("profile", "python", path, "--sort", "memory", "-n", "1")
    assert by_memory.stdout.endswith("train.py:6(load)\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--sort", "ncalls"), "Profiles of speedscope are sorted by one of tottime, cumtime, got"),
        (("--sort", "memory"), "Profiles of speedscope are sorted by one of tottime, cumtime, got"),
        (("--step", "3"), "A profile of speedscope has no steps, modes and nodes: leave"),
    ],
)
def test_what_speedscope_does_not_have(
    tmp_path: Path, options: tuple[str, str], sentence: str
) -> None:
    write_speedscope(tmp_path, FRAMES)
    done = call("profile", "python", tmp_path, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_rules_do_not_judge_functions(tmp_path: Path) -> None:
    path = write_speedscope(tmp_path, FRAMES)
    for place in (path, tmp_path):
        done = call("evaluate", "--profiler-trial", place, "--rule", "BatchSize", "--no-wait")
        assert done.exit_code == 1
        assert "Rules do not judge the speedscope profile in" in done.stderr


def test_everything_is_recognised(tmp_path: Path) -> None:
    write_speedscope(tmp_path / "speedscope", FRAMES)
    write_scalene(tmp_path / "scalene", [])
    write_all(tmp_path / "dumps", training(ranks=2))
    write_node(tmp_path / "prometheus", [[50, 60]])
    expected = {
        "speedscope": "speedscope  1",
        "scalene": "scalene   1",
        "dumps": "read from: dumps of the flight recorder",
        "prometheus": "read from: answers of Prometheus",
    }
    for name, line in expected.items():
        shown = call("profile", "show", tmp_path / name, "--check")
        assert (shown.exit_code, line in shown.stdout) == (0, True), shown.output
        checked = call("doctor", tmp_path / name)
        assert " are there" in checked.stdout
        assert "wrong" not in checked.stdout


@pytest.mark.parametrize(
    ("content", "of_file", "of_folder"),
    [
        (b"", "It is empty, and", "holds no profiler data"),
        (b"{}", "It is JSON, but not a trace of torch.profiler", "holds no profiler data"),
        (b"\x1f\x8b damaged", *["It is damaged gzip data."] * 2),
        (pickle.dumps({"loss": 1}), *["It is a pickle, not JSON"] * 2),
        (pickle.dumps({"pg_config": {}}, 2), *["convert the dumps where they were written"] * 2),
    ],
)
def test_files_of_another_kind_are_one_sentence(
    tmp_path: Path, content: bytes, of_file: str, of_folder: str
) -> None:
    path = tmp_path / "profile.json"
    path.write_bytes(content)
    for place, sentence in ((path, of_file), (tmp_path, of_folder)):
        done = call("profile", "show", place)
        assert (done.exit_code, done.stdout) == (1, "")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", ["{}", '{"schemaVersion": 1, "traceEvents": []}'])
@pytest.mark.parametrize("options", [("auto", "--no-wait"), ("BatchSize", "--wait-for-trial", "1")])
def test_an_evaluation_of_a_file_that_cannot_be_read_ends_at_once(
    tmp_path: Path, content: str, options: tuple[str, ...]
) -> None:
    path = tmp_path / "profile.json"
    path.write_text(content)
    done = call("evaluate", "--profiler-trial", path, "--rule", *options, "--output", tmp_path)
    assert done.exit_code == 1
    assert f"Error: File '{path}' is not read. It " in done.stderr


def test_check_does_not_reject_a_trace_that_profile_show_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = KinetoTrace()
    trace.step(1, 0.0, 1000.0)
    trace.write(tmp_path, "trace.json")
    monkeypatch.chdir(tmp_path)
    for arguments in (("profile", "show"), ("check",)):
        done = call(*arguments, "trace.json")
        assert (done.exit_code, done.stderr) == (0, "")
    done = call("profile", "python", "trace.json")
    assert done.exit_code == 1
    assert "Error: File 'trace.json' holds no Python profiles." in done.stderr
    (tmp_path / "other.json").write_text('[{"ph": "X", "cat": "gc", "ts": 1}]')
    assert "It is a trace in Chrome's format" in call("check", "other.json").stderr


# -- dumps of the flight recorder --------------------------------------------------------------


def test_the_rank_that_did_not_join_is_the_finding(tmp_path: Path) -> None:
    dumps = training(ranks=3)
    for dump in dumps[:2]:
        dump.join("broadcast", completes=False)
    write_all(tmp_path / "dumps", dumps)
    results = evaluated(tmp_path / "dumps", "CollectiveNotJoined", "ProfilerReport")
    [evidence] = results["CollectiveNotJoined"]["evidence"]
    assert results["CollectiveNotJoined"]["outcome"] == "IssuesFound"
    assert (evidence["worker"], evidence["measured"]) == ("rank-2", 1)
    page = next(tmp_path.rglob("profiler-report.html")).read_text()
    assert "rank-2 did not join all collectives that other ranks joined: it lacks 1" in page


@pytest.mark.nightly
def test_dumps_of_gloo_as_processes_write_them(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not hasattr(torch._C._distributed_c10d, "_dump_fr_trace_json"):
        pytest.skip("This version of torch is not installed with a recorder for Gloo.")
    for name in ("json", "pickles"):
        (tmp_path / name).mkdir()
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANKS, tmp_path, str(rank)], env=environment)
        for rank in (0, 1)
    ]
    assert [rank.wait(60) for rank in ranks] == [0, 0]
    real = json.loads((tmp_path / "json" / "rank_0.json").read_text())
    generated = Dump(0, 2)
    generated.join()
    assert real.keys() == generated.document().keys()
    assert real["entries"][0].keys() == generated.entries[0].keys()
    refused = call("profile", "show", tmp_path / "pickles")
    assert CONVERSION in refused.stderr
    _, *arguments = shlex.split(CONVERSION.removesuffix("FILES"))
    files = (tmp_path / "pickles").iterdir()
    subprocess.run([sys.executable, *arguments, *files], check=True)
    for name, place in (("json", ""), ("pickles", " at <string>:18(<module>)")):
        result = evaluated(tmp_path / name, "CollectiveNotJoined")["CollectiveNotJoined"]
        [evidence] = result["evidence"]
        assert evidence["worker"] == "rank-1"
        assert evidence["note"] == (
            "It did not join collective 4 of process group '0' (default_pg) (all_reduce of 12 "
            f"elements of Float), which rank 0 began{place}."
        )


# -- answers of Prometheus -----------------------------------------------------------------------


def test_rules_judge_the_gpus_of_answers(tmp_path: Path) -> None:
    minutes = 120
    busy, idle = [95.0] * minutes, [5.0] * minutes
    growing = [20_000.0] * 60 + [70_000.0] * 60
    write_node(tmp_path / "answers", [busy, idle], used_mib=growing)
    options = [
        part
        for parameter in (
            "LowGPUUtilization.patience=0",
            "LowGPUUtilization.window=100",
            "GPUMemoryIncrease.patience=0",
            "LoadBalancing.patience=0",
        )
        for part in ("-p", parameter)
    ]
    rules = ("GPUMemoryIncrease", "LoadBalancing", "LowGPUUtilization", "ProfilerReport")
    results = evaluated(tmp_path / "answers", *rules, options=options)
    outcomes = {name: result["outcome"] for name, result in results.items()}
    assert outcomes == {**dict.fromkeys(rules, "IssuesFound"), "ProfilerReport": "NoIssuesFound"}
    assert results["LowGPUUtilization"]["evidence"][0]["tensor"] == "gpu1"


# -- as the tools write them ------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def seconds_of(output: str, function: str) -> tuple[float, float]:
    pattern = rf"^ +([\d.]+) +([\d.]+) +\S*train\.py(?::\d+)?\({function}\)$"
    match = re.search(pattern, output, re.MULTILINE)
    assert match is not None, output
    return float(match[1]), float(match[2])


def test_pyinstrument(program: Path) -> None:
    pytest.importorskip("pyinstrument", reason="pyinstrument is not installed")
    written = program.with_name("profile.json")
    # Of what runs below its own frames, Pyinstrument keeps the first branch alone: where the import
    # of pkgutil takes a millisecond, that is this import, and not the program.
    start = "import pkgutil; from pyinstrument.__main__ import main; main()"
    command = [sys.executable, "-c", start, "-r", "speedscope", "-o", written, program]
    subprocess.run(command, check=True, capture_output=True)
    output = call("profile", "python", written).stdout
    own, whole = seconds_of(output, "step")
    assert 0 < own < whole <= seconds_of(output, "main")[1]


def test_py_spy(program: Path) -> None:
    if shutil.which("py-spy") is None:
        pytest.skip("py-spy is not installed")
    written = program.with_name("profile.json")
    command = ["py-spy", "record", "-f", "speedscope", "-o", written, "--", sys.executable, program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if "Permission denied" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("Only root may trace processes here.")
    output = call("profile", "python", written).stdout
    own, whole = seconds_of(output, "step")
    assert 0 < own <= whole <= seconds_of(output, "main")[1]


def test_scalene(program: Path) -> None:
    if shutil.which("scalene") is None:
        pytest.skip("scalene is not installed")
    written = program.with_name("profile.json")
    command = ["scalene", "run", "-o", written, program]
    subprocess.run(command, check=True, capture_output=True, cwd=program.parent)
    output = call("profile", "python", written).stdout
    assert re.search(r"^ +\d+\.\d+ .*train\.py:5\(step\)$", output, re.MULTILINE)
