"""EvaluationContext: the trials, the rule jobs and the output folder of one evaluation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from rule_core.clock import Clock
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.wait_budget import WaitBudget
from rule_runner.config.model import EvaluationConfig
from rule_runner.engine.invoker_factory import make_fork_server, make_invoker
from rule_runner.engine.job_opener import open_jobs, restore_ended
from rule_runner.engine.rule_job import RuleJob
from rule_runner.errors import ClientError
from rule_runner.file_descriptors import require
from rule_runner.logs import get_logger
from rule_runner.notify.actions.runner import ActionPolicy, finding_trigger
from rule_runner.notify.event import EventSubject
from rule_runner.notify.publisher import EventPublisher
from rule_runner.notify.sinks import EventSink
from rule_runner.results.issues.acknowledged import FindingIds
from rule_runner.results.issues.incidents import incident_records
from rule_runner.results.schema import (
    EvaluationResult,
    OtherTrial,
    RuleResult,
    summary,
)
from rule_runner.results.status import CLIENT_ERROR
from rule_runner.steps.sources import StepSources

if TYPE_CHECKING:
    from rule_runner.engine.isolation.fork_server import ForkServer
    from rule_runner.engine.measuring import TrialMeasuring

_log: Final = get_logger(__name__)
WRITE_EVERY_S: Final = 2.0


class EvaluationContext:
    """The trials, rule jobs and output folder of one evaluation, opened and closed together.

    Parameters
    ----------
    config
        What to evaluate, and how.
    sinks
        Receivers of events, in addition to the output folder.
    patience
        Bounds the waits for the storage of trials.
    executor
        Where to measure the trial; None measures it in this process.
    recorded
        Called after something that a restart needs is written to the output folder, and before
        it takes effect: the run ID before the first event, the intent before each action.

    Attributes
    ----------
    step_sources
        The trials, and their steps as they become ready.
    jobs
        The rule jobs; `begin` constructs their rules.
    changed
        The rule jobs whose new statuses are not recorded yet.
    last_change
        When the trials last changed, in seconds of the monotonic clock.
    written
        When the results were last written, in seconds of the monotonic clock.
    closing
        Closes everything that was opened.
    earlier
        Whether an earlier process completed this evaluation; see `is_conclusive`.

    Raises
    ------
    ClientError
        If the trial does not exist, or a parameter is wrong.
    OutputError
        If the output folder cannot be used.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        sinks: Sequence[EventSink],
        clock: Clock,
        patience: WaitBudget,
        recorded: Callable[[], None],
        executor: Executor | None = None,
    ) -> None:
        self.config = config
        self._recorded = recorded
        self.clock = clock
        self._patience = patience
        processes = config.processes.own_processes
        require(len(config.rules), processes=processes, remote=config.is_remote)
        self.step_sources = StepSources(config, clock, patience)
        self._measuring = self._make_measuring(executor)
        if self._measuring is not None:
            self._measuring.attach(self.step_sources.trials)
        self.changed: list[RuleJob] = []
        self._unmade: list[RuleJob] = []
        self._fork_server: ForkServer | None = None
        self.last_change = self.written = clock.monotonic()
        with ExitStack() as stack:
            # What an evaluation is made of refers to itself, so Python may free it much later.
            stack.callback(self.step_sources.clear_cached_bytes)
            messages = config.messages
            policy = ActionPolicy(
                messages.action_timeout,
                messages.dry_run,
                clock,
                self.now,
                recorded,
                config.stop_on,
            )
            self.folder, self.jobs = open_jobs(config, self.step_sources, policy, stack)
            self.step_sources.recorded = {
                other.path: other.whole for job in self.jobs for other in job.other_trials
            }
            self.earlier = restore_ended(self.jobs, config)
            self.publisher = self._publisher(sinks)
            stack.callback(self.publisher.close)
            if self._measuring is not None:
                stack.callback(self._measuring.close)
            self.closing = stack.pop_all()

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.fromtimestamp(self.clock.time(), UTC)

    def resume(self) -> None:
        """Carry out the actions that an earlier process left; the sinks are already sending."""
        with suppress(StorageUnavailableError):  # only the summary of the trial depends on it
            self.step_sources.look()
        for job in self.jobs:
            self._begin_actions(job)
        self.end_actions(wait=True)
        if any(job.result() != job.recorded for job in self.jobs):
            self.write()

    def _publisher(self, sinks: Sequence[EventSink]) -> EventPublisher:
        config = self.config
        return EventPublisher(
            self._event_subject(),
            self.folder.path,
            sinks,
            [job.state for job in self.jobs],
            self.now,
            modes={rule.configuration_name: rule.mode for rule in config.rules},
            profiling={rule.configuration_name for rule in config.rules if rule.profiler},
            lag=self._lag,
            run_id=self.folder.run_id,
        )

    def _event_subject(self) -> EventSubject:
        messages = self.config.messages
        name = messages.training_job_name or self.step_sources.name
        if (rule := messages.container) is None:
            return EventSubject(name, self.now(), messages.event_source)
        return EventSubject.in_sagemaker(
            name,
            self.now(),
            messages.event_source,
            rule.training_job_arn,
            {rule.name: rule.rule_job_arn},
        )

    def _lag(self, name: str) -> float:
        """Return how many seconds the newest files have been waiting for a rule job."""
        (job,) = (job for job in self.jobs if job.config.configuration_name == name)
        steps = job.step_source.steps
        behind = job.live and bool(steps) and job.position < steps[-1]
        return max(0.0, self.clock.monotonic() - self.last_change) if behind else 0.0

    def begin(self) -> None:
        """Record the start of the rule jobs, and construct the rules whose trials are ready."""
        for job in self.jobs:
            self.closing.callback(job.close)
        self.write()
        self._recorded()
        self.publisher.publish_status(self.step_sources.ended)
        self._fork_server = make_fork_server(self.config)
        if self._fork_server is not None:
            self.closing.callback(self._fork_server.close)
        self._unmade = [job for job in self.jobs if not job.config.is_rejected]
        self.make_rules()

    def make_rules(self) -> None:
        """Construct the remaining rules whose trials have the data that this takes."""
        ready = [job for job in self._unmade if job.step_source.begun]
        if not ready:
            return
        self._unmade = [job for job in self._unmade if not job.step_source.begun]
        for job in ready:
            with self._failing(job):
                trials = self.step_sources.trials_of(job.config)
                addresses = self.config.others_of(job.config)
                job.show(
                    [
                        OtherTrial(address.canonical, trial.is_whole)
                        for address, trial in zip(addresses, trials[1:], strict=False)
                    ]
                )
                job.invoker = make_invoker(
                    job.config,
                    job.bound,
                    trials,
                    self._fork_server,
                    self.config.folder_of(job.config),
                    self._patience,
                    self.config.sources,
                )
        if any(job.other_trials for job in ready):  # before their first step
            self.write()
        for job in ready:  # their processes start side by side
            with self._failing(job):
                job.begin()

    def _make_measuring(self, executor: Executor | None) -> "TrialMeasuring | None":
        """Return who else measures the trial; None if nobody does."""
        folder = self.config.processes.measurements
        if executor is None and folder is None:
            return None
        from rule_runner.engine.measuring import MeasuringOnExecutor, StoredMeasuring

        if executor is not None:
            return MeasuringOnExecutor(executor, self._patience.remaining_s)
        return None if folder is None else StoredMeasuring(folder)

    def begin_measuring(self) -> None:
        """Start to measure what the constructed rules declare, if others are to measure it."""
        if self._measuring is not None and not self._unmade:
            self._measuring.attach(self.step_sources.trials)
            self._measuring.begin(self.jobs)

    @contextmanager
    def _failing(self, job: RuleJob) -> Iterator[None]:
        """End the rule job with an error if its rule cannot be constructed."""
        try:
            yield
        except ClientError as err:
            job.state.rule_failed(CLIENT_ERROR + str(err), self.now())
            self.record([job])

    def record(self, changed: Iterable[RuleJob] = ()) -> None:
        """Write the results, publish the new statuses of rule jobs, and start their actions.

        Without a change the results are written now and then.
        """
        changed = [*self.changed, *changed]
        self.changed = []
        if not changed:
            if self.clock.monotonic() - self.written >= WRITE_EVERY_S:
                self.write()
            return
        self.write()
        for job in changed:
            name, status = job.config.configuration_name, str(job.state.status)
            _log.info("status_changed", rule_job=name, new=status)
        self.publisher.publish_status(self.step_sources.ended)
        for job in changed:
            self._begin_actions(job)

    def write(self, *, final: bool = False, caught_up: bool = False) -> None:
        """Write the results so far, and at the end the measurements before them.

        For `final` and `caught_up` see `RuleJob.result_to_record`.
        """
        self.written = self.clock.monotonic()
        if final and self.config.results.report:
            self.folder.write_measurements(
                {job.config.configuration_name: job.measurements.record() for job in self.jobs}
            )
        rules = [job.result_to_record(final=final, caught_up=caught_up) for job in self.jobs]
        self.folder.write(self._evaluation(rules))

    def _begin_actions(self, job: RuleJob) -> None:
        """Start the actions of a rule job that its findings trigger."""
        if job.actions is None:
            return
        training_job = self.config.messages.training_job_name or self.step_sources.name
        for finding in job.triggers:
            finding_id = FindingIds(job.facts.fingerprint, job.facts.run_id).next(finding)
            trigger = finding_trigger(finding, finding_id, job.state, training_job)
            job.actions.begin(trigger, finding.severity)

    def record_action_results(self) -> None:
        """Write the results of rule jobs whose actions have made progress."""
        changed = [job for job in self.jobs if job.actions_changed()]
        if changed:
            self.write()

    def end_actions(self, *, wait: bool) -> None:
        """Give every action that was triggered an outcome; `wait` for those that still run."""
        for job in self.jobs:
            if job.actions is not None and job.triggers:
                job.actions.end(wait=wait)
                job.actions_changed()

    def result(self) -> EvaluationResult:
        """Return the result of the evaluation so far."""
        return self._evaluation([job.result() for job in self.jobs])

    def _evaluation(self, rules: list[RuleResult]) -> EvaluationResult:
        trial, profiler_trial = self.step_sources.summaries()
        if self.earlier:  # the trial itself is not waited for again
            ended = trial.ended or all(rule.trial_ended for rule in rules)
            trial = replace(trial, ended=ended)
        return EvaluationResult(
            summary=summary(rules, self.config.left_out),
            trial=trial,
            profiler_trial=profiler_trial,
            rules=rules,
            notes=[*self.config.notes, *(self._measuring.notes() if self._measuring else ())],
            run_id=self.folder.run_id,
            left_out={**self.config.left_out},
            incidents=incident_records(rules),
        )
