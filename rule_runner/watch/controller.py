"""Controller: finds trials, starts their evaluations, and records what becomes of them."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rule_core.clock import Clock, pause_after
from rule_core.storage.uri import is_s3
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_TEMPORARY,
    EXIT_USAGE,
    OutputError,
    RuleRunnerError,
    TemporaryError,
)
from rule_runner.index.commands import TrialAction
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.outputs import (
    SavedOutput,
    acknowledgements_mark,
    is_finished,
    lack_of_space,
    needs_nothing,
    output_of,
    read_output,
    results_mark,
    saved_outputs,
    trial_outcome_of,
)
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import TrialInput, WatchState, advance_trial, after_death
from rule_runner.logs import get_logger
from rule_runner.results.status import Outcome
from rule_runner.steps.watcher import Waiter
from rule_runner.watch.config import Assignment, WatchConfig
from rule_runner.watch.discovery import WatchRoot
from rule_runner.watch.evaluations import EndedEvaluation, Evaluations
from rule_runner.watch.evaluations.requests import request_of
from rule_runner.watch.growth import has_new_traces, is_absent, is_of_traces, mark_of
from rule_runner.watch.options import WatchOptions
from rule_runner.watch.pace import PROMPT_S, Pace
from rule_runner.watch.retention import expire
from rule_runner.watch.search import RootSearch
from rule_runner.watch.turns import Turns

_log: Final = get_logger(__name__)
_BATCH: Final = 200  # trials that are sorted at once
_DAY_S: Final = 86400
_LOOKED_AT: Final = 10  # unfinished trials, at each tick
# Exit codes that the same request would have again.
_HOPELESS: Final = frozenset({EXIT_CLIENT, EXIT_USAGE})
_CANCELLED: Final = "Somebody has cancelled its evaluation."
_GAVE_UP: Final = "Its evaluation ended {times} times without a verdict{why}."


class Controller:
    """Judges the trials below some roots, until it is stopped.

    Parameters
    ----------
    config
        What to judge, and how.
    roots
        Where to look.
    open_database
        Opens the index; called again if its file is deleted.
    waiter
        Wakes the controller when trials may have arrived.

    Attributes
    ----------
    database
        The index.
    problems
        What is wrong with the roots and the executor, in sentences.
    """

    def __init__(
        self,
        config: WatchConfig,
        roots: Sequence[WatchRoot],
        open_database: Callable[[], WatchDatabase],
        evaluations: Evaluations,
        clock: Clock,
        waiter: Waiter,
        options: WatchOptions,
    ) -> None:
        self._config = config
        self._open_database = open_database
        self._evaluations = evaluations
        self._clock = clock
        self._waiter = waiter
        self._options = options
        intervals = options.intervals

        def is_rare(root: WatchRoot) -> bool:
            return not (root.is_local or options.once)

        paces = [Pace(clock, config.look_s if is_rare(root) else intervals.look) for root in roots]
        self._search = RootSearch([*zip(roots, paces, strict=True)], config.output, self._add)
        self._refresh = Pace(clock, intervals.refresh, PROMPT_S)
        self._growth = Pace(clock, intervals.growth)
        self._expire = Pace(clock, intervals.expire)
        self._said = Pace(clock, intervals.growth)
        self._turns = Turns(clock, evaluations, config.quiet_s, once=options.once)
        self._marks: dict[int, tuple[int, int]] = {}
        self._result_marks: dict[int, object] = {}  # of running trials
        self._today = 0  # the last day on which they were looked for
        self._unfinished: list[int] = []
        self._anew: set[int] = set()  # trials whose results are to be replaced
        self._cancelled: set[int] = set()  # trials whose evaluations are stopping
        self._stopping = False
        self.database = open_database()
        self._search.known = self.database.paths()

    @property
    def problems(self) -> list[str]:
        """Return the problems of the roots and the executor, as sentences."""
        return [*self._search.problems, *filter(None, [self._evaluations.problem])]

    def stop(self) -> None:
        """Start no more evaluations, and stop those that run; safe in a signal handler."""
        self._stopping = True

    def expect(self, addresses: Sequence[str]) -> None:
        """Look soon for trials with these new objects; may be called in another thread."""
        self._search.expect(addresses)

    def close(self) -> None:
        """Close the index."""
        self.database.close()

    def run(self) -> None:
        """Judge trials until `stop`, or until all are judged if there is no more to wait for.

        Raises
        ------
        OutputError
            If the index cannot be used at the start; with `once`, at any time.
        TemporaryError
            With `once`, if the executor cannot be used.
        """
        self.resume()
        while not self._stopping:
            self.tick()
            if self._options.once and self._is_done():
                return
            self._waiter.wait(1.0)
        self._stop_evaluations()

    def resume(self) -> None:
        """Take over what an earlier controller left."""
        self.database.forget_pauses()
        for trial in self.database.oldest(WatchState.LOST):
            self._settle_lost(trial, "")
        for trial in self.database.oldest(WatchState.RUNNING):
            ended = self._evaluations.adopt(trial.output)
            if ended is None:
                _log.info("evaluation_adopted", trial=trial.path)
            else:
                self._finish(trial, ended)
        for trial in self.database.oldest(WatchState.IGNORED):
            if self._config.assignment(trial.path) is not None:
                self._change(trial, TrialInput.RULES_CHOSEN)
        if self._options.once:
            for number in self.database.unfinished():
                self._queue_if_grown(number)

    def rebuild(self) -> None:
        """Add the trials whose results are in local output folders to an empty index."""
        for output in saved_outputs(self._config.output):
            try:
                saved = read_output(output)
            except OutputError as err:
                _log.warning("result_unreadable", output=output, reason=str(err))
                continue
            if output_of(saved.trial, self._config.output) == output:
                trial = NewTrial(saved.trial, "", True, False, output)
                self.database.add([trial], self._clock.time())
        self._sort_discovered()
        for output in self._evaluations.outputs:
            running = self.database.trial_with(output)
            if running is not None and running.state is WatchState.QUEUED:
                self._change(running, TrialInput.STARTED, started_at=self._clock.time())

    def tick(self) -> None:
        """Perform the due work; what hinders it is logged, and it is tried again the next time.

        Raises
        ------
        OutputError
            If the index cannot be used or a disk is full, and nobody waits for it: with `once`.
        TemporaryError
            With `once`, if the executor cannot be used.
        """
        commands = self._options.commands
        try:
            if self.database.is_deleted:
                self._begin_again()
            with self.database.transaction():
                pass  # other processes are waited for here, not amid work that is measured
            self._look()
            self._carry_out()
            self._collect()
            self._look_for_growth()
            self._start_queued()
            self._refresh_running()
            self._look_for_acknowledgements()
            self._remove_expired()
            self._check_space()
        except OutputError as err:
            if self._options.once:
                raise
            if str(err) != commands.failure:
                _log.error("controller_hindered", reason=str(err))
            commands.failure = str(err)
        else:
            if commands.failure:
                _log.info("controller_recovered")
            commands.failure = ""

    def _begin_again(self) -> None:
        """Make the index again after its file was deleted; evaluations go on."""
        _log.warning("index_deleted", path=str(self.database.path))
        self.database.close()
        self.database = self._open_database()
        self._search.known = self.database.paths()
        self.rebuild()
        self._unfinished = []
        self._result_marks = {}

    def _change(self, trial: TrialRecord, trial_input: TrialInput, **fields: Any) -> WatchState:
        """Record the next state of a trial, and log it."""
        state = advance_trial(trial.state, trial_input)
        self.database.update(trial.id, state=state, changed_at=self._clock.time(), **fields)
        details = {name: fields[name] for name in ("outcome", "problem") if fields.get(name)}
        if fields.get("restarts"):
            details["restart"] = fields["restarts"]
        self.database.when_committed(
            partial(_log.info, f"trial_{state}", trial=trial.path, **details)
        )
        return state

    # -- commands ----------------------------------------------------------------------------

    def _carry_out(self) -> None:
        """Execute the commands of users; what a trial's state no longer allows is left out."""
        for action, number in self._options.commands.taken():
            trial = self.database.trial(number)
            if trial is None or trial.removed:
                continue
            if action is TrialAction.REFRESH:
                self._refresh_rules(trial)
            elif action is TrialAction.REEVALUATE and trial.state is WatchState.JUDGED:
                self._anew.add(number)
                self._change(trial, TrialInput.GREW, final=False, started_at=None)
            elif action is TrialAction.CANCEL:
                self._cancel(trial)

    def _cancel(self, trial: TrialRecord) -> None:
        """Stop the evaluation of a trial, or take it off the queue."""
        if trial.state is WatchState.QUEUED:
            self._anew.discard(trial.id)
            self._fail(trial, _CANCELLED, Outcome.STOPPED)
        elif trial.output in self._evaluations:
            self._cancelled.add(trial.id)
            self._evaluations.terminate_one(trial.output)

    # -- discovery ---------------------------------------------------------------------------

    def _look(self) -> None:
        """Look for new trials below the roots that are due."""
        self._search.look(lambda: self._stopping)
        self._sort_discovered()

    def _add(self, trials: Sequence[NewTrial]) -> None:
        self.database.add(trials, self._clock.time())

    def _sort_discovered(self) -> None:
        """Queue the discovered trials that have rules, and ignore the others."""
        while trials := self.database.oldest(WatchState.DISCOVERED, _BATCH):
            with self.database.transaction():
                for trial in trials:
                    has_rules = self._config.assignment(trial.path) is not None
                    self._change(
                        trial, TrialInput.RULES_CHOSEN if has_rules else TrialInput.NO_RULES
                    )

    # -- evaluations -------------------------------------------------------------------------

    def _start_queued(self) -> None:
        """Start as many evaluations as may run, and have others make room for the rest."""
        most = self._config.max_concurrent
        free = max(0, most - len(self._evaluations))
        if not (free or self._turns.pace.is_due) or self._stopping or not self._is_ready():
            return
        with self._turns.pace.measured():
            waiting = self._turns.waiting(self.database, free, most + _BATCH)
        while waiting and free and not self._stopping:
            free -= self._start(waiting.popleft())
        self._turns.make_room(self.database, waiting)

    def _is_ready(self) -> bool:
        """Return whether evaluations can be started now, and tell people why not.

        Raises
        ------
        TemporaryError
            If they cannot, and nobody waits for it: with `once`.
        """
        problem = self._evaluations.problem
        if problem and self._options.once:
            raise TemporaryError(problem)
        self._options.commands.problem = problem
        is_full = lack_of_space(self.database.path, self._config.output)
        return self._evaluations.is_ready and not is_full

    def _check_space(self) -> None:
        """Raise `OutputError` if nothing can be written."""
        if problem := lack_of_space(self.database.path, self._config.output):
            raise OutputError(problem)

    def _start(self, trial: TrialRecord) -> bool:
        """Start the evaluation of a trial if possible; return whether it runs."""
        assignment = self._config.assignment(trial.path)
        if assignment is None:
            self._change(trial, TrialInput.NO_RULES)
        else:
            try:
                return self._evaluate(trial, assignment)
            except RuleRunnerError as err:
                self._fail(trial, str(err))
        return False

    def _evaluate(self, trial: TrialRecord, assignment: Assignment) -> bool:
        """Start the evaluation of a trial unless its results are final; return whether it runs.

        Raises
        ------
        RuleRunnerError
            If it cannot be requested.
        """
        saved = read_output(trial.output)
        anew = trial.id in self._anew or (saved.ended and has_new_traces(trial))
        if saved.final and not (anew or trial.restarts) and needs_nothing(trial.output):
            self._judge(self._running(trial), saved)
            return False
        if is_absent(trial.path) and not self._options.once:
            self._turns.postpone(self.database, trial)
            return False
        mark = mark_of(trial.path, trial.mark)
        request = request_of(
            trial,
            assignment,
            self._config,
            self._options.jobs,
            saved,
            follow=not (self._options.once or self._turns.is_quiet(trial, mark)),
            anew=anew,
        )
        self._anew.discard(trial.id)
        self._turns.begin(trial.output)
        running = self._running(trial, mark=mark, started_at=self._clock.time(), problem="")
        try:
            self._evaluations.start(trial.output, request)
        except OutputError as err:
            self._finish(running, EndedEvaluation(trial.output, None, str(err)))
        return trial.output in self._evaluations

    def _running(self, trial: TrialRecord, **fields: Any) -> TrialRecord:
        """Record that a trial is being judged; return its new record."""
        self._change(trial, TrialInput.STARTED, **fields)
        return self.database.trial(trial.id) or trial

    def _fail(self, trial: TrialRecord, problem: str, outcome: Outcome = Outcome.ERROR) -> None:
        """Record that a queued trial cannot, or must not, be judged."""
        running = self._running(trial)
        self._change(
            running,
            TrialInput.ENDED,
            outcome=outcome,
            problem=problem,
            final=outcome is Outcome.STOPPED,
            ended_at=self._clock.time(),
        )

    def _collect(self) -> None:
        """Record the results of the evaluations that have ended."""
        for ended in self._evaluations.ended():
            trial = self.database.trial_with(ended.output)
            if trial is not None and trial.state is WatchState.RUNNING:
                self._finish(trial, ended)

    def _finish(self, trial: TrialRecord, ended: EndedEvaluation) -> None:
        """Record the result of an evaluation that has ended, or restart it."""
        try:
            saved = read_output(trial.output)
        except OutputError as err:
            self._judge(trial, SavedOutput(), str(err))
            return
        code = ended.exit_code
        died = code is None or code < 0
        is_cancelled = trial.id in self._cancelled
        self._cancelled.discard(trial.id)
        if is_cancelled and not saved.final:
            self._judge(trial, saved, _CANCELLED, Outcome.STOPPED)
        elif (self._stopping or ended.pause is not None) and not saved.final:
            not_before = self._clock.time() + (ended.pause or 0.0)
            restarts = 0 if code == EXIT_TEMPORARY else trial.restarts  # it has worked
            self._change(trial, TrialInput.STOPPED, not_before=not_before, restarts=restarts)
        elif saved.ended and not (died and not is_finished(trial.output)):
            self._judge(trial, saved)
        elif code in _HOPELESS:
            self._judge(trial, saved, ended.last_line)
        else:
            self._restart(trial, ended)

    def _restart(self, trial: TrialRecord, ended: EndedEvaluation) -> None:
        """Queue a trial whose evaluation died; on a full disk this is not counted."""
        if problem := lack_of_space(self.database.path, self._config.output):
            self._change(trial, TrialInput.STOPPED, problem=problem)
            return
        self._change(trial, TrialInput.DIED, problem=ended.last_line)
        self._settle_lost(self.database.trial(trial.id) or trial, ended.last_line)

    def _settle_lost(self, trial: TrialRecord, last_line: str) -> None:
        """Queue a trial whose evaluation died, or give it up."""
        trial_input = after_death(trial.restarts)
        if trial_input is TrialInput.RESTARTED:
            pause = pause_after(trial.restarts + 1, self._options.intervals.restart)
            self._change(
                trial,
                trial_input,
                restarts=trial.restarts + 1,
                not_before=self._clock.time() + pause,
            )
            return
        why = f": {last_line.rstrip('.')}" if last_line else ""
        problem = _GAVE_UP.format(times=trial.restarts + 1, why=why)
        self._change(
            trial,
            trial_input,
            outcome=Outcome.ERROR,
            problem=problem,
            ended_at=self._clock.time(),
            restarts=0,
        )

    def _judge(
        self,
        trial: TrialRecord,
        saved: SavedOutput,
        problem: str = "",
        decided: Outcome | None = None,
    ) -> None:
        """Record the verdicts of a trial; an outcome that somebody decided is final."""
        assignment = self._config.assignment(trial.path)
        lenient = assignment is not None and assignment.is_fitting
        outcome = trial_outcome_of(saved, lenient=lenient)
        with self.database.transaction():
            self.database.set_rules(trial.id, saved.rules)
            self._change(
                trial,
                TrialInput.ENDED,
                outcome=decided or (outcome if saved.ended else Outcome.ERROR),
                problem=problem,
                final=(saved.final and not is_of_traces(trial)) or decided is not None,
                restarts=0,
                ended_at=saved.end_time or self._clock.time(),
                undelivered=saved.undelivered,
            )

    def _refresh_running(self) -> None:
        """Record the verdicts that running evaluations have reached so far, if they are new."""
        if not self._refresh.is_due:
            return
        with self._refresh.measured():
            marks: dict[int, object] = {}
            for trial in self.database.oldest(WatchState.RUNNING):
                if is_s3(trial.output):
                    continue
                marks[trial.id] = results_mark(trial.output)
                changed = marks[trial.id] != self._result_marks.get(trial.id)
                if changed and not self._refresh_rules(trial):
                    del marks[trial.id]  # the next look reads them
            self._result_marks = marks

    def refresh_rules_of(self, number: int) -> bool:
        """Record the verdicts and acknowledgements of a trial as its output has them now.

        Return False if they cannot be read.
        """
        trial = self.database.trial(number)
        return trial is None or bool(trial.removed) or self._refresh_rules(trial)

    def _refresh_rules(self, trial: TrialRecord) -> bool:
        """Record the verdicts of a trial; return False if they cannot be read."""
        try:
            saved = read_output(trial.output)
        except OutputError:
            return False
        if saved.undelivered != trial.undelivered:
            self.database.update(trial.id, undelivered=saved.undelivered)
        rules = saved.rules
        before = {rule.name: rule for rule in self.database.rules_of(trial.id)}
        if {rule.name: rule for rule in rules} == before:
            return True
        with self.database.transaction():
            self.database.set_rules(trial.id, rules)
        for rule in rules:
            earlier = before.get(rule.name)
            if rule.outcome == Outcome.ISSUES_FOUND and (
                earlier is None or (earlier.outcome, earlier.step) != (rule.outcome, rule.step)
            ):
                _log.info("issues_found", trial=trial.path, rule=rule.name, step=rule.step)
        return True

    def _look_for_acknowledgements(self) -> None:
        """Record acknowledgements of judged trials, and their withdrawal.

        Events that were sent later, as by ``events replay``, are recorded with it.
        """
        if not self._said.is_due:
            return
        with self._said.measured():
            marks = dict.fromkeys(self.database.acknowledged(), (0, 0)) | {
                trial.id: mark
                for trial in self.database.oldest(WatchState.JUDGED)
                if not trial.removed and (mark := acknowledgements_mark(trial.output))
            }
            today = int(self._clock.time() // _DAY_S)
            for number in {**self._marks, **marks}:
                changed = today != self._today or marks.get(number) != self._marks.get(number)
                if changed and not self.refresh_rules_of(number):
                    marks.pop(number, None)  # the next look reads them
            self._marks, self._today = marks, today
            for number in self.database.undelivered():
                self.refresh_rules_of(number)

    # -- growth and retention ----------------------------------------------------------------

    def _look_for_growth(self) -> None:
        """Queue judged trials whose data have grown, and note what running trials look like."""
        if self._growth.is_due and not self._unfinished:
            with self._growth.measured():
                self._unfinished = self.database.unfinished()
                for trial in self.database.oldest(WatchState.RUNNING):
                    if not is_of_traces(trial):  # it is judged anew after the next change
                        self.database.update(trial.id, mark=mark_of(trial.path, trial.mark))
        batch, self._unfinished = self._unfinished[:_LOOKED_AT], self._unfinished[_LOOKED_AT:]
        for number in batch:
            self._queue_if_grown(number)

    def _queue_if_grown(self, number: int) -> None:
        """Queue a judged trial if it has new data, or if its output was removed by hand."""
        trial = self.database.trial(number)
        if trial is None or trial.state is not WatchState.JUDGED or is_absent(trial.path):
            return
        mark = mark_of(trial.path, trial.mark)
        if mark != trial.mark or not (is_s3(trial.output) or Path(trial.output).exists()):
            self._change(trial, TrialInput.GREW, mark=trial.mark if is_of_traces(trial) else mark)

    def _remove_expired(self) -> None:
        """Remove outputs as configured."""
        expiry = self._options.expiry
        if expiry is not None and self._expire.is_due:
            with self._expire.measured():
                for trial in expire(self.database, expiry, self._config.output, self._clock.time()):
                    if is_absent(trial.path):
                        self.database.remove(trial.id)
                        self._search.known.discard(trial.path)

    # -- the end -----------------------------------------------------------------------------

    def _is_done(self) -> bool:
        """Return whether nothing is left to judge now."""
        states = {state for state, _ in self.database.counts()}
        return self._search.is_done and states <= {WatchState.JUDGED, WatchState.IGNORED}

    def _stop_evaluations(self) -> None:
        """Stop the evaluations and record their results."""
        self._evaluations.terminate()
        deadline = self._clock.monotonic() + self._options.intervals.stop
        while len(self._evaluations) and self._clock.monotonic() < deadline:
            try:
                self._collect()
            except OutputError as err:
                _log.error("index_unavailable", reason=str(err))
                return
            self._clock.sleep(0.1)
        if len(self._evaluations):
            _log.warning("evaluations_left", count=len(self._evaluations))
