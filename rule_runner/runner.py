"""evaluate: rule jobs over one trial, step by step, from its opening to their verdicts."""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog

from rule_runner.announcer import Announcer
from rule_runner.binding import BoundRule, bind
from rule_runner.config import EvaluationConfig, RuleJobConfig
from rule_runner.errors import ClientError, OutputError, TrialError
from rule_runner.evaluation import Evaluation
from rule_runner.events import TrainingJob
from rule_runner.job import RuleJob
from rule_runner.openings import is_there, make_invoker, open_trial, real_path, roots
from rule_runner.outputs import OutputFolder
from rule_runner.results import (
    EvaluationResult,
    RuleJobFacts,
    TrialSummary,
    fingerprint,
    versions,
)
from rule_runner.sinks import EventSink
from rule_runner.status import CLIENT_ERROR, INTERNAL_ERROR, RuleStatus
from rule_runner.stopping import StopReason, StopRequests, signals
from rule_runner.walk import StepWalk
from rule_runner.watch import POLL_S, TrialWatcher, Waiter
from smdebug.core.clock import Clock, SystemClock
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError
from smdebug.trials import Trial

_log: Final = structlog.get_logger()
EXIT_INTERNAL: Final = 70
EXIT_OUTPUT: Final = 73
SAY_AFTER_S: Final = 10.0
SAY_EVERY_S: Final = 60.0
_NAMES_SHOWN: Final = 10


class Observer:
    """What is told while an evaluation runs; does nothing by default."""

    def progress(self, judged: int, known: int) -> None:
        """Hear that `judged` of `known` steps are done."""

    def waiting(self, text: str, seconds: float) -> None:
        """Hear what has been waited for, and for how long."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation came to.

    Attributes
    ----------
    stop
        Why it stopped early, if it did.
    unwritten
        Why the output folder does not hold all of the result, if it does not.
    """

    result: EvaluationResult
    stop: StopReason | None = None
    unwritten: str = ""


class Runner:
    """Evaluates the rule jobs of one configuration, once.

    Parameters
    ----------
    config
        What is evaluated, and how.
    sinks
        Where events go besides the output folder.
    observer
        Who is told how far it is.
    clock, waiter
        Tell the time and wait; by default the machine's clock, and file notifications.

    Raises
    ------
    ClientError
        If the trial is not there, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        *,
        sinks: Sequence[EventSink] = (),
        observer: Observer | None = None,
        clock: Clock | None = None,
        waiter: Waiter | None = None,
    ) -> None:
        self.config = config
        self.observer = observer or Observer()
        self.clock = clock or SystemClock()
        self._stack = ExitStack()
        self.trials = self._open_trials()
        self.waiter = waiter or self._watch()
        self.stops = StopRequests(
            self.clock, config.timeout, config.idle_timeout, config.stop_files, config.stop_grace
        )
        self.walk = StepWalk(
            self.trials[0].index,
            [trial.index for trial in self.trials[1:]],
            self.clock,
            config.end_grace,
            config.event_file_wait,
        )
        bound = [bind(rule.loaded, rule.parameters) for rule in config.rules]
        self._began = self.clock.monotonic()
        self._waited_since: float | None = None
        self._said_at = 0.0
        self._unwritten = ""
        self.jobs: list[RuleJob] = []
        with ExitStack() as stack:
            for one in zip(config.rules, bound, strict=True):
                self.jobs.append(self._job(*one, stack))
            self.announcer = self._announcer(sinks)
            stack.callback(self.announcer.close)
            self._stack.push(stack.pop_all())
        self._bound = bound

    # -- opening -----------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the wall time, aware."""
        return datetime.fromtimestamp(self.clock.time(), UTC)

    def _open_trials(self) -> list[Trial]:
        config = self.config
        paths = [(config.trial, config.trial_name), *((one, None) for one in config.other_trials)]
        trials = [open_trial(path, name, config.window) for path, name in paths]
        for trial in trials:
            if not is_there(trial) and not config.wait_for_trial:
                raise TrialError(self._absent(trial))
        return trials

    @staticmethod
    def _absent(trial: Trial) -> str:
        return f"Trial {trial.path!r} is not there."

    def _watch(self) -> Waiter:
        watcher = TrialWatcher(roots(self.trials))
        self._stack.callback(watcher.close)
        return watcher

    def _job(self, rule: RuleJobConfig, bound: BoundRule, stack: ExitStack) -> RuleJob:
        """Open the output folder of a rule job."""
        config = self.config
        trial = real_path(config.trial)
        identity = fingerprint(
            rule_source=rule.loaded.source_sha256.encode(),
            rule=rule.loaded.name,
            configuration_name=rule.configuration_name,
            parameters=bound.parameters,
            trial=trial,
            other_trials=[real_path(one) for one in config.other_trials],
            start_step=rule.start_step,
            end_step=rule.end_step,
            keep_going=config.keep_going,
        )
        folder = OutputFolder(
            config.folder_of(rule),
            identity,
            overwrite=config.overwrite,
            reopen=bool(self.jobs) and self.jobs[0].folder.resumed,
        )
        stack.callback(folder.close)
        evaluation = Evaluation(
            rule.loaded.name, rule.configuration_name, config.keep_going, self.now()
        )
        for warning in bound.warnings:
            _log.warning("parameter_left_out", rule_job=rule.configuration_name, reason=warning)
            evaluation.note(warning)
        facts = RuleJobFacts(bound.parameters, trial, config.enforce, identity, versions())
        return RuleJob(rule, evaluation, facts, folder, self.clock, self.now)

    def _announcer(self, sinks: Sequence[EventSink]) -> Announcer:
        config = self.config
        name = config.training_job_name or self.trials[0].name
        return Announcer(
            TrainingJob(name, self.now(), config.event_source),
            [job.folder.path for job in self.jobs],
            sinks,
            [job.evaluation for job in self.jobs],
            self.now,
            overwrite=config.overwrite,
        )

    # -- running -----------------------------------------------------------------------------

    def run(self) -> Evaluated:
        """Evaluate, and return what it came to."""
        stop: StopReason | None = None
        with self._stack, signals(self.stops, self._end_at_once):
            try:
                self._begin()
                stop = self._walk()
            except (StorageUnavailableError, ClientError) as err:
                self._fail(CLIENT_ERROR + str(err))
            except OutputError as err:
                self._unwritten = str(err)
                stop = StopReason(self._unwritten, EXIT_OUTPUT)
            except Exception:  # noqa: BLE001 - a defect of ours: the rule jobs end with Error
                _log.exception("evaluation_broke")
                self._fail(INTERNAL_ERROR)
            self._finish(stop)
        return Evaluated(self._result(), stop, self._unwritten)

    def _begin(self) -> None:
        """Record that the rule jobs have begun, and make their rules."""
        for job in self.jobs:
            job.write(self.walk.ended)
        self.announcer.announce(self.walk.ended)
        for job, bound in zip(self.jobs, self._bound, strict=True):
            self._stack.callback(job.close)
            try:
                job.invoker = make_invoker(job.config, bound, self.trials, self.config.rule_timeout)
            except ClientError as err:
                job.evaluation.rule_failed(CLIENT_ERROR + str(err), self.now())
                self._tell(job)

    def _walk(self) -> StopReason | None:
        """Judge steps as they become ready, until there is nothing more to do."""
        while True:
            self._look()
            self._check_that_trials_came()
            stop = self._judge_ready()
            live = [job for job in self.jobs if job.live]
            if stop or not live or self._all_judged(live):
                return stop
            if not self.config.wait and not self.walk.ending:
                return None
            stop = self._wait(min(job.position for job in live))
            if stop:
                return stop

    def _all_judged(self, live: list[RuleJob]) -> bool:
        """Say whether the trial has ended and no step of it is left."""
        last = max(self.walk.base.steps, default=-1)
        return self.walk.ended and all(job.position >= last for job in live)

    def _check_that_trials_came(self) -> None:
        """Give up on trials whose folders did not come in time."""
        if self.clock.monotonic() - self._began < self.config.wait_for_trial:
            return
        for trial in self.trials:
            if not trial.index.steps and not is_there(trial):
                raise TrialError(self._absent(trial))

    def _look(self) -> None:
        """Look for new files."""
        ended = self.walk.ended
        if not self.walk.look():
            return
        self.stops.news()
        self._waited_since = None
        for job in self.jobs:
            job.waits = False
        if self.walk.ended and not ended:
            self.announcer.announce(trial_ended=True)

    def _judge_ready(self) -> StopReason | None:
        """Judge every step that is ready, each with all rules before the next."""
        stop = self.stops.reason()
        if stop:
            return stop
        position = min((job.position for job in self.jobs if job.live), default=-1)
        for step in self.walk.ready(position):
            wanting = [job for job in self.jobs if job.wants(step)]
            missing = self.walk.missing_workers(step) if wanting else []
            for job in wanting:
                if job.judge(step, missing, self.walk.ended):
                    self._tell(job)
            steps = self.walk.base.steps
            self.observer.progress(bisect_right(steps, step), len(steps))
            stop = self.stops.reason()
            if stop or not any(job.live for job in self.jobs):
                return stop
        return None

    def _wait(self, position: int) -> StopReason | None:
        """Wait for files; say for which after a while."""
        now = self.clock.monotonic()
        if self._waited_since is None:
            self._waited_since = now
            self._said_at = now + SAY_AFTER_S - SAY_EVERY_S
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self.observer.waiting(self.walk.awaited(position), now - self._waited_since)
        stop = self.stops.reason(waiting=True)
        if stop is None:
            self.waiter.wait(0.1 if self.walk.ending else POLL_S)
        return stop

    # -- ending ------------------------------------------------------------------------------

    def _tell(self, job: RuleJob) -> None:
        """Tell how a rule job's status moved."""
        evaluation = job.evaluation
        _log.info(
            "status_changed", rule_job=job.config.configuration_name, new=str(evaluation.status)
        )
        job.write(self.walk.ended)
        self.announcer.announce(self.walk.ended)

    def _fail(self, details: str) -> None:
        """End all rule jobs with an error."""
        for job in self.jobs:
            if not job.evaluation.done and job.evaluation.rule_failed(details, self.now()):
                with self._as_far_as_it_goes():
                    self._tell(job)

    def _finish(self, stop: StopReason | None) -> None:
        """Give every rule job its verdict."""
        lost = self._lost_files()
        for job in self.jobs:
            evaluation = job.evaluation
            if lost:
                evaluation.note(f"{lost} index files came after the end and were not judged.")
            for key, problem in self.walk.base.problems.items():
                evaluation.note(f"{key}: {problem}")
            known = [step for step in self.walk.base.steps if self._in_range(job, step)]
            evaluation.steps_known(len(known))
            if stop and not evaluation.done and evaluation.stop_requested(stop.text, self.now()):
                with self._as_far_as_it_goes():
                    self._tell(job)
            if not evaluation.done or evaluation.ended_at is None:
                no_data = not self.walk.base.steps
                ended = self.walk.ended
                if evaluation.ended(self.now(), ended, self._held(job), no_data=no_data):
                    with self._as_far_as_it_goes():
                        self._tell(job)
        for job in reversed(self.jobs):  # the first one last: it says whether all have ended
            with self._as_far_as_it_goes():
                job.write(self.walk.ended, final=not self._unwritten)
            self._log_end(job)

    def _lost_files(self) -> int:
        """Return how many files came after the trial was taken for ended."""
        if not self.walk.ended:
            return 0
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return self.walk.base.lost_files()
        return 0

    @contextmanager
    def _as_far_as_it_goes(self) -> Iterator[None]:
        """Let an output folder that cannot be written cost no verdict."""
        try:
            yield
        except OutputError as err:
            self._unwritten = self._unwritten or str(err)

    @staticmethod
    def _in_range(job: RuleJob, step: int) -> bool:
        end = job.config.end_step
        return step >= (job.config.start_step or 0) and (end is None or step < end)

    def _log_end(self, job: RuleJob) -> None:
        """Write the one line that says all."""
        coverage = job.evaluation.coverage
        _log.info(
            "rule_job_finished",
            rule_job=job.config.configuration_name,
            rule=job.evaluation.rule,
            status=str(job.evaluation.status),
            outcome=str(job.evaluation.outcome),
            first=coverage.first,
            last=coverage.last,
            evaluated=coverage.judged,
            skipped=sum(coverage.skipped.values()),
            findings=job.evaluation.findings_count,
            rule_time_s=round(job.rule_time_s, 3),
        )

    def _held(self, job: RuleJob) -> str:
        """Say what the rule looked for, and what the trial holds."""
        trial, index = self.trials[0], self.walk.base
        sought = f"It looked for {', '.join(job.missed[:_NAMES_SHOWN])}. " if job.missed else ""
        if not index.steps:
            return f"{sought}Trial {trial.path!r} holds no steps."
        names = ", ".join(map(repr, sorted(index.collections)[:_NAMES_SHOWN])) or "none"
        return (
            f"{sought}Trial {trial.path!r} holds {len(index.steps)} steps ({index.steps[0]} to "
            f"{index.steps[-1]}), {len(index.names)} tensors and the collections {names}."
        )

    def _end_at_once(self, number: int) -> None:
        """Write what there is and end the process: a rule does not come back."""
        with suppress(Exception):
            self.stops.by_signal(number)
            self._finish(self.stops.reason())
        os._exit(128 + number)

    def _result(self) -> EvaluationResult:
        trial, index = self.trials[0], self.walk.base
        summary = TrialSummary(
            name=trial.name,
            path=real_path(trial.path),
            ended=self.walk.ended,
            steps=len(index.steps),
            first_step=index.steps[0] if index.steps else None,
            last_step=index.steps[-1] if index.steps else None,
            workers=list(index.workers),
        )
        results = [job.result(self.walk.ended) for job in self.jobs]
        return EvaluationResult(trial=summary, rules=results)


def exit_code(evaluated: Evaluated, *, enforce: bool, lenient: bool = False) -> int:
    """Return the exit code of an evaluation.

    Parameters
    ----------
    enforce
        Whether a condition met is 10.
    lenient
        Whether a rule that could judge nothing does not count.
    """
    rules = evaluated.result.rules
    statuses = {rule.status for rule in rules}
    if any(rule.status_details == INTERNAL_ERROR for rule in rules):
        return EXIT_INTERNAL
    if evaluated.unwritten:
        return EXIT_OUTPUT
    if evaluated.stop and RuleStatus.STOPPED in statuses:
        return evaluated.stop.exit_code
    failed = [rule for rule in rules if rule.status == RuleStatus.ERROR]
    if any(rule.outcome != "NotEvaluated" or not lenient for rule in failed):
        return 1
    return 10 if enforce and RuleStatus.ISSUES_FOUND in statuses else 0
