"""Progress on a terminal; log lines about waiting elsewhere."""

import sys
from typing import Final

from rule_runner.engine.observer import Observer
from rule_runner.escape import print_lines, printable
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)


class LogObserver(Observer):
    """Logs what the evaluation waits for.

    Parameters
    ----------
    notice
        What to print once all is judged that was saved, if the evaluation goes on.
    """

    def __init__(self, notice: str = "") -> None:
        self._notice = notice

    def following(self) -> None:
        """Print the notice, once."""
        notice, self._notice = self._notice, ""
        print_lines(filter(None, [notice]), sys.stderr)

    def waiting(self, text: str, seconds: float) -> None:
        """Log the wait."""
        _log.warning("trial_awaited", reason=f"Waiting for {text}.", duration_s=round(seconds))

    def close(self) -> None:
        """Do nothing."""


class ProgressObserver(LogObserver):
    """Shows steps judged, steps known and the rate on stderr.

    Parameters
    ----------
    title
        Text before the progress.
    notice
        As for `LogObserver`.
    """

    def __init__(self, title: str = "", notice: str = "") -> None:
        super().__init__(notice)
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress: Progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[steps]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._title = escape(printable(title))
        self._judging = f"{self._title}judging"
        self._task = self._progress.add_task(self._judging, total=None, steps="")
        self._progress.start()

    def progress(self, judged: int, known: int) -> None:
        """Show the progress."""
        task = self._progress.tasks[0]
        rate = f", {task.speed:.0f}/s" if task.speed else ""
        steps = f"{judged} of {known} steps{rate}"
        self._progress.update(
            self._task, completed=judged, total=known, steps=steps, description=self._judging
        )

    def waiting(self, text: str, seconds: float) -> None:
        """Show the wait instead of the progress."""
        from rich.markup import escape

        del seconds
        description = escape(f"waiting for {printable(text)}")
        self._progress.update(self._task, description=self._title + description)

    def close(self) -> None:
        """Clear the line."""
        self._progress.stop()


def observer(*, quiet: bool, title: str = "", notice: str = "") -> LogObserver:
    """Return an observer for stderr; `title` and `notice` as for `ProgressObserver`."""
    if quiet:
        return LogObserver()
    return ProgressObserver(title, notice) if sys.stderr.isatty() else LogObserver(notice)
