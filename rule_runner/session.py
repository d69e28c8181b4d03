"""Session: trials, rule jobs and output folders of one evaluation, opened and closed together."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from rule_runner.actions.job_actions import Hit, How, JobActions, hit_of
from rule_runner.actions.journal import ACTIONS, Journal
from rule_runner.actions.planning import planned
from rule_runner.announcer import Announcer
from rule_runner.binding import BoundRule, bind
from rule_runner.config import EvaluationConfig, RuleJobConfig, RuleMode
from rule_runner.durable import remove_files
from rule_runner.errors import ClientError
from rule_runner.evaluation import Evaluation
from rule_runner.events import TrainingJob
from rule_runner.finding_ids import FindingIds
from rule_runner.job import RuleJob
from rule_runner.nearest_names import nearest_names
from rule_runner.openings import real_path
from rule_runner.outputs import OutputFolder
from rule_runner.results import (
    STEP,
    WINDOW,
    EvaluationResult,
    Evidence,
    RuleJobFacts,
    fingerprint,
    versions,
)
from rule_runner.rule_making import make_invoker, nursery_of
from rule_runner.rule_source import rule_source
from rule_runner.sinks import EventSink
from rule_runner.status import CLIENT_ERROR
from rule_runner.walks import Walks
from smdebug.core.clock import Clock
from smdebug.rules.action.base import Action

if TYPE_CHECKING:
    from rule_runner.nursery import Nursery

_log: Final = structlog.get_logger()
_NAMES_SHOWN: Final = 10
_WIDTH: Final = 120  # characters of what was looked for


class Session:
    """What one evaluation works on.

    Parameters
    ----------
    config
        What is evaluated, and how.
    sinks
        Where events go besides the output folder.

    Attributes
    ----------
    walks
        The trials, and their steps as they become ready.
    jobs
        The rule jobs, whose rules `begin` makes.
    closing
        Closes whatever was opened.

    Raises
    ------
    ClientError
        If the trial is not there, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    """

    def __init__(self, config: EvaluationConfig, sinks: Sequence[EventSink], clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.walks = Walks(config, clock)
        self._bound = [
            BoundRule(rule.loaded, {}, dict(rule.parameters))
            if rule.lacking or rule.refused
            else bind(rule.loaded, rule.parameters)
            for rule in config.rules
        ]
        plans = [
            ()
            if rule.lacking or rule.refused
            else planned(rule, bound.arguments, config.training_job_name)
            for rule, bound in zip(config.rules, self._bound, strict=True)
        ]
        self.jobs: list[RuleJob] = []
        self._unmade: list[tuple[RuleJob, BoundRule]] = []
        self._nursery: Nursery | None = None
        self.news_at = clock.monotonic()
        with ExitStack() as stack:
            for one in zip(config.rules, self._bound, strict=True):
                self.jobs.append(self._job(*one, stack))
            for job, actions in zip(self.jobs, plans, strict=True):
                self._equip(job, actions, stack)
            self.announcer = self._announcer(sinks)
            stack.callback(self.announcer.close)
            self.closing = stack.pop_all()

    def now(self) -> datetime:
        """Return the wall time, aware."""
        return datetime.fromtimestamp(self.clock.time(), UTC)

    def _job(self, rule: RuleJobConfig, bound: BoundRule, stack: ExitStack) -> RuleJob:
        """Open the output folder of a rule job."""
        config = self.config
        trial = real_path(config.trial_of(rule))
        identity = fingerprint(
            rule_source=rule.loaded.source_sha256.encode(),
            rule=rule.loaded.name,
            configuration_name=rule.configuration_name,
            parameters=bound.parameters,
            trial=trial,
            other_trials=[real_path(one) for one in config.others_of(rule)],
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
        if rule.refused:
            evaluation.rule_failed(CLIENT_ERROR + rule.refused, self.now())
        for warning in bound.warnings:
            _log.warning("parameter_left_out", rule_job=rule.configuration_name, reason=warning)
            evaluation.note(warning)
        source = rule_source(rule.loaded)
        unit = WINDOW if rule.profiler else STEP
        facts = RuleJobFacts(bound.parameters, trial, rule.mode, identity, versions(), source, unit)
        walk = self.walks.of(rule)
        return RuleJob(rule, walk, evaluation, facts, folder, self.clock, self.now)

    def _equip(self, job: RuleJob, actions: Sequence[Action], stack: ExitStack) -> None:
        """Give a rule job its actions; one that is only observed has none."""
        config = self.config
        if config.overwrite:
            remove_files([job.folder.path / ACTIONS])
        if actions and job.config.mode is RuleMode.ENFORCE:
            how = How(config.action_timeout, config.dry_run, self.clock, self.now)
            journal = Journal(job.folder.path)
            job.actions = JobActions(job.config.configuration_name, actions, journal, how)
            stack.callback(job.actions.close)

    def _announcer(self, sinks: Sequence[EventSink]) -> Announcer:
        config = self.config
        name = config.training_job_name or self.walks.name
        return Announcer(
            TrainingJob(name, self.now(), config.event_source),
            [job.folder.path for job in self.jobs],
            sinks,
            [job.evaluation for job in self.jobs],
            self.now,
            modes={rule.configuration_name: rule.mode for rule in config.rules},
            profiling={rule.configuration_name for rule in config.rules if rule.profiler},
            overwrite=config.overwrite,
            lag=self._lag,
        )

    def _lag(self, name: str) -> float:
        """Return for how many seconds the newest files have waited for a rule job."""
        (job,) = (one for one in self.jobs if one.config.configuration_name == name)
        steps = job.walk.steps
        behind = job.live and bool(steps) and job.position < steps[-1]
        return max(0.0, self.clock.monotonic() - self.news_at) if behind else 0.0

    def begin(self) -> None:
        """Record that the rule jobs have begun, and make the rules that can be made."""
        for job in self.jobs:
            job.write()
            self.closing.callback(job.close)
        self.announcer.announce(self.walks.ended)
        self._nursery = nursery_of(self.config)
        if self._nursery is not None:
            self.closing.callback(self._nursery.close)
        self._unmade = [
            (job, bound)
            for job, bound in zip(self.jobs, self._bound, strict=True)
            if not (job.config.lacking or job.config.refused)
        ]
        self.make_rules()

    def make_rules(self) -> None:
        """Make the rules whose trials have what they need for that, unless they are made."""
        now = [one for one in self._unmade if one[0].walk.begun]
        if not now:
            return
        self._unmade = [one for one in self._unmade if one not in now]
        for job, bound in now:
            with self._failing(job):
                trials, folder = self.walks.trials_of(job.config), job.folder.path
                job.invoker = make_invoker(job.config, bound, trials, self._nursery, folder)
        for job, _ in now:  # processes of their own begin side by side
            with self._failing(job):
                job.begin()

    @contextmanager
    def _failing(self, job: RuleJob) -> Iterator[None]:
        """Let a rule that cannot be made be that rule job's error."""
        try:
            yield
        except ClientError as err:
            job.evaluation.rule_failed(CLIENT_ERROR + str(err), self.now())
            self.tell(job)

    def tell(self, job: RuleJob) -> None:
        """Write down how a rule job's status moved, and announce it."""
        job.write()
        self.announce(job)

    def announce(self, job: RuleJob) -> None:
        """Announce how a rule job's status moved; its result is written."""
        evaluation = job.evaluation
        _log.info(
            "status_changed", rule_job=job.config.configuration_name, new=str(evaluation.status)
        )
        self.announcer.announce(self.walks.ended)
        if job.actions is not None and job.first is not None:
            job.actions.begin(self._hit(job, job.first))

    def _hit(self, job: RuleJob, finding: Evidence) -> Hit:
        """Return what the actions of a rule job are told."""
        return hit_of(
            finding,
            FindingIds(job.facts.fingerprint).next(finding),
            rule=job.evaluation.rule,
            rule_job=job.config.configuration_name,
            status=str(job.evaluation.status),
            details=job.evaluation.status_details,
            training_job=self.config.training_job_name or self.walks.name,
        )

    def take_outcomes(self) -> None:
        """Write down what came of actions meanwhile."""
        for job in self.jobs:
            if job.take_outcomes():
                job.write()

    def end_actions(self, *, wait: bool) -> None:
        """Give all actions of what was found an outcome; `wait` for those that have none yet."""
        for job in self.jobs:
            if job.actions is not None and job.first is not None:
                job.actions.end(wait=wait)
                job.take_outcomes()

    def held(self, job: RuleJob) -> str:
        """Say what a rule that judged nothing lacks, or looked for, and what the trial holds."""
        if job.config.lacking or job.evaluation.coverage.judged:
            return job.config.lacking
        trial = self.config.trial_of(job.config)
        return f"{self._sought(job)}Trial {trial!r} {job.walk.holds()}"

    def _sought(self, job: RuleJob) -> str:
        """Say what a rule looked for in vain, and what comes nearest to it."""
        if not job.missed:
            return ""
        shown = job.missed[:_NAMES_SHOWN]
        wanted = ", ".join(one[:_WIDTH] + "..." * (len(one) > _WIDTH) for one in shown)
        near = ", ".join(map(repr, nearest_names(job.missed, job.walk.names())))
        hint = f"The nearest names: {near}. " if near else ""
        return f"It looked for {wanted}. {hint}"

    def result(self) -> EvaluationResult:
        """Return what the evaluation came to so far."""
        trial, profiler_trial = self.walks.summaries()
        return EvaluationResult(
            trial=trial,
            profiler_trial=profiler_trial,
            rules=[job.result() for job in self.jobs],
            notes=[*self.config.notes],
        )
