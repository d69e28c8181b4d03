"""open_evaluations: where the evaluations of a controller run."""

from pathlib import Path

from rule_core.clock import SystemClock
from rule_core.storage.uri import is_s3
from rule_runner.executors.opening import opener
from rule_runner.index.outputs import base_of
from rule_runner.watch.config import LOCAL, WatchConfig
from rule_runner.watch.evaluations.cluster import ClusterEvaluations
from rule_runner.watch.evaluations.connection import ClusterConnection
from rule_runner.watch.evaluations.local import LocalEvaluations
from rule_runner.watch.evaluations.protocol import Evaluations
from rule_runner.watch.options import Intervals


def open_evaluations(config: WatchConfig, folder: Path, intervals: Intervals) -> Evaluations:
    """Return the evaluations of a configuration.

    Parameters
    ----------
    folder
        For leases and logs of local ones.

    Raises
    ------
    OutputError
        If the folder, or that of the outputs, cannot be used.
    UsageError
        If the library of the executor is not installed.
    """
    if config.executor == LOCAL:
        return LocalEvaluations(folder)
    clock = SystemClock()
    shared = None if is_s3(config.output) else Path(base_of(config.output))
    # The controller counts the restarts.
    open_executor = opener(config.executor, attempts=1)
    connection = ClusterConnection(
        config.executor, open_executor, shared, clock, intervals.reconnect
    )
    return ClusterEvaluations(connection, clock, intervals.orphans)
