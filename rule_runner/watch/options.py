"""WatchOptions: how a controller works, besides its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rule_core.clock import Clock
from rule_runner.config.job_file.definition import JobDefinition
from rule_runner.index.commands import Commands
from rule_runner.index.database import WatchDatabase
from rule_runner.results.retention import Retention
from rule_runner.watch.config import WatchConfig


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between repeated work, which tests shorten.

    Attributes
    ----------
    look
        Looks at local roots; those in S3 are configured.
    refresh
        Looks at the results of running evaluations.
    growth
        Looks at the data of a trial, for its mark, and at acknowledgements.
    restart
        The first pause before a restart; each further one is twice as long.
    expire
        Looks for expired outputs.
    stop
        The time that evaluations have to stop.
    reconnect
        Attempts to reach an executor that does not answer.
    orphans
        The time that a cluster has to end the tasks of a controller that is gone; Ray's waits 30 s.
    """

    look: float = 0.1
    refresh: float = 5.0
    growth: float = 60.0
    restart: float = 15.0
    expire: float = 600.0
    stop: float = 30.0
    reconnect: float = 15.0
    orphans: float = 60.0


@dataclass(slots=True)
class WatchOptions:
    """How a controller works, besides its configuration.

    Attributes
    ----------
    jobs
        The job files, read, by their paths.
    once
        Whether to judge the existing trials and end.
    retention
        Which outputs to keep; None: all.
    commands
        What people ask for while it runs.
    """

    jobs: Mapping[str, JobDefinition] = field(default_factory=dict)
    once: bool = False
    retention: Retention | None = None
    intervals: Intervals = field(default_factory=Intervals)
    commands: Commands = field(default_factory=Commands)


class WatchContext(NamedTuple):
    """What the parts of a controller share."""

    config: WatchConfig
    database: WatchDatabase
    clock: Clock
    options: WatchOptions
