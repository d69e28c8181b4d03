"""SIGTERM and SIGINT at any moment of a command, also as the first process of a container."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import s3_objects
import vanishing
from click.testing import CliRunner, Result

from rule_runner import __main__ as program
from rule_runner import report
from rule_runner.cli import main
from rule_runner.engine import stop_requests

ROOT = Path(__file__).parents[3]
VERDICT = 10  # of --fail-on-issues
SIGNALS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return vanishing.write_trial(tmp_path / "trial")


def arguments(trial: Path, output: object) -> list[str]:
    options = ["--trial", str(trial), "--rule", "VanishingGradient", "--output", str(output)]
    return ["evaluate", *options, "--fail-on-issues"]


def evaluate(trial: Path, output: object) -> Result:
    return CliRunner().invoke(main, arguments(trial, output))


def during_report(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen while the report is written."""
    write = report.write_report

    def write_report(*given: Any) -> Path:
        act()
        return write(*given)

    monkeypatch.setattr(report, "write_report", write_report)


@SIGNALS
def test_a_signal_while_the_report_is_written_does_not_lose_it(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    before = signal.getsignal(number)
    during_report(monkeypatch, lambda: signal.raise_signal(number))
    done = evaluate(trial, tmp_path / "out")
    assert done.exit_code == code
    assert (tmp_path / "out" / "report.html").exists()
    assert done.stdout.startswith("VanishingGradient: IssuesFound at step 70")
    assert signal.getsignal(number) is before
    monkeypatch.undo()
    assert evaluate(trial, tmp_path / "out").exit_code == VERDICT


def test_a_signal_while_the_report_is_written_does_not_lose_its_upload(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aws_endpoint: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", aws_endpoint)
    s3_objects.make_bucket(aws_endpoint)
    during_report(monkeypatch, lambda: signal.raise_signal(signal.SIGTERM))
    assert evaluate(trial, "s3://bucket/out").exit_code == 143
    assert "report.html" in s3_objects.content(aws_endpoint, "out/")


def test_a_report_that_takes_too_long_after_a_signal_is_given_up(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(stop_requests, "SIGNAL_GRACE_S", 0.05)
    monkeypatch.setattr(os, "_exit", ended.append)

    def hang() -> None:
        signal.raise_signal(signal.SIGTERM)
        deadline = time.monotonic() + 60
        while not ended and time.monotonic() < deadline:
            pass

    during_report(monkeypatch, hang)
    evaluate(trial, tmp_path / "out")
    assert ended == [143]


@SIGNALS
def test_a_signal_before_anything_is_evaluated_ends_the_command(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    monkeypatch.setattr(
        "rule_runner.commands.evaluate.resolve", lambda _: signal.raise_signal(number)
    )
    monkeypatch.setattr(os, "_exit", sys.exit)
    assert evaluate(trial, tmp_path / "out").exit_code == code
    assert not (tmp_path / "out").exists()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Put the handlers of signals back."""
    before = {one: signal.getsignal(one) for one in stop_requests.HANDLED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@SIGNALS
@pytest.mark.usefixtures("handlers")
def test_signals_are_handled_before_the_packages_are_imported(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    ended: list[int] = []

    class Packages(ModuleType):
        @property
        def main(self) -> Callable[[], None]:
            signal.raise_signal(number)
            return lambda: sys.exit(7)

    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["rule-runner", "rules"])
    monkeypatch.setitem(sys.modules, "rule_runner.cli", Packages("rule_runner.cli"))
    with pytest.raises(SystemExit) as left:
        program.main()
    assert (ended, left.value.code) == ([code], 7)
    signal.raise_signal(number)  # while the interpreter ends: all is written
    assert ended == [code, 7]


@SIGNALS
def test_a_signal_that_the_entry_point_held_is_not_lost(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "rule_runner", "rules", "list"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])  # which the process inherits
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    process.send_signal(number)  # before any of it runs
    assert process.wait(60) == code


# -- as the first process ---------------------------------------------------------------------


def first_process(command: list[str]) -> "subprocess.Popen[str]":
    """Start a command as process 1 of a namespace."""
    tool = shutil.which("unshare")
    alone = [tool or "", "--pid", "--fork", "--kill-child", "true"]
    if tool is None or subprocess.run(alone, capture_output=True, check=False).returncode:
        pytest.skip("needs unshare and the right to make namespaces")
    return subprocess.Popen(
        [*alone[:-1], sys.executable, "-m", "rule_runner", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def child_of(process: "subprocess.Popen[str]") -> int:
    """Return the process that `unshare` has forked, once it handles SIGTERM."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    mask = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in children.read_text().split():
            status = Path(f"/proc/{pid}/status").read_text()
            caught = [one.split()[1] for one in status.splitlines() if "SigCgt" in one]
            if caught and int(caught[0], 16) & mask:
                return int(pid)
    msg = "SIGTERM is not handled."
    raise AssertionError(msg)


def check_stopped_at(trial: Path, output: Path, seconds: float) -> None:
    """Evaluate as process 1, send SIGTERM some time after it can hear, and check what it leaves."""
    process = first_process(arguments(trial, output))
    pid = child_of(process)
    time.sleep(seconds)  # noqa: TID251 - the moment is what the test is about
    sent_at = time.monotonic()
    with suppress(ProcessLookupError):  # it may have ended
        os.kill(pid, signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode in {143, VERDICT}, said
    assert "Traceback" not in said
    result = output / "results.json"
    ended = result.exists() and json.loads(result.read_text())["ended_at"] is not None
    assert ended or process.returncode == 143
    given_up = time.monotonic() - sent_at >= stop_requests.SIGNAL_GRACE_S
    assert not ended or (output / "report.html").exists() or given_up


def moments(count: int) -> Iterator[float]:
    generator = random.Random(15)
    yield 0.0
    yield from (generator.uniform(0, 1.5) for _ in range(count - 1))


@pytest.mark.parametrize(
    "count", [pytest.param(4, id="some"), pytest.param(100, id="many", marks=pytest.mark.nightly)]
)
def test_as_process_1_no_sigterm_is_lost(trial: Path, tmp_path: Path, count: int) -> None:
    for at, seconds in enumerate(moments(count)):
        check_stopped_at(trial, tmp_path / str(at), seconds)
