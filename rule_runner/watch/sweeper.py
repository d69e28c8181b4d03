"""Sweeper: looks at trials for growth and at outputs for their expiry."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rule_core.storage.uri import is_s3
from rule_runner.errors import OutputError
from rule_runner.index.outputs import output_of, read_output
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import TrialInput, WatchState
from rule_runner.logs import get_logger
from rule_runner.results.retention import Retention, remove_run
from rule_runner.watch.growth import is_absent, is_of_traces, mark_of
from rule_runner.watch.options import WatchContext
from rule_runner.watch.pace import Pace
from rule_runner.watch.recorder import Recorder

_log: Final = get_logger(__name__)
_LOOKED_AT: Final = 10  # unfinished trials, at each look


class Sweeper:
    """Queues trials that have grown, and removes outputs that have expired."""

    def __init__(self, context: WatchContext, recorder: Recorder) -> None:
        config, self._database, self._clock, options = context
        self._template = config.output
        self._retention = options.retention
        self._recorder = recorder
        self._growth = Pace(self._clock, options.intervals.growth)
        self._expiry = Pace(self._clock, options.intervals.expire)
        self._unfinished: list[int] = []

    def look_for_growth(self) -> None:
        """Queue judged trials whose data have grown, and note what running trials look like."""
        if self._growth.is_due and not self._unfinished:
            with self._growth.measured():
                self._unfinished = self._database.unfinished()
                for trial in self._database.oldest(WatchState.RUNNING):
                    if not is_of_traces(trial):  # it is judged anew after the next change
                        self._database.update(trial.id, mark=mark_of(trial.path, trial.mark))
        batch, self._unfinished = self._unfinished[:_LOOKED_AT], self._unfinished[_LOOKED_AT:]
        self.queue_grown(batch)

    def queue_grown(self, numbers: Iterable[int]) -> None:
        """Queue the judged trials that have new data, or whose output was removed by hand."""
        for trial in filter(None, map(self._database.trial, numbers)):
            if trial.state is not WatchState.JUDGED or is_absent(trial.path):
                continue
            mark = mark_of(trial.path, trial.mark)
            if mark != trial.mark or not (is_s3(trial.output) or Path(trial.output).exists()):
                mark = trial.mark if is_of_traces(trial) else mark
                self._recorder.change(trial, TrialInput.GREW, mark=mark)

    def remove_expired(self) -> Iterator[TrialRecord]:
        """Remove outputs as configured; yield the trials that are gone, which are forgotten.

        Only a folder that is the output of the trial whose results it holds is touched.
        """
        if self._retention is None or not self._expiry.is_due:
            return
        with self._expiry.measured():
            for trial in self._expired(self._retention):
                if not (self._is_own_output(trial) and remove_run(Path(trial.output))):
                    continue
                self._database.update(trial.id, removed=True)
                _log.info("output_removed", trial=trial.path, output=trial.output)
                if is_absent(trial.path):
                    self._database.remove(trial.id)
                    yield trial

    def _expired(self, retention: Retention) -> list[TrialRecord]:
        """Return the trials whose outputs are not to be kept."""
        if retention.runs is not None:
            return self._database.beyond_newest(retention.runs)
        return self._database.expired(self._clock.time() - (retention.seconds or 0))

    def _is_own_output(self, trial: TrialRecord) -> bool:
        """Return whether an output folder is where this trial's results belong, and holds them."""
        if trial.output != output_of(trial.path, self._template) or Path(trial.output).is_symlink():
            return False
        try:
            return read_output(trial.output).trial == trial.path
        except OutputError:
            return False
