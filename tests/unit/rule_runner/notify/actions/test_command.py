"""CommandAction: what a command gets, and that none outlives its time."""

import json
import os
import select
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog
from clocks import PatientClock

from rule_core.rules.actions.base import ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_runner.notify.actions.command import OUTPUT_LIMIT, CommandAction

FIRED = ActionTrigger("R", "", {"rule": "R", "step": 7, "note": "\u20ac\n"})


def python(code: str, *arguments: object) -> CommandAction:
    return CommandAction((sys.executable, "-c", code, *map(str, arguments)))


NAME = Path(sys.executable).name


def run(action: CommandAction, seconds: float = 30.0) -> ActionOutcome:
    return action.carry_out(FIRED, Deadline(seconds, PatientClock()))


def test_the_finding_is_on_standard_input(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
    out = tmp_path / "given $HOME; x"  # no shell reads this
    assert run(python(code, out)) == ActionOutcome(
        ActionState.DONE, f"Command {NAME!r} ended with exit code 0."
    )
    text = out.read_text()
    assert (json.loads(text), text.count("\n")) == (FIRED.facts, 1)


def test_the_environment_is_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARK", "mine")
    code = "import os, sys; open(sys.argv[1], 'w').write(os.environ['MARK'])"
    assert run(python(code, tmp_path / "out")).state is ActionState.DONE
    assert (tmp_path / "out").read_text() == "mine"


def test_a_command_that_fails() -> None:
    assert run(python("raise SystemExit(3)")) == ActionOutcome(
        ActionState.FAILED, f"Command {NAME!r} ended with exit code 3."
    )


def test_a_command_that_does_not_exist() -> None:
    assert run(CommandAction(("/no/such/tell", "--token=secret"))) == ActionOutcome(
        ActionState.FAILED, "Command 'tell' could not be run: No such file or directory."
    )


def test_a_command_that_hangs_is_killed() -> None:
    assert run(python("import threading; threading.Event().wait()"), 0.5) == ActionOutcome(
        ActionState.FAILED, f"Command {NAME!r} took longer than 0.5 s and was killed."
    )


FORKS = """
import os, sys, threading
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"x")
    open(sys.argv[1], "w").write(str(os.getpid()))
    os.close(writing)
    threading.Event().wait()
os.close(writing)
while os.read(reading, 1):
    pass
if sys.argv[2] == "wait":
    os.wait()
"""


def ended(process: int) -> bool:
    """Return whether a process that was killed comes to its end within a minute."""
    try:
        fd = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 60)[0])
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("how", "seconds", "state"),
    [("leave", 30.0, ActionState.DONE), ("wait", 5.0, ActionState.FAILED)],
)
def test_what_a_command_starts_ends_with_it(
    tmp_path: Path, how: str, seconds: float, state: ActionState
) -> None:
    assert run(python(FORKS, tmp_path / "pid", how), seconds).state is state
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_command_that_writes_much_is_not_held_up_and_little_is_logged() -> None:
    code = "import sys; sys.stdout.write('x' * 5_000_000); sys.stderr.write('end')"
    with structlog.testing.capture_logs() as logs:
        assert run(python(code)).state is ActionState.DONE
    (line,) = [one for one in logs if one["event"] == "command_ended"]
    assert (line["log_level"], line["output"]) == ("debug", "x" * OUTPUT_LIMIT)


def test_a_command_that_reads_nothing_is_not_waited_for() -> None:
    facts: dict[str, Any] = {"note": "x" * 1_000_000}
    outcome = python("pass").carry_out(ActionTrigger("R", "", facts), Deadline(30))
    assert outcome.state is ActionState.DONE


def test_plan_shows_no_argument() -> None:
    argv = tuple(shlex.split("/opt/tell --token=secret"))
    assert CommandAction(argv).plan(FIRED) == "Command 'tell' would be run for rule 'R'."
