"""Service: what the handlers of requests share."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rule_core.clock import Clock
from rule_core.failures import OnError
from rule_runner.errors import OutputError
from rule_runner.index.commands import Commands
from rule_runner.index.reader import IndexReader
from rule_runner.service.changes import Changes
from rule_runner.service.curves.series import SeriesCache
from rule_runner.service.settings import ServiceSettings


@dataclass(frozen=True, kw_only=True)
class Service:
    """What the handlers of requests share.

    Attributes
    ----------
    database
        The index that a controller writes.
    series, profiles
        The curves of trials over steps, and those of profiles over time.
    commands
        The commands for the controller of this process; None if another process has it.
    requests
        The number of requests by route and status.
    """

    settings: ServiceSettings
    database: Path
    clock: Clock
    series: SeriesCache = field(default_factory=SeriesCache)
    profiles: SeriesCache = field(default_factory=lambda: SeriesCache(profiles=True))
    commands: Commands | None = None
    requests: "Counter[tuple[str, int]]" = field(default_factory=Counter)

    @cached_property
    def changes(self) -> Changes:
        """What tells event streams of changes."""
        return Changes(self.index)

    def index(self) -> IndexReader:
        """Open the index, for one request: it may be deleted and made again at any time.

        Raises
        ------
        OutputError
            If it cannot be read now.
        """
        if not self.database.exists():
            raise OutputError(
                f"Database {str(self.database)!r} does not exist. A controller makes it: start "
                "'rule-runner watch' or 'rule-runner serve'."
            )
        reader = IndexReader(self.database)
        with OnError(reader.close):
            reader.check_version()
        return reader
