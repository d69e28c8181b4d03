"""Progress on a terminal, and words about what is waited for."""

import io
import re
import sys

import pytest
import structlog
from structlog.testing import capture_logs

from rule_runner.logs import configure
from rule_runner.report.progress import LogObserver, ProgressObserver, observer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_waited_for_is_logged() -> None:
    watching = LogObserver()
    with capture_logs() as logs:
        watching.progress(1, 2)
        watching.waiting("step 3", 10.2)
        watching.close()
    assert logs == [
        {
            "event": "trial_awaited",
            "log_level": "warning",
            "reason": "Waiting for step 3.",
            "duration_s": 10,
        }
    ]


def test_the_notice_is_printed_once_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        watching = observer(quiet=quiet, notice="The trial \x1b may still grow.")
        watching.progress(1, 1)
        watching.following()
        watching.following()
        printed = "" if quiet else "The trial \\x1b may still grow.\n"
        assert capsys.readouterr().err == printed


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    return Terminal()


def test_progress_shows_steps_and_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    watching = observer(quiet=False)
    assert isinstance(watching, ProgressObserver)
    watching.progress(3, 17)
    watching._progress.refresh()
    assert "3 of 17 steps" in terminal.getvalue()
    watching.waiting("step [red]4\x1b]0;x\x07", 10)
    watching._progress.refresh()
    assert "waiting for step [red]4\\x1b]0;x\\x07" in terminal.getvalue()
    watching.progress(4, 17)
    watching._progress.refresh()
    watching.close()
    assert "\x1b]0;" not in terminal.getvalue()
    assert "4 of 17 steps" in terminal.getvalue()


def test_the_notice_stands_above_the_progress(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    watching = observer(quiet=False, notice="The trial may still grow.")
    watching.following()
    watching.following()
    watching.close()
    assert terminal.getvalue().count("The trial may still grow.\n") == 1


def test_log_stands_above_the_progress_and_not_in_it(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    configure(0)
    watching = observer(quiet=False)
    watching.progress(3, 17)
    watching._progress.refresh()
    structlog.get_logger().warning("step_skipped")
    watching.close()
    # Rich clears its line first, and shows it again below.
    before, line, after = re.split("([^\n\r]*step_skipped[^\n]*\n)", terminal.getvalue())
    assert "steps" not in re.sub("\x1b\\[[0-9;]*[mK]", "", line)
    assert before.endswith("\r")
    assert line.startswith("\x1b[2K")
    assert "3 of 17 steps" in after


def test_progress_begins_with_its_title(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    watching = ProgressObserver("2 of 9, a[red]\x1b: ")
    watching.progress(3, 17)
    watching._progress.refresh()
    watching.waiting("step 4", 10)
    watching._progress.refresh()
    watching.close()
    assert "2 of 9, a[red]\\x1b: judging" in terminal.getvalue()
    assert "2 of 9, a[red]\\x1b: waiting for step 4" in terminal.getvalue()


@pytest.mark.parametrize("quiet", [True, False])
def test_no_progress_where_nobody_watches(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if quiet else io.StringIO())
    assert type(observer(quiet=quiet)) is LogObserver
