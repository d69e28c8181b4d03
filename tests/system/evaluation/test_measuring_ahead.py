"""Evaluations that measure the next step ahead: nothing is left behind, and no result differs."""

import gc
import json
import re
import signal
from pathlib import Path
from typing import Any, Final

import evaluating
import numpy as np
import pytest
from click.testing import CliRunner
from evaluating import Script, WoundClock, configured
from fleets import wait_until
from processes import open_files

from rule_core.kernels import cores
from rule_core.kernels.sweep import has_kernel
from rule_core.reading.measuring.part_reads import StepAhead
from rule_runner.cli import main
from rule_runner.engine.runner import Runner
from rule_runner.engine.stop_requests import Signals
from smdebug.core.writer import TrialWriter
from smdebug.rules import Rule

STEPS: Final = 8
AT: Final = 4  # where a rule ends, or a stop is requested
RULES: Final = ("VanishingGradient", "ExplodingTensor", "UnchangedTensor", "AllZero")
# Keys of times, durations and ids.
_OF_RUN: Final = re.compile(r"(?i)time|_at$|_s$|seconds$|id$|eventkey$")

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluating.log_nothing()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(cores, "_quota", lambda: 2)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are measured ahead."""
    steps: list[int] = []
    begin = StepAhead.begin

    def noted(self: StepAhead) -> bool:
        has_begun = begin(self)
        steps.extend([self.step] * has_begun)
        return has_begun

    monkeypatch.setattr(StepAhead, "begin", noted)
    return steps


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A trial with 1.2 MB a step; a gradient vanishes at step 6, and is the same at step 7."""
    root = tmp_path / "trial"
    writer = TrialWriter(root, collections={"gradients": "^gradient"}, end_job=True)
    for step in range(STEPS):
        generator = np.random.default_rng(step)
        values = {
            f"gradient/layer{at}/weight": generator.normal(size=(400, 250)).astype("f4")
            for at in range(3)
        }
        if step >= 6:
            values["gradient/layer1/weight"] = np.full((400, 250), 1e-9, "f4")
        writer.step(step, values)
    writer.close()
    return root


class Means(Rule):
    """Reads the mean of every gradient."""

    def invoke_at_step(self, step: int) -> bool:
        for name in self.base_trial.tensor_names(collection="gradients"):
            self.base_trial.tensor(name).reduction_value(step, "mean")
        return False


class Ends(Means):
    def invoke_at_step(self, step: int) -> bool:
        super().invoke_at_step(step)
        return step == AT


class Stopped(Means):
    def invoke_at_step(self, step: int) -> bool:
        if step == AT:
            signal.raise_signal(signal.SIGTERM)
        return super().invoke_at_step(step)


class Raises(Means):
    def invoke_at_step(self, step: int) -> bool:
        super().invoke_at_step(step)
        return step == AT and bool(1 / 0)


def running_threads() -> int:
    """Return how many threads this process has."""
    return len([*Path("/proc/self/task").iterdir()])


@pytest.mark.parametrize(
    ("rule", "outcome"), [(Ends, "IssuesFound"), (Stopped, "Stopped"), (Raises, "Error")]
)
def test_an_evaluation_that_ends_early_leaves_no_thread_and_no_open_file(
    rule: type[Rule], outcome: str, trial: Path, tmp_path: Path, begun: list[int]
) -> None:
    gc.collect()
    threads = running_threads()
    script = Script(WoundClock())
    config = configured(tmp_path / "out", [rule], str(trial))
    with Signals() as signals:
        found = Runner(config, clock=script.clock, waiter=script, signals=signals).run()
    (result,) = found.result.rules
    assert (result.outcome, begun[-1]) == (outcome, AT + 1)
    gc.collect()
    assert not [*open_files(trial), *open_files(tmp_path)]
    wait_until(lambda: running_threads() <= threads)


def compared(value: Any) -> Any:
    """Return JSON without what differs from run to run."""
    if isinstance(value, dict):
        return {key: compared(each) for key, each in value.items() if not _OF_RUN.search(key)}
    return [compared(each) for each in value] if isinstance(value, list) else value


def evaluated(trial: Path, output: Path) -> dict[str, Any]:
    """Evaluate, and return what is in the output folder."""
    rules = [f"--rule={rule}" for rule in RULES]
    rules += [f"--param={rule}.collection_names=gradients" for rule in RULES[2:]]
    result = CliRunner().invoke(
        main, ["evaluate", f"--trial={trial}", f"--output={output}", "--keep-going", *rules]
    )
    assert result.exit_code == 0, result.output
    content: dict[str, Any] = {"output": result.output.replace(str(output), "")}
    for path in output.rglob("*.json*"):
        lines = path.read_text().replace(str(output), "").splitlines()
        values = map(json.loads, lines if path.suffix == ".jsonl" else ["".join(lines)])
        content[str(path.relative_to(output))] = [compared(value) for value in values]
    return content


def test_results_of_the_command_do_not_depend_on_the_threads(
    trial: Path, tmp_path: Path, begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = []
    for threads, expected in (("1", []), ("2", [STEPS - 1])):
        monkeypatch.setenv(cores.THREADS, threads)
        content.append(evaluated(trial, tmp_path / threads))
        assert begun[-1:] == expected
    assert content[0] == content[1]
    assert "IssuesFound at step 6" in content[0]["output"]
