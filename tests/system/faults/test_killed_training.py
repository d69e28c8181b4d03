"""Training jobs that are killed for real: readers see whole steps, and no gap between them."""

import itertools
import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hooked
import pytest
import rawtrial
import trained
import uncounted

from rule_runner.commands.doctor.checks import Grade
from rule_runner.commands.doctor.trial import examine_trial

ROOT = Path(__file__).parents[3]
KILLS = 200
MOST_STEPS = 12  # until a training job is killed
LONGEST_S = 0.003  # after the last of them; a step takes about a millisecond


class Killer:
    """Starts training jobs, each forked off one process that has everything loaded."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, trained.__file__, "forked"],
            cwd=ROOT,
            env={**uncounted.environment(), "PYTHONPATH": str(ROOT)},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def train(self, root: Path, *, steps: int = 0, seconds: float = 0, operation: int = 0) -> None:
        """Train until so many files were touched, or else for some steps and then some seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{root} {operation}\n".encode())
        said = self.said()
        pid = int(next(said))
        if not operation:
            assert list(itertools.islice(said, steps)) == [b"step\n"] * steps
            select.select([], [], [], seconds)
            os.kill(pid, signal.SIGKILL)
        assert set(said) <= {b"step\n"}

    def said(self) -> Iterator[bytes]:
        """Yield what is said until the training job has ended."""
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, b"ended\n"):
            assert line, "Nobody is left to say that it ended."
            yield line


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    found = Killer()
    with found.process as process:
        yield found
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def check(root: Path) -> int:
    """Show that all that is visible of a trial is whole; return the number of steps."""
    if not (root / rawtrial.collections_key()).exists():
        assert hooked.indexes(root) == {}
        return 0
    trial = hooked.opened(root)
    steps = trial.steps()
    assert steps == list(range(len(steps)))
    assert steps == sorted(hooked.indexes(root))
    for step in steps:
        assert trial.tensor_names(step=step) == sorted([*trained.NAMES, "scalar/lr"])
        assert trial.tensor("scalar/lr").value(step).tolist() == [1 / (step + 1)]
        for name in trained.NAMES:
            expected = trained.value(name, step)
            assert trial.tensor(name).value(step).tobytes() == expected.tobytes()
    if steps:
        assert [one.text for one in examine_trial(str(root)) if one.grade is Grade.WRONG] == []
    return len(steps)


def go_on(root: Path, steps: int) -> None:
    """Show that the training job goes on where its trial ends."""
    with trained.made(str(root), resume=True) as hook:
        trained.steps(hook, steps, 3)
    assert check(root) == steps + 3
    assert (root / rawtrial.TRAINING_JOB_END).exists()


@pytest.mark.parametrize("kills", [30, pytest.param(KILLS, marks=pytest.mark.nightly)])
def test_killed_at_random_moments(tmp_path: Path, killer: Killer, kills: int) -> None:
    rng = random.Random(3)
    found: list[int] = []
    torn = 0
    for kill in range(kills):
        root = tmp_path / str(kill)
        killer.train(root, steps=rng.randint(0, MOST_STEPS), seconds=rng.uniform(0, LONGEST_S))
        found.append(check(root))
        torn += any(one.endswith(".tmp") for one in hooked.files(root))
        if kill % 10 == 0:
            go_on(root, found[-1])
        shutil.rmtree(root, ignore_errors=True)
    # It is no test if the training jobs were killed before they wrote, or between two steps.
    assert len(set(found)) > 3
    assert torn > 0 or kills < KILLS


def test_killed_before_each_touch_of_a_file(tmp_path: Path, killer: Killer) -> None:
    found = []
    for operation in range(1, 41):
        root = tmp_path / str(operation)
        killer.train(root, operation=operation)
        found.append(check(root))
        go_on(root, found[-1])
        shutil.rmtree(root)
    assert found == sorted(found)
    assert sorted(set(found)) == list(range(found[-1] + 1))
    assert found[-1] >= 2
