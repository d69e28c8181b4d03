"""Session: trials, rule jobs and output folders of one evaluation, opened and closed together."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

import structlog

from rule_runner.actions.job_actions import Hit, How, JobActions, hit_of
from rule_runner.actions.journal import ACTIONS, Journal
from rule_runner.actions.planning import planned
from rule_runner.announcer import Announcer
from rule_runner.binding import BoundRule, bind
from rule_runner.config import EvaluationConfig, RuleJobConfig, RuleMode
from rule_runner.durable import remove_files
from rule_runner.errors import ClientError, TrialError
from rule_runner.evaluation import Evaluation
from rule_runner.events import TrainingJob
from rule_runner.finding_ids import FindingIds
from rule_runner.job import RuleJob
from rule_runner.nearest_names import nearest_names
from rule_runner.openings import (
    absent,
    is_there,
    make_invoker,
    nursery_of,
    open_trial,
    real_path,
)
from rule_runner.outputs import OutputFolder
from rule_runner.results import (
    EvaluationResult,
    Evidence,
    RuleJobFacts,
    TrialSummary,
    fingerprint,
    versions,
)
from rule_runner.rule_source import rule_source
from rule_runner.sinks import EventSink
from rule_runner.status import CLIENT_ERROR
from rule_runner.walk import StepWalk
from smdebug.core.clock import Clock
from smdebug.rules.action.base import Action
from smdebug.storage import ObjectNotFoundError, StorageUnavailableError
from smdebug.trials import Trial

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
    trials
        The base trial, then the other trials.
    walk
        Their steps as they become ready.
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
        self._others = config.others_of(*config.rules)
        self.trials = self._open_trials()
        base, *others = (trial.index for trial in self.trials)
        self.walk = StepWalk(
            base,
            others,
            clock,
            config.end_grace,
            config.event_file_wait,
            config.poll_max,
            once=not config.wait,
        )
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

    def _open_trials(self) -> list[Trial]:
        config = self.config
        paths = [(config.trial, config.trial_name), *((one, None) for one in self._others)]
        trials = [open_trial(path, name, config.window) for path, name in paths]
        for trial in trials:
            if not is_there(trial) and not config.wait_for_trial:
                raise TrialError(absent(trial))
        return trials

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
        facts = RuleJobFacts(bound.parameters, trial, rule.mode, identity, versions(), source)
        return RuleJob(rule, evaluation, facts, folder, self.clock, self.now)

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
        name = config.training_job_name or self.trials[0].name
        return Announcer(
            TrainingJob(name, self.now(), config.event_source),
            [job.folder.path for job in self.jobs],
            sinks,
            [job.evaluation for job in self.jobs],
            self.now,
            modes={rule.configuration_name: rule.mode for rule in config.rules},
            overwrite=config.overwrite,
            lag=self._lag,
        )

    def _lag(self, name: str) -> float:
        """Return for how many seconds the newest files have waited for a rule job."""
        steps = self.walk.base.steps
        (job,) = (one for one in self.jobs if one.config.configuration_name == name)
        behind = job.live and bool(steps) and job.position < steps[-1]
        return max(0.0, self.clock.monotonic() - self.news_at) if behind else 0.0

    def begin(self) -> None:
        """Record that the rule jobs have begun, and make their rules."""
        for job in self.jobs:
            job.write(self.walk.ended)
        self.announcer.announce(self.walk.ended)
        nursery = nursery_of(self.config)
        if nursery is not None:
            self.closing.callback(nursery.close)
        for job, bound in zip(self.jobs, self._bound, strict=True):
            self.closing.callback(job.close)
            if job.config.lacking or job.config.refused:
                continue
            with self._failing(job):
                trials, folder = self._trials(job), job.folder.path
                job.invoker = make_invoker(job.config, bound, trials, nursery, folder)
        for job in self.jobs:  # processes of their own begin side by side
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

    def _trials(self, job: RuleJob) -> list[Trial]:
        """Return the trials of a rule job: the base trial, and the other ones that it gets."""
        others = dict(zip(self._others, self.trials[1:], strict=True))
        return [self.trials[0], *(others[one] for one in self.config.others_of(job.config))]

    def tell(self, job: RuleJob) -> None:
        """Write down how a rule job's status moved, and announce it."""
        job.write(self.walk.ended)
        self.announce(job)

    def announce(self, job: RuleJob) -> None:
        """Announce how a rule job's status moved; its result is written."""
        evaluation = job.evaluation
        _log.info(
            "status_changed", rule_job=job.config.configuration_name, new=str(evaluation.status)
        )
        self.announcer.announce(self.walk.ended)
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
            training_job=self.config.training_job_name or self.trials[0].name,
        )

    def take_outcomes(self) -> None:
        """Write down what came of actions meanwhile."""
        for job in self.jobs:
            if job.take_outcomes():
                job.write(self.walk.ended)

    def end_actions(self, *, wait: bool) -> None:
        """Give all actions of what was found an outcome; `wait` for those that have none yet."""
        for job in self.jobs:
            if job.actions is not None and job.first is not None:
                job.actions.end(wait=wait)
                job.take_outcomes()

    def lost_files(self) -> int:
        """Return how many files came after the trial was taken for ended."""
        if not self.walk.ended:
            return 0
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return self.walk.base.lost_files()
        return 0

    def held(self, job: RuleJob) -> str:
        """Say what a rule that judged nothing lacks, or looked for, and what the trial holds."""
        if job.config.lacking or job.evaluation.coverage.judged:
            return job.config.lacking
        trial, index = self.trials[0], self.walk.base
        sought = self._sought(job)
        if not index.steps:
            kind = "readable steps" if index.all_steps else "steps"
            return f"{sought}Trial {trial.path!r} holds no {kind}."
        names = ", ".join(map(repr, sorted(index.collections)[:_NAMES_SHOWN])) or "none"
        return (
            f"{sought}Trial {trial.path!r} holds {len(index.steps)} steps ({index.steps[0]} to "
            f"{index.steps[-1]}), {len(index.names)} tensors and the collections {names}."
        )

    def _sought(self, job: RuleJob) -> str:
        """Say what a rule looked for in vain, and what comes nearest to it."""
        if not job.missed:
            return ""
        shown = job.missed[:_NAMES_SHOWN]
        wanted = ", ".join(one[:_WIDTH] + "..." * (len(one) > _WIDTH) for one in shown)
        near = ", ".join(map(repr, nearest_names(job.missed, self.walk.base.names)))
        hint = f"The nearest names: {near}. " if near else ""
        return f"It looked for {wanted}. {hint}"

    def result(self) -> EvaluationResult:
        """Return what the evaluation came to so far."""
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
        return EvaluationResult(trial=summary, rules=results, notes=[*self.config.notes])
