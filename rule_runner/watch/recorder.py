"""Recorder: keeps the index true to what becomes of trials, and to what their outputs hold."""

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from rule_core.storage.uri import is_s3
from rule_runner.errors import OutputError
from rule_runner.index.database import NewTrial
from rule_runner.index.outputs import (
    NO_FILE,
    FileMark,
    SavedOutput,
    file_mark,
    output_of,
    read_output,
    saved_outputs,
)
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import TrialInput, WatchState, advance_trial, trial_outcome
from rule_runner.logs import get_logger
from rule_runner.results.file_names import ACKNOWLEDGEMENTS, RESULTS
from rule_runner.results.status import Outcome
from rule_runner.watch.growth import is_of_traces
from rule_runner.watch.options import WatchContext
from rule_runner.watch.pace import PROMPT_S, Pace

_log: Final = get_logger(__name__)
_DAY_S: Final = 86400


class Recorder:
    """Records states and results of trials in the index."""

    def __init__(self, context: WatchContext) -> None:
        self._config, self._database, self._clock, options = context
        self._running = Pace(self._clock, options.intervals.refresh, PROMPT_S)
        self._judged = Pace(self._clock, options.intervals.growth)
        self._result_marks: dict[int, object] = {}  # of running trials
        self._acknowledgement_marks: dict[int, FileMark] = {}  # of judged trials
        self._today = 0  # the last day on which acknowledgements were looked for

    def change(self, trial: TrialRecord, trial_input: TrialInput, **fields: Any) -> TrialRecord:
        """Record and log the next state of a trial; return its new record."""
        state = advance_trial(trial.state, trial_input)
        fields |= {"state": state, "changed_at": self._clock.time()}
        self._database.update(trial.id, **fields)
        details = {name: fields[name] for name in ("outcome", "problem") if fields.get(name)}
        if fields.get("restarts"):
            details["restart"] = fields["restarts"]
        self._database.when_committed(
            partial(_log.info, f"trial_{state}", trial=trial.path, **details)
        )
        return replace(trial, **fields)

    def add_saved(self) -> None:
        """Add the trials whose results are in local output folders to an empty index."""
        self._result_marks = {}
        for output in saved_outputs(self._config.output):
            try:
                saved = read_output(output)
            except OutputError as err:
                _log.warning("result_unreadable", output=output, reason=str(err))
                continue
            if output_of(saved.trial, self._config.output) == output:
                trial = NewTrial(saved.trial, "", True, False, output)
                self._database.add([trial], self._clock.time())

    def fail(self, trial: TrialRecord, problem: str, outcome: Outcome = Outcome.ERROR) -> None:
        """Record that a queued trial cannot, or must not, be judged."""
        self.change(
            self.change(trial, TrialInput.STARTED),
            TrialInput.ENDED,
            outcome=outcome,
            problem=problem,
            final=outcome is Outcome.STOPPED,
            ended_at=self._clock.time(),
        )

    def judge(
        self,
        trial: TrialRecord,
        saved: SavedOutput,
        problem: str = "",
        decided: Outcome | None = None,
    ) -> None:
        """Record the verdicts of a trial; an outcome that somebody decided is final."""
        assignment = self._config.assignment(trial.path)
        lenient = assignment is not None and assignment.is_fitting
        outcome = trial_outcome((rule.outcome for rule in saved.rules), lenient=lenient)
        with self._database.transaction():
            self._database.set_rules(trial.id, saved.rules)
            self.change(
                trial,
                TrialInput.ENDED,
                outcome=decided or (outcome if saved.ended else Outcome.ERROR),
                problem=problem,
                final=(saved.final and not is_of_traces(trial)) or decided is not None,
                restarts=0,
                ended_at=saved.end_time or self._clock.time(),
                undelivered=saved.undelivered,
            )

    def refresh_running(self) -> None:
        """Record the verdicts that running evaluations have reached so far, if they are new."""
        if not self._running.is_due:
            return
        with self._running.measured():
            marks: dict[int, object] = {}
            for trial in self._database.oldest(WatchState.RUNNING):
                if is_s3(trial.output):
                    continue
                marks[trial.id] = [
                    file_mark(trial.output, name) for name in (ACKNOWLEDGEMENTS, RESULTS)
                ]
                changed = marks[trial.id] != self._result_marks.get(trial.id)
                if changed and not self.refresh(trial):
                    del marks[trial.id]  # the next look reads them
            self._result_marks = marks

    def refresh_judged(self) -> None:
        """Record acknowledgements of judged trials, and their withdrawal.

        Events that were sent later, as by ``events replay``, are recorded with them.
        """
        if not self._judged.is_due:
            return
        with self._judged.measured():
            marks = dict.fromkeys(self._database.acknowledged(), NO_FILE) | {
                trial.id: mark
                for trial in self._database.oldest(WatchState.JUDGED)
                if not trial.removed
                and (mark := file_mark(trial.output, ACKNOWLEDGEMENTS)) != NO_FILE
            }
            before, today = self._acknowledgement_marks, int(self._clock.time() // _DAY_S)
            for number in {**before, **marks}:
                changed = today != self._today or marks.get(number) != before.get(number)
                if changed and not self._refresh(number):
                    marks.pop(number, None)  # the next look reads them
            self._acknowledgement_marks, self._today = marks, today
            for number in self._database.undelivered():
                self._refresh(number)

    def _refresh(self, number: int) -> bool:
        """Record what the output of a trial holds, unless it was removed; see `refresh`."""
        trial = self._database.trial(number)
        return trial is None or trial.removed or self.refresh(trial)

    def refresh(self, trial: TrialRecord) -> bool:
        """Record the verdicts and acknowledgements of a trial as its output has them now.

        Return False if they cannot be read.
        """
        try:
            saved = read_output(trial.output)
        except OutputError:
            return False
        if saved.undelivered != trial.undelivered:
            self._database.update(trial.id, undelivered=saved.undelivered)
        before = {rule.name: rule for rule in self._database.rules_of(trial.id)}
        if {rule.name: rule for rule in saved.rules} == before:
            return True
        with self._database.transaction():
            self._database.set_rules(trial.id, saved.rules)
        issues = {(r.name, r.step) for r in before.values() if r.outcome == Outcome.ISSUES_FOUND}
        for rule in saved.rules:
            if rule.outcome == Outcome.ISSUES_FOUND and (rule.name, rule.step) not in issues:
                _log.info("issues_found", trial=trial.path, rule=rule.name, step=rule.step)
        return True
