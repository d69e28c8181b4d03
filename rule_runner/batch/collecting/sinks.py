"""CollectedFile: a file about many trials, which takes them one after the other."""

from abc import ABC, abstractmethod

from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.streams import Spool


class CollectedFile(ABC):
    """A report that is made of trials one after the other, without keeping them in memory.

    Parameters
    ----------
    place
        Where it is written: a path or an ``s3://`` address.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.spool = Spool()

    @abstractmethod
    def add(self, trial: CollectedTrial) -> None:
        """Add a trial."""

    @abstractmethod
    def write(self, exit_code: int) -> None:
        """Write the file; `exit_code` is the exit code of the command.

        Raises
        ------
        OutputError
            If it cannot be written.
        """

    def close(self) -> None:
        """Free the space on disk that was used meanwhile."""
        self.spool.close()
