"""ForwardedSignals: passes signals to a running script."""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from rule_runner.commands.train.script import TrainingScript

FORWARDED: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
    *(signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
)
_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class ForwardedSignals:
    """Passes the signals of this process to a script while it runs.

    Parameters
    ----------
    on_end
        Called if this process is asked to end after the script has.

    Attributes
    ----------
    script
        The script, once it runs.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.script: TrainingScript | None = None
        self._on_end = on_end
        self._asked_to_end = False
        loop = asyncio.get_running_loop()
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                loop.add_signal_handler(number, self._forward, number)

    def _forward(self, number: int) -> None:
        if self.script is not None and self.script.runs:
            self._asked_to_end = self._asked_to_end or number == signal.SIGTERM
            self.script.send(number)
        elif number in _ENDING:
            self._on_end()

    async def wait(self, script: TrainingScript, grace: float) -> None:
        """Wait until a script has ended; after SIGTERM, for its other processes too.

        Parameters
        ----------
        grace
            Seconds in which these may end.
        """
        await script.wait()
        if self._asked_to_end:
            await script.clear(grace)
