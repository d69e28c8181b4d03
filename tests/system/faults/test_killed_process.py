"""An evaluation that is killed for real: what it had written is whole, and the next one goes on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import rawtrial
from evaluating import END, Script, WoundClock, configured, json_lines
from memory_store import MemoryStore

from rule_core.storage.base import ByteRange, ObjectNotFoundError, StorageUnavailableError
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_source
from smdebug.rules import Rule

ROOT = Path(__file__).parents[3]
# At the step in the file's name, the rule kills the process that it runs in.
RULE = """
import os, signal
from pathlib import Path
from smdebug.rules import Rule

class Kills(Rule):
    def __init__(self, base_trial, at):
        super().__init__(base_trial)
        self.at = Path(at)

    def invoke_at_step(self, step):
        value = float(self.base_trial.tensor("loss").value(step)[0])
        if self.at.exists() and step == int(self.at.read_text()):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.found(step, tensor="loss", measured=value, limit=1.0) if value > 1 else False
"""


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def losses(count: int, *, ended: bool = True) -> dict[str, bytes]:
    steps = {step: {"loss": np.float32([step])} for step in range(count)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


def evaluate(config: EvaluationConfig) -> Any:
    clock = WoundClock()
    found = Runner(config, clock=clock, waiter=Script(clock)).run()
    (result,) = found.result.rules
    return result


def test_kill_9_and_restart(tmp_path: Path) -> None:
    trial = rawtrial.write(tmp_path / "trial", losses(6))
    (tmp_path / "kills.py").write_text(RULE)
    at = tmp_path / "at"
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", str(trial)]
    command += ["--source", str(tmp_path / "kills.py"), "-p", f"at={at}", "--keep-going"]
    command += ["--output", str(tmp_path / "out")]
    at.write_text("4")
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    findings = tmp_path / "out" / "findings.jsonl"
    assert [one["step"] for one in json_lines(findings)] == [2, 3]
    with findings.open("a") as torn:
        torn.write('{"id": "cut off')
    at.unlink()
    job = RuleJobConfig("Kills", load_source(tmp_path / "kills.py"), {"at": str(at)})
    result = evaluate(configured(tmp_path / "out", [job], str(trial), keep_going=True))
    assert (result.outcome, result.step, result.coverage.judged) == ("IssuesFound", 2, 6)
    assert [one["step"] for one in json_lines(findings)] == [2, 3, 4, 5]
    events = [one["detail"] for one in json_lines(tmp_path / "out" / "events.jsonl")]
    assert [
        (one["TrainingJobStatus"], one["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"])
        for one in events
    ] == [("InProgress", "InProgress"), ("Completed", "InProgress"), ("Completed", "IssuesFound")]
    assert [one["EventSequence"] for one in events] == [1, 2, 3]


# -- stores that fail ------------------------------------------------------------------------


class Never(Rule):
    """Judges, and never finds anything."""

    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


class FaultyStore(MemoryStore):
    """Fails at some calls, one after another, counted over all verbs."""

    def __init__(
        self, files: dict[str, bytes], fails: Callable[[str, str], bool], err: Exception
    ) -> None:
        super().__init__(files)
        self.fails, self.err = fails, err

    def list_keys(self, prefix: str, *, start_after: str = "") -> Any:
        if self.fails("list", prefix):
            raise self.err
        return super().list_keys(prefix, start_after=start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        if self.fails("read", key):
            raise self.err
        return super().read(key, byte_range)


def over(store: MemoryStore, output: Path, script: Script | None = None, **more: Any) -> Any:
    found = evaluating.runner(configured(output, [Never], **more), store, script).run()
    (result,) = found.result.rules
    return result


def first(count: int, start: str) -> Callable[[str, str], bool]:
    """Return what fails the first `count` reads of keys that begin so."""
    left = [count]

    def fails(verb: str, key: str) -> bool:
        hit = verb == "read" and key.startswith(start) and left[0] > 0
        left[0] -= hit
        return hit

    return fails


@pytest.mark.parametrize("prefix", ["index/", "collections/"])
@pytest.mark.parametrize(
    "err", [StorageUnavailableError("k", "I/O error"), ObjectNotFoundError("k")], ids=repr
)
def test_read_that_fails_for_a_while_costs_nothing(
    tmp_path: Path, prefix: str, err: Exception
) -> None:
    files = losses(4, ended=False)
    store = FaultyStore(files, first(3, prefix), err)
    script = Script(WoundClock(), [int] * 4 + [lambda: files.update({END: b""})])
    result = over(store, tmp_path, script)
    assert (result.outcome, result.coverage.judged, result.notes) == ("NoIssuesFound", 4, [])


def test_unreadable_event_file_costs_its_step_and_is_noted_once(tmp_path: Path) -> None:
    key = rawtrial.event_key(2)
    store = FaultyStore(
        losses(4), lambda _, one: one == key, StorageUnavailableError(key, "Permission denied")
    )
    result = over(store, tmp_path)
    assert (result.outcome, result.coverage.judged) == ("NoIssuesFound", 3)
    assert result.coverage.skipped == {"TensorDamaged": 1}
    assert result.notes == [
        f"Step 2 of worker 'worker_0' is unreadable. Cannot read '{key}': Permission denied."
    ]


def test_index_file_that_stays_bad_costs_its_step_and_is_noted(tmp_path: Path) -> None:
    files = losses(4)
    key = rawtrial.index_key(2)
    files[key] = files[key][:-5]
    result = over(MemoryStore(files), tmp_path)
    assert (result.outcome, result.coverage.judged, result.coverage.known) == (
        "NoIssuesFound",
        3,
        4,
    )
    assert result.coverage.skipped == {"unreadable": 1}
    (note,) = result.notes
    assert note.startswith(f"Step 2 of worker 'worker_0' is unreadable. File '{key}' is cut off: ")


def test_index_file_that_is_mended_is_judged(tmp_path: Path) -> None:
    files = losses(4, ended=False)
    key = rawtrial.index_key(3)
    whole, files[key] = files[key], b""
    steps: list[Callable[[], object]] = [int, lambda: files.update({key: whole}), int]
    script = Script(WoundClock(), [*steps, lambda: files.update({END: b""})])
    result = over(MemoryStore(files), tmp_path, script)
    assert (result.coverage.judged, result.notes) == (4, [])


class TornStore(MemoryStore):
    """Hands out the first bytes of event files only."""

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        data = super().read(key, byte_range)
        return data[:7] if key.startswith("events/") else data


def test_cut_event_files_are_not_judged(tmp_path: Path) -> None:
    result = over(TornStore(losses(2)), tmp_path)
    assert (result.outcome, result.coverage.skipped) == ("NotEvaluated", {"TensorDamaged": 2})
    assert len(result.notes) == 2


def test_listing_that_fails_is_the_verdict_and_what_was_found_is_kept(tmp_path: Path) -> None:
    files = losses(3, ended=False)
    store = FaultyStore(files, lambda *_: False, StorageUnavailableError("index/", "Stale handle"))

    def break_it() -> None:
        store.fails = lambda verb, _: verb == "list"

    result = over(store, tmp_path, Script(WoundClock(), [break_it]))
    assert (result.status, result.coverage.judged) == ("Error", 3)
    assert result.status_details == "ClientError: Cannot read 'index/': Stale handle."


def test_folder_without_permission(tmp_path: Path) -> None:
    trial = rawtrial.write(tmp_path / "trial", losses(2))
    if os.geteuid() == 0:
        pytest.skip("Only an ordinary user is refused what permissions forbid.")
    (trial / "index").chmod(0)
    try:
        result = evaluate(configured(tmp_path / "out", [Never], str(trial)))
    finally:
        (trial / "index").chmod(0o755)
    assert result.status_details == "ClientError: Cannot read 'index/': Permission denied."
