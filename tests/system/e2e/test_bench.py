"""The benchmarks at a tiny scale: who takes part does its work, and the table has every line."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[3]
SPEED = ROOT / "benchmarks" / "speed"
PYTHONS = ("RULE_RUNNER_OLD_SMDEBUG_PYTHON", "RULE_RUNNER_MODERN_SMDEBUG_PYTHON")
TINY = 0.0005


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the benchmarks; this Python plays those with the older library."""
    monkeypatch.syspath_prepend(SPEED)
    for name in PYTHONS:
        monkeypatch.setenv(name, sys.executable)
    names = ("cases", "contenders", "rounds", "tables", "trials")
    modules = {one: importlib.import_module(f"bench_{one}") for one in names}
    return SimpleNamespace(**modules, sampled_profile=importlib.import_module("sampled_profile"))


def judged(bench: SimpleNamespace, contenders: list[Any]) -> dict[str, int]:
    return {name: one.judged for name, (one,) in bench.rounds.rounds(contenders, 1).items()}


@pytest.mark.nightly
def test_all_who_judge_one_rule_judge_every_step(bench: SimpleNamespace, tmp_path: Path) -> None:
    trial, size = bench.trials.written("workers", tmp_path, 0.03)
    assert size == (3, 50, 64, 8, 2)
    contenders = [
        *bench.contenders.one_rule(str(trial)),
        *bench.contenders.all_workers(str(trial))[-1:],
        *bench.contenders.opening(str(trial))[-1:],
    ]
    named = [
        "smdebug",
        "one thread",
        "floor",
        "documented names",
        "two cores",
        "reading alone by two threads",
        "smdebug, compiled protobuf",
    ]
    assert [one.name for one in contenders[: len(named)]] == named
    assert [bench.rounds.run(one).judged for one in contenders] == [3, 3, 24, 3, 3, 24, 3, 3, 3]


@pytest.mark.nightly
@pytest.mark.parametrize("folder", ["benchmarks/speed", "scripts"])
def test_another_checkout_takes_part(bench: SimpleNamespace, tmp_path: Path, folder: str) -> None:
    checkout = tmp_path / "before"
    shutil.copytree(SPEED, checkout / folder)
    for package in ("rule_core", "smdebug", "builtin_rules", "rule_runner"):
        shutil.copytree(ROOT / package, checkout / package)
    started = checkout / "started"
    with (checkout / "rule_runner" / "__init__.py").open("a") as module:
        module.write(f"\nopen({str(started)!r}, 'a').write('.')\n")
    trial, _ = bench.trials.written("rules", tmp_path, TINY)
    case = bench.cases.beside("rules", bench.cases.CASES["twelve"], checkout)
    names = {"AllZero", "AllZero, before"}
    contenders = [one for one in case.contenders(str(trial)) if one.name in names]
    assert [one.name for one in contenders] == ["AllZero", "AllZero, before"]
    took = bench.rounds.rounds(contenders, 1)
    assert started.read_text() == "."  # by one of the two
    (line,) = [row.line(took, lambda one: one.seconds, 0) for row in case.rows if row.ours in took]
    assert (line.what, line.compared_with) == ("rules: AllZero", str(checkout))
    ours, before = (took[one.name][0].seconds for one in contenders)
    assert line.values == [ours / before]


@pytest.mark.nightly
def test_twelve_rules_judge_and_their_memory_is_seen(
    bench: SimpleNamespace, tmp_path: Path
) -> None:
    trial, size = bench.trials.written("rules", tmp_path, TINY)
    took = bench.rounds.run(bench.contenders.twelve_watched(str(trial))[0])
    assert took.judged == size.steps
    assert took.anonymous_mb > 1
    fetched = bench.contenders.twelve(str(trial))[0]
    assert bench.rounds.run(fetched).judged == size.steps


def test_a_way_of_the_floor_is_a_part_of_it(bench: SimpleNamespace, tmp_path: Path) -> None:
    trial, _ = bench.trials.written("large", tmp_path, TINY)
    assert judged(bench, bench.contenders.floors(str(trial))) == {
        "floor": 2,
        "floor by pread": 2,
        "reading alone": 2,
        "arithmetic alone": 2,
    }


def test_the_command_starts_without_heavy_modules(bench: SimpleNamespace) -> None:
    *_, imports = bench.contenders.starts("")
    assert bench.rounds.run(imports).more == {"heavy": []}


def test_contenders_that_judge_less_are_not_compared(bench: SimpleNamespace) -> None:
    said = '{{"seconds": 1, "cpu_seconds": 1, "judged": {}, "peak_mb": 1}}'
    contenders = [
        bench.rounds.Contender(str(number), ["echo", said.format(number)]) for number in (3, 2)
    ]
    with pytest.raises(RuntimeError, match=r"same number of steps, got \{'3': 3, '2': 2\}\."):
        bench.rounds.rounds(contenders, 1)


def test_a_contender_that_fails_says_why(bench: SimpleNamespace) -> None:
    contender = bench.rounds.Contender("one", [sys.executable, "-c", "exit('out of luck')"])
    with pytest.raises(RuntimeError, match=r"'one' failed with 1: out of luck$"):
        bench.rounds.run(contender)


def test_every_benchmark_has_all_its_lines(bench: SimpleNamespace) -> None:
    for name, case in bench.cases.CASES.items():
        times = {
            one.name: [bench.rounds.Took(number, 2 * number, more={"heavy": [], "step_ms": 1.0})]
            * 3
            for number, one in enumerate(case.contenders("trial"), start=1)
        }
        lines = [row.line(times, lambda took: took.seconds, 1000) for row in case.rows]
        assert None not in lines, name
        assert len(bench.tables.text(lines).splitlines()) == len(case.rows) + 1


def test_a_line_compares_rounds_with_each_other(bench: SimpleNamespace) -> None:
    times = {
        name: [bench.rounds.Took(seconds) for seconds in every]
        for name, every in {"a": [1.0, 2.0, 4.0], "b": [8.0, 8.0, 8.0], "c": [2, 2, 4]}.items()
    }
    row = bench.cases.Row("what", "a", ["b", "c"], "both", ">= 5")
    line = row.line(times, lambda took: took.seconds, 1000)
    assert line.cells() == ("what", "both", "3", "5", "10", ">= 5", "2000 us", "10000 us")
    share = bench.cases.Row("what", "a", ["b"], "b", share=True)
    assert share.line(times, lambda took: took.seconds, 0).values == [0.125, 0.25, 0.5]
    assert bench.cases.Row("what", "a", ["absent"], "").line(times, max, 0) is None


def test_a_trial_that_is_there_is_not_written_again(bench: SimpleNamespace, tmp_path: Path) -> None:
    trial, _ = bench.trials.written("opening-all", tmp_path, TINY)
    before = (trial / "training_job_end.ts").stat().st_mtime_ns
    bench.trials.written("opening-all", tmp_path, TINY)
    assert (trial / "training_job_end.ts").stat().st_mtime_ns == before
    _, larger = bench.trials.written("opening-all", tmp_path, 2 * TINY)
    assert larger.steps == len([*trial.rglob("*.json")]) - 1 == 100


def test_the_table_is_put_between_the_marks(bench: SimpleNamespace, tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    marks = (bench.tables.BEGIN, bench.tables.END)
    document.write_text("Before.\n{}\nold\n{}\nAfter.\n".format(*marks), "utf-8")
    bench.tables.write_between(document, "new")
    assert document.read_text("utf-8") == "Before.\n{}\nnew\n{}\nAfter.\n".format(*marks)
    document.write_text("Nothing.", "utf-8")
    with pytest.raises(ValueError, match=r"are not in '.*performance.md'. Put them in\.$"):
        bench.tables.write_between(document, "new")


def test_the_script_prints_and_writes_the_table(tmp_path: Path) -> None:
    output = tmp_path / "table.md"
    options = ["--pairs", "2", "--scale", str(TINY), "--folder", tmp_path, "--cpu", "--markdown"]
    done = subprocess.run(
        [sys.executable, SPEED, "medium-floor", *options, "--output", output],
        capture_output=True,
        text=True,
        check=True,
    )
    head, _, *lines = output.read_text("utf-8").splitlines()
    assert head == "| what | compared with | min | median | max | target | ours | theirs |"
    assert [line.split(" | ")[0] for line in lines[:3]] == [
        "| medium: floor by pread, part of the floor",
        "| medium: reading alone, part of the floor",
        "| medium: arithmetic alone, part of the floor",
    ]
    assert "CPU time, scale 0.0005, pairs: 2, files in the page cache." in lines[-1]
    assert done.stdout == output.read_text("utf-8")


def test_a_profile_tells_where_the_time_goes() -> None:
    done = subprocess.run(
        [sys.executable, SPEED / "sampled_profile.py", "--top", "3", "rules", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "VanishingGradient" in done.stdout
    said, parts, functions = done.stderr.strip().split("\n\n")
    assert "s of processor time" in said
    assert parts.splitlines()[0] == functions.splitlines()[0] == "   own    all"
    assert any(line.endswith("  imports") for line in parts.splitlines())


def test_stacks_are_drawn_as_a_flame_graph(bench: SimpleNamespace) -> None:
    """Boxes of callees lie within those of their callers; narrow ones are left out."""
    drawing = bench.sampled_profile.flame(
        {("main", "a<b>"): 3, ("main", "c"): 1, ("main",): 4, ("rare",): 0}
    )
    root = ET.fromstring(drawing)
    space = "{http://www.w3.org/2000/svg}"
    boxes = {
        box.findtext(f"{space}title"): [float(box.get(name, "")) for name in ("x", "y", "width")]
        for box in root.iter(f"{space}svg")
        if box.get("x")
    }
    assert boxes == {
        "main: 8": [0, 16, 1200],
        "a<b>: 3": [0, 0, 450],
        "c: 1": [450, 0, 150],
    }


def test_a_benchmark_that_fails_is_named(tmp_path: Path) -> None:
    options = ["--pairs", "1", "--scale", str(TINY), "--folder", tmp_path]
    done = subprocess.run(
        [sys.executable, SPEED, "opening", *options],
        capture_output=True,
        text=True,
        check=False,
        env=dict.fromkeys(PYTHONS, "false") | {"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("Benchmarks failed: opening. No document is written.")
    assert "Contender 'smdebug' failed with 1:" in done.stderr
