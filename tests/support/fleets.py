"""Trials of a fleet, the commands over them, and what of their results must be equal."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import evaluating
import mlflow_runs
import numpy as np
import rawtrial
import safetensors_files
import uncounted
from click.testing import CliRunner, Result
from event_files import event, event_file, simple

from rule_core.clock import SystemClock
from rule_runner.cli import main

COLLECTIONS: Final = {"losses": ["^loss$"], "gradients": ["^gradient"]}
# With the libraries that they need.
EXECUTORS: Final = [("local:2", "json"), ("dask:2", "distributed"), ("ray:2", "ray")]
# Fields that differ between two evaluations of one trial.
TIMES: Final = {"started_at", "ended_at", "duration_s", "rule_time_s", "run_id"}


def trial_files(gradient: float, *, steps: int = 3, ended: bool = True) -> dict[str, bytes]:
    """Return a small trial with a loss and a gradient."""
    tensors = {"loss": np.float32([1]), "gradient/fc": np.float32([gradient, gradient])}
    return evaluating.trial(dict.fromkeys(range(steps), tensors), COLLECTIONS, ended=ended)


def write_runs(root: Path, count: int) -> Path:
    """Write ended trials; every second one has vanishing gradients."""
    for number in range(count):
        rawtrial.write(root / f"t{number:03}", trial_files(1e-12 if number % 2 else 0.5))
    return root


def source_files(number: int) -> dict[str, bytes]:
    """Return a run as one of the project's sources saves it: which one depends on the number."""
    losses = {10 * step: 1.0 / 2 ** (step if number % 2 else -step) for step in range(1, 9)}
    rows = [{"step": step, "loss": loss} for step, loss in losses.items()]
    state = {"global_step": 80, "max_steps": 80, "log_history": rows}
    events = [event(step, simple("loss", loss)) for step, loss in losses.items()]
    texts = [f"iter {step}: loss {loss}, time 1.00ms, mfu 1.00%" for step, loss in losses.items()]
    weights = safetensors_files.encode({"fc.weight": np.ones((2, 2), np.float32)})
    sources: tuple[dict[str, bytes], ...] = (
        trial_files(losses[80]),
        {
            "metrics.csv": "\n".join(
                ["step,loss", *(f"{s},{v}" for s, v in losses.items())]
            ).encode()
        },
        {"log.jsonl": "\n".join(map(json.dumps, rows)).encode()},
        {"train.log": "\n".join(texts).encode()},
        {"trainer_state.json": json.dumps(state).encode()},
        {"events.out.tfevents.1700000000.host.1.0": event_file(*events)},
        {f"checkpoint-{step}/model.safetensors": weights for step in losses},
        {
            "meta.yaml": mlflow_runs.meta(3),
            "metrics/loss": "".join(f"{s} {v} {s}\n" for s, v in losses.items()).encode(),
        },
    )
    return sources[number % len(sources)]


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
    result = fleet("plan", root, "--output", output, "-o", target, *rules, *options)
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
    """Return all results below a folder without times, by their paths."""
    return {
        path.relative_to(output).as_posix(): {
            name: value for name, value in json.loads(path.read_text()).items() if name not in TIMES
        }
        for path in output.rglob("rule_result.json")
    }
