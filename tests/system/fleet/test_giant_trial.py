"""One trial of many workers: measured on executors, every output file is that of one process."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import fleets
import pytest

SPEED: Final = Path(__file__).parents[3] / "benchmarks" / "speed"
VARYING: Final = re.compile(
    r"""
    "(?:id|run_id|RunId|EventKey)":\s*"[^"]*"
    |"(?:\w+Time|\w+Seconds|duration_s|rule_time_s)":\s*[0-9.e-]+
    |(?<=-)[0-9a-f]{8}(?=")  # the run, at the end of an ARN
    |[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+Z?
    """,
    re.VERBOSE,
)


def files(output: Path) -> dict[str, str]:
    """Return the files of an output folder without times and the IDs of the run."""
    return {
        path.relative_to(output).as_posix(): VARYING.sub("", path.read_text("utf-8"))
        for path in sorted(output.rglob("*"))
        if path.is_file()
    }


def evaluated(trial: Path, output: Path, threshold: str, *options: str) -> dict[str, str]:
    """Evaluate in a process of its own; return the files of the output."""
    rule = ("--rule", "VanishingGradient", "-p", "literal=true", "-p", f"threshold={threshold}")
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", str(trial)]
    done = subprocess.run(
        [*command, *rule, "--keep-going", "--output", str(output), *options],
        env=fleets.worker_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return files(output)


@pytest.mark.parametrize(
    ("sizes", "threshold", "executors"),
    [
        pytest.param(
            (40, 8, 5), "0.7", [("local:1", "json")], id="small"
        ),  # steps, workers, tensors
        pytest.param(
            (500, 64, 100), "0.62", fleets.EXECUTORS[::2], id="giant", marks=pytest.mark.nightly
        ),
    ],
)
@pytest.mark.timeout(3600)
def test_every_file_is_the_same_wherever_it_is_measured(
    sizes: tuple[int, int, int],
    threshold: str,
    executors: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(SPEED)
    importlib.import_module("bench_giant").write_trial(tmp_path / "trial", *sizes)
    alone = evaluated(tmp_path / "trial", tmp_path / "alone", threshold)
    assert alone["findings.jsonl"].count("\n") > 1
    for spec, library in executors:
        pytest.importorskip(library, reason=f"{library} is not installed.")
        folder = tmp_path / spec.replace(":", "-")
        assert evaluated(tmp_path / "trial", folder, threshold, "--measure-on", spec) == alone
