"""Growth: processor time for each tensor of a trial, and of one ten times as large; the memory.

The larger trials have 100,000 steps, 50,000 tensors in a step, or 1,000 workers. They are written
and judged (VanishingGradient) by processes of their own. A ratio of 1 is linear.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import click
import numpy as np
from bench_child import Watch

from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

TIMES: Final = 10
ELEMENTS: Final = 4


class Size(NamedTuple):
    """The size of a trial."""

    steps: int
    tensors: int
    workers: int

    @property
    def values(self) -> int:
        """The number of values in the trial."""
        return self.steps * self.tensors * self.workers


# The smaller size; the field of this name grows.
SIZES: Final = {
    "steps": Size(10_000, 2, 1),
    "tensors": Size(3, 5_000, 1),
    "workers": Size(5, 5, 100),
}


def run(scale: float = 1.0) -> None:
    """Print microseconds for each tensor at both sizes, their ratio, and the memory."""
    click.echo("what grows            size  write us  ratio  judge us  ratio  memory MB")
    for name, smallest in SIZES.items():
        before: dict[str, float] = {}
        for times in (1, TIMES):
            number = round(getattr(smallest, name) * times * scale)
            size = smallest._replace(**{name: number})
            with tempfile.TemporaryDirectory() as folder:
                took = {what: _child(what, folder, size) for what in ("write", "judge")}
            each = {what: took[what]["cpu_seconds"] / size.values * 1e6 for what in took}
            ratio = {what: f"{each[what] / before[what]:.2f}" if before else "" for what in each}
            click.echo(
                f"{name:15} {number:10,}  {each['write']:8.1f}  {ratio['write']:>5}  "
                f"{each['judge']:8.1f}  {ratio['judge']:>5}  {took['judge']['peak_mb']:9.0f}"
            )
            before = each


def _child(what: str, folder: str, size: Size) -> dict[str, float]:
    command = [sys.executable, __file__, what, folder, *map(str, size)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return result


def write(root: Path, size: Size) -> None:
    """Write a trial that ended long ago."""
    values = {
        f"gradient/layer{at}/weight": np.full(ELEMENTS, 1.5, "f4") for at in range(size.tensors)
    }
    writers = [
        TrialWriter(
            root,
            collections={"gradients": "^gradient/"},
            worker=f"worker_{at}",
            num_workers=size.workers,
            end_job=at == size.workers - 1,
        )
        for at in range(size.workers)
    ]
    watch = Watch()
    for step in range(size.steps):
        for writer in writers:
            writer.step(step, values, mode=ModeKeys.TRAIN)
    watch.report(size.steps)
    for writer in writers:
        writer.close()
    os.utime(root / "training_job_end.ts", (0, 0))


def judge(root: Path, size: Size) -> None:
    """Judge a trial."""
    from rule_core.sources.address import address_of
    from rule_runner.config.model import EvaluationConfig, RuleJobConfig
    from rule_runner.config.request import EvaluationRequest
    from rule_runner.config.resolve import options_of
    from rule_runner.engine.runner import Runner
    from rule_runner.loading.loader import load_builtin
    from rule_runner.logs import configure

    configure(-1)
    rule = RuleJobConfig("VanishingGradient", load_builtin("VanishingGradient"))
    with tempfile.TemporaryDirectory() as output:
        request = EvaluationRequest(keep_going=True, wait=False)
        watch = Watch()
        config = EvaluationConfig(
            (rule,), address_of(str(root)), Path(output), **options_of(request)
        )
        (result,) = Runner(config).run().result.rules
        watch.report(result.coverage.judged)
    assert result.coverage.judged == size.steps


if __name__ == "__main__":
    _, name, folder, *numbers = sys.argv
    {"write": write, "judge": judge}[name](Path(folder, "trial"), Size(*map(int, numbers)))
