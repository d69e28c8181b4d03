"""Scheduler: starts evaluations in turns, restarts those that die, and records how they end."""

from typing import Final

from msgspec.structs import replace

from rule_core.clock import pause_after
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.rule_options import parse_requests
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_TEMPORARY,
    EXIT_USAGE,
    OutputError,
    RuleRunnerError,
    TemporaryError,
)
from rule_runner.index.outputs import (
    SavedOutput,
    is_finished,
    lack_of_space,
    needs_nothing,
    read_output,
)
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import TrialInput, WatchState, after_death
from rule_runner.logs import get_logger
from rule_runner.results.status import Outcome
from rule_runner.watch.config import Assignment
from rule_runner.watch.evaluations import EndedEvaluation, Evaluations
from rule_runner.watch.growth import has_new_traces, is_absent, mark_of
from rule_runner.watch.options import WatchContext
from rule_runner.watch.recorder import Recorder
from rule_runner.watch.turns import Turns

_log: Final = get_logger(__name__)
_BATCH: Final = 200  # trials that are sorted at once
# Exit codes that the same request would have again.
_HOPELESS: Final = frozenset({EXIT_CLIENT, EXIT_USAGE})
_CANCELLED: Final = "Somebody has cancelled its evaluation."
_GAVE_UP: Final = "Its evaluation ended {times} times without a verdict{why}."


class Scheduler:
    """Starts, restarts and stops the evaluations of the trials in the index.

    Attributes
    ----------
    is_stopping
        Whether no more evaluations are to be started; may be set in a signal handler.
    """

    def __init__(self, context: WatchContext, evaluations: Evaluations, recorder: Recorder) -> None:
        self._config, self._database, self._clock, self._options = context
        self._evaluations = evaluations
        self._recorder = recorder
        self._turns = Turns(context, evaluations)
        self._anew: set[str] = set()  # outputs whose results are to be replaced
        self._cancelled: set[str] = set()  # outputs of evaluations that are stopping
        self.is_stopping = False

    def lack_of_space(self) -> str:
        """Return why the index or outputs cannot be written, in a sentence; "" if they can."""
        return lack_of_space(self._database.path, self._config.output)

    def take_over(self) -> None:
        """Take over what an earlier controller left."""
        self._database.forget_pauses()
        for trial in self._database.oldest(WatchState.LOST):
            self._settle_lost(trial, "")
        for trial in self._database.oldest(WatchState.RUNNING):
            ended = self._evaluations.adopt(trial.output)
            if ended is None:
                _log.info("evaluation_adopted", trial=trial.path)
            else:
                self._finish(trial, ended)
        for trial in self._database.oldest(WatchState.IGNORED):
            if self._config.assignment(trial.path) is not None:
                self._recorder.change(trial, TrialInput.RULES_CHOSEN)

    def recognize_running(self) -> None:
        """Record in an index that was made again which evaluations run."""
        for output in self._evaluations.outputs:
            trial = self._database.trial_with(output)
            if trial is not None and trial.state is WatchState.QUEUED:
                self._recorder.change(trial, TrialInput.STARTED, started_at=self._clock.time())

    def sort_discovered(self) -> None:
        """Queue the discovered trials that have rules, and ignore the others."""
        while trials := self._database.oldest(WatchState.DISCOVERED, _BATCH):
            with self._database.transaction():
                for trial in trials:
                    has_rules = self._config.assignment(trial.path) is not None
                    self._recorder.change(
                        trial, TrialInput.RULES_CHOSEN if has_rules else TrialInput.NO_RULES
                    )

    def reevaluate(self, trial: TrialRecord) -> None:
        """Queue a judged trial to be judged from the start."""
        if trial.state is WatchState.JUDGED:
            self._anew.add(trial.output)
            self._recorder.change(trial, TrialInput.GREW, final=False, started_at=None)

    def cancel(self, trial: TrialRecord) -> None:
        """Stop the evaluation of a trial, or take it off the queue."""
        if trial.state is WatchState.QUEUED:
            self._anew.discard(trial.output)
            self._recorder.fail(trial, _CANCELLED, Outcome.STOPPED)
        elif trial.output in self._evaluations:
            self._cancelled.add(trial.output)
            self._evaluations.terminate_one(trial.output)

    def start_queued(self) -> None:
        """Start as many evaluations as may run, and have others make room for the rest."""
        most = self._config.max_concurrent
        free = max(0, most - len(self._evaluations))
        if not (free or self._turns.pace.is_due) or self.is_stopping or not self._is_ready():
            return
        with self._turns.pace.measured():
            waiting = self._turns.waiting(free, most + _BATCH)
        while waiting and free and not self.is_stopping:
            free -= self._start(waiting.popleft())
        self._turns.make_room(waiting)

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
        is_full = self.lack_of_space()
        return self._evaluations.is_ready and not is_full

    def _start(self, trial: TrialRecord) -> bool:
        """Start the evaluation of a trial if possible; return whether it runs."""
        assignment = self._config.assignment(trial.path)
        if assignment is None:
            self._recorder.change(trial, TrialInput.NO_RULES)
        else:
            try:
                return self._evaluate(trial, assignment)
            except RuleRunnerError as err:
                self._recorder.fail(trial, str(err))
        return False

    def _evaluate(self, trial: TrialRecord, assignment: Assignment) -> bool:
        """Start the evaluation of a trial unless its results are final; return whether it runs.

        Raises
        ------
        RuleRunnerError
            If it cannot be requested.
        """
        saved = read_output(trial.output)
        anew = trial.output in self._anew or (saved.ended and has_new_traces(trial))
        if saved.final and not (anew or trial.restarts) and needs_nothing(trial.output):
            self._recorder.judge(self._recorder.change(trial, TrialInput.STARTED), saved)
            return False
        if is_absent(trial.path) and not self._options.once:
            self._turns.postpone(trial)
            return False
        mark = mark_of(trial.path, trial.mark)
        follow = not (self._options.once or self._turns.is_quiet(trial, mark))
        request = self._request(trial, assignment, saved, follow=follow, anew=anew)
        self._anew.discard(trial.output)
        self._turns.begin(trial.output)
        running = self._recorder.change(
            trial, TrialInput.STARTED, mark=mark, started_at=self._clock.time(), problem=""
        )
        try:
            self._evaluations.start(trial.output, request)
        except OutputError as err:
            self._finish(running, EndedEvaluation(trial.output, None, str(err)))
        return trial.output in self._evaluations

    def _request(
        self,
        trial: TrialRecord,
        assignment: Assignment,
        saved: SavedOutput,
        *,
        follow: bool,
        anew: bool,
    ) -> EvaluationRequest:
        """Return the evaluation of a trial.

        An evaluation that was begun keeps the rules that fitted the trial then. Results of another
        version of rule-runner cannot be continued: they are replaced.

        Parameters
        ----------
        saved
            What its output folder holds.
        follow
            Whether to follow it until it ends.
        anew
            Whether to replace its results.
        """
        request = EvaluationRequest(
            trial=trial.path if trial.tensors else None,
            profiler_trial=trial.path if trial.profiler else None,
            parameters=assignment.parameters,
            modes=assignment.modes,
            sources=self._config.sources,
            wait=follow,
            follow_issues=True,
            as_it_is=not follow,
            idle_timeout=self._config.quiet_s,
            output=trial.output,
            overwrite=anew or not saved.same_version,
            sinks=self._config.sinks,
            actions=self._config.actions,
            quiet=True,
        )
        if assignment.job is not None:
            return replace(request, job=self._options.jobs[assignment.job])
        rules = tuple(parse_requests(list(assignment.rules), []))
        if assignment.is_fitting and saved.rules and saved.same_version:
            rules = tuple(RuleRequest(name=rule.name) for rule in saved.rules)
        return replace(request, rules=rules)

    def collect(self) -> None:
        """Record the results of the evaluations that have ended."""
        for ended in self._evaluations.ended():
            trial = self._database.trial_with(ended.output)
            if trial is not None and trial.state is WatchState.RUNNING:
                self._finish(trial, ended)

    def _finish(self, trial: TrialRecord, ended: EndedEvaluation) -> None:
        """Record the result of an evaluation that has ended, or restart it."""
        try:
            saved = read_output(trial.output)
        except OutputError as err:
            self._recorder.judge(trial, SavedOutput(), str(err))
            return
        code = ended.exit_code
        died = code is None or code < 0
        is_cancelled = trial.output in self._cancelled
        self._cancelled.discard(trial.output)
        if is_cancelled and not saved.final:
            self._recorder.judge(trial, saved, _CANCELLED, Outcome.STOPPED)
        elif (self.is_stopping or ended.pause is not None) and not saved.final:
            not_before = self._clock.time() + (ended.pause or 0.0)
            restarts = 0 if code == EXIT_TEMPORARY else trial.restarts  # it has worked
            self._recorder.change(
                trial, TrialInput.STOPPED, not_before=not_before, restarts=restarts
            )
        elif saved.ended and not (died and not is_finished(trial.output)):
            self._recorder.judge(trial, saved)
        elif code in _HOPELESS:
            self._recorder.judge(trial, saved, ended.last_line)
        else:
            self._restart(trial, ended)

    def _restart(self, trial: TrialRecord, ended: EndedEvaluation) -> None:
        """Queue a trial whose evaluation died; on a full disk this is not counted."""
        if problem := self.lack_of_space():
            self._recorder.change(trial, TrialInput.STOPPED, problem=problem)
            return
        lost = self._recorder.change(trial, TrialInput.DIED, problem=ended.last_line)
        self._settle_lost(lost, ended.last_line)

    def _settle_lost(self, trial: TrialRecord, last_line: str) -> None:
        """Queue a trial whose evaluation died, or give it up."""
        trial_input = after_death(trial.restarts)
        if trial_input is TrialInput.RESTARTED:
            pause = pause_after(trial.restarts + 1, self._options.intervals.restart)
            self._recorder.change(
                trial,
                trial_input,
                restarts=trial.restarts + 1,
                not_before=self._clock.time() + pause,
            )
            return
        why = f": {last_line.rstrip('.')}" if last_line else ""
        problem = _GAVE_UP.format(times=trial.restarts + 1, why=why)
        self._recorder.change(
            trial,
            trial_input,
            outcome=Outcome.ERROR,
            problem=problem,
            ended_at=self._clock.time(),
            restarts=0,
        )

    def stop_evaluations(self) -> None:
        """Stop the evaluations and record their results."""
        self._evaluations.terminate()
        deadline = self._clock.monotonic() + self._options.intervals.stop
        while len(self._evaluations) and self._clock.monotonic() < deadline:
            try:
                self.collect()
            except OutputError as err:
                _log.error("index_unavailable", reason=str(err))
                return
            self._clock.sleep(0.1)
        if len(self._evaluations):
            _log.warning("evaluations_left", count=len(self._evaluations))
