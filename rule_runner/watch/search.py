"""RootSearch: looks for new trials below the roots, each at its own pace."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rule_core.failures import OnError
from rule_runner.errors import ClientError
from rule_runner.escape import is_text
from rule_runner.index.database import NewTrial
from rule_runner.logs import get_logger
from rule_runner.watch.discovery import WatchRoot, new_trials
from rule_runner.watch.pace import Pace

_log: Final = get_logger(__name__)
BATCH: Final = 200  # trials that are added at once


@dataclass(slots=True)
class _RootState:
    """What is known of a root.

    Attributes
    ----------
    problem
        Why it cannot be searched, in a sentence; "" if it can.
    is_searched
        Whether the last search found nothing new.
    is_expected
        Whether something new is known to be there.
    """

    root: WatchRoot
    pace: Pace
    problem: str = ""
    is_searched: bool = False
    is_expected: bool = False


class RootSearch:
    """Looks for new trials below some roots.

    Parameters
    ----------
    roots
        Where to look, each with how often.
    template
        The template of the outputs, which are no trials.
    add
        Takes new trials, a batch at a time.

    Attributes
    ----------
    known
        The paths of the trials that are not looked for.
    """

    def __init__(
        self,
        roots: Sequence[tuple[WatchRoot, Pace]],
        template: str,
        add: Callable[[Sequence[NewTrial]], None],
    ) -> None:
        self._watched = [_RootState(root, pace) for root, pace in roots]
        self._template = template
        self._add_texts = add
        self.known: set[str] = set()

    @property
    def problems(self) -> list[str]:
        """What is wrong with the roots, in sentences."""
        return [watched.problem for watched in self._watched if watched.problem]

    @property
    def is_done(self) -> bool:
        """Whether the last search of each root found nothing new."""
        return all(watched.is_searched for watched in self._watched)

    def look(self, is_stopping: Callable[[], bool]) -> None:
        """Look for new trials below the roots that are due."""
        for watched in self._watched:
            if (watched.is_expected or watched.pace.is_due) and not is_stopping():
                watched.is_expected = False  # before the look, which may miss what arrives now
                with watched.pace.measured():
                    trials = self._look_below(watched)
                with OnError(setattr, watched, "is_expected", True):
                    self._add(trials)  # outside of the measured time: it may wait for the index
                watched.is_searched = not trials
                if trials:  # recognizing them, with imports the first time, took most of the time
                    watched.pace.shorten()

    def expect(self, addresses: Iterable[str]) -> None:
        """Look soon below the roots of new objects that are in no known trial.

        It may be called in another thread.
        """
        for address in addresses:
            if not any(folder in self.known for folder in _folders_of(address)):
                for watched in self._watched:
                    base = watched.root.base.rstrip("/")
                    watched.is_expected |= address.startswith(f"{base}/")

    def _look_below(self, watched: _RootState) -> list[NewTrial]:
        """Return the new trials below a root; note why if it cannot be searched."""
        trials: list[NewTrial] = []
        try:
            trials += new_trials(watched.root, self.known, self._template)
        except ClientError as err:
            if not watched.problem:
                _log.warning("root_unavailable", root=watched.root.text, reason=str(err))
            watched.problem = str(err)
        else:
            if watched.problem:
                _log.info("root_available", root=watched.root.text)
            watched.problem = ""
        return trials

    def _add(self, trials: Sequence[NewTrial]) -> None:
        """Hand over trials, a batch at a time, except those whose paths are no text."""
        texts = [trial for trial in trials if is_text(trial.path)]
        for begin in range(0, len(texts), BATCH):
            self._add_texts(texts[begin : begin + BATCH])
        for trial in trials:
            if not is_text(trial.path):
                _log.warning("trial_left_out", trial=trial.path, reason="Its path is not UTF-8.")
        self.known.update(trial.path for trial in trials)


def _folders_of(address: str) -> Iterator[str]:
    """Yield the folders that an object is in, the innermost first."""
    folder = address.rpartition("/")[0]
    while folder and not folder.endswith("/"):
        yield folder
        folder = folder.rpartition("/")[0]
