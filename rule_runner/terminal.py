"""Progress on a terminal, and sentences about what is waited for anywhere."""

import sys
from typing import Final

import structlog

from rule_runner.runner import Observer

_log: Final = structlog.get_logger()


class LogObserver(Observer):
    """Logs what is waited for."""

    def waiting(self, text: str, seconds: float) -> None:
        """Log it."""
        _log.warning("trial_awaited", reason=f"Waiting for {text}.", duration_s=round(seconds))

    def close(self) -> None:
        """Nothing to clear away."""


class ProgressObserver(LogObserver):
    """Shows steps judged, steps known and the rate on stderr."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - a terminal only
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._progress: Progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[steps]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("judging", total=None, steps="")
        self._progress.start()

    def progress(self, judged: int, known: int) -> None:
        """Show it."""
        task = self._progress.tasks[0]
        rate = f", {task.speed:.0f}/s" if task.speed else ""
        steps = f"{judged} of {known} steps{rate}"
        self._progress.update(
            self._task, completed=judged, total=known, steps=steps, description="judging"
        )

    def waiting(self, text: str, seconds: float) -> None:
        """Show it instead of what is being done."""
        from rich.markup import escape  # noqa: PLC0415 - a terminal only

        from rule_runner.show import printable  # noqa: PLC0415

        del seconds
        self._progress.update(self._task, description=escape(f"waiting for {printable(text)}"))

    def close(self) -> None:
        """Clear the line."""
        self._progress.stop()


def observer(*, quiet: bool) -> LogObserver:
    """Return what suits this process's stderr."""
    return ProgressObserver() if sys.stderr.isatty() and not quiet else LogObserver()
