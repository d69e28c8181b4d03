"""Trials of a fleet, the commands over them, and what of their results must be equal."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import evaluating
import numpy as np
import rawtrial
import saved
import uncounted
from click.testing import CliRunner, Result

from rule_core.clock import SystemClock
from rule_runner.cli import main

COLLECTIONS: Final = {"losses": ["^loss$"], "gradients": ["^gradient"]}
# With the libraries that they need.
EXECUTORS: Final = [("local:2", "json"), ("dask:2", "distributed"), ("ray:2", "ray")]
# Fields that differ between two evaluations of one trial.
TIMES: Final = {"started_at", "ended_at", "duration_s", "rule_time_s", "run_id"}
_TIMES: Final = r'\btime="[0-9.]+"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+'


def trial_files(gradient: float, *, steps: int = 3, ended: bool = True) -> dict[str, bytes]:
    """Return a small trial with a loss and a gradient."""
    tensors = {"loss": np.float32([1]), "gradient/fc": np.float32([gradient, gradient])}
    return evaluating.trial(dict.fromkeys(range(steps), tensors), COLLECTIONS, ended=ended)


def write_runs(root: Path, count: int) -> Path:
    """Write ended trials; every second one has vanishing gradients."""
    for number in range(count):
        rawtrial.write(root / f"t{number:03}", trial_files(1e-12 if number % 2 else 0.5))
    return root


def fleet(*arguments: object) -> Result:
    """Run a command of fleet."""
    return CliRunner().invoke(main, ["fleet", *map(str, arguments)])


def worker_environment() -> dict[str, str]:
    """Return an environment in which the workers of executors find `executed_calls` too."""
    return uncounted.environment() | {
        "PYTHONPATH": str(Path(__file__).parent),
        "RAY_AUTH_MODE": "disabled",
        "RAY_raylet_start_wait_time_s": "300",  # on a busy machine
    }


def plan(root: object, output: object, target: Path, *options: str) -> Path:
    """Plan the trials below a root with one rule, unless the options name others."""
    rules = [] if "--rule" in options else ["--rule", "VanishingGradient"]
    result = fleet("plan", root, "--output", output, "--plan", target, *rules, *options)
    assert result.exit_code == 0, result.output
    return target


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < end, "the condition never holds"
        clock.sleep(0.01)


def lines(result: Result) -> list[dict[str, Any]]:
    """Return the lines of a run with ``--format jsonl``."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def verdicts(output: Path) -> dict[str, Mapping[str, Any]]:
    """Return all results below a folder without times, by their folders and names."""
    return {
        f"{path.parent.relative_to(output).as_posix()}/{rule}": {
            name: value for name, value in result.items() if name not in TIMES
        }
        for path in output.rglob("results.json")
        for rule, result in saved.results(path.parent).items()
    }


def collected(plan: Path, output: Path) -> dict[str, str]:
    """Collect the results of a plan, and return what is printed and written without times."""
    files = {"report": "index.html", "junit": "fleet.xml", "sarif": "fleet.sarif"}
    places = {name: output / file for name, file in files.items()}
    options = [text for name, place in places.items() for text in (f"--{name}", str(place))]
    result = fleet("collect", plan, *options)
    texts = {name: place.read_text() for name, place in places.items()}
    return {name: re.sub(_TIMES, "", text) for name, text in (texts | {"": result.stdout}).items()}
