"""Opens the rule jobs of an evaluation, new or as an earlier process left them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Final

from rule_core.clock import Clock
from rule_core.rules.actions.base import Action
from rule_runner.config.defaults import RuleMode
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.engine.outcome import is_conclusive
from rule_runner.engine.rule_job import RuleJob
from rule_runner.errors import OutputError
from rule_runner.loading.loader import rule_source
from rule_runner.loading.parameters import BoundRule
from rule_runner.logs import get_logger
from rule_runner.notify.actions.journal import Journal
from rule_runner.notify.actions.runner import ActionPolicy, JobActions
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import STEP, WINDOW, RuleJobFacts, fingerprint
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import CLIENT_ERROR
from rule_runner.results.versions import versions
from rule_runner.steps.protocol import StepSource

_log: Final = get_logger(__name__)


class JobOpener:
    """Opens the output folder and the rule jobs of an evaluation.

    Parameters
    ----------
    config
        What to evaluate, and how.
    bound
        The rules with their arguments, in the order of the configuration.
    now
        Returns the current time in UTC.
    stack
        Closes everything that is opened.

    Attributes
    ----------
    folder
        The output folder.

    Raises
    ------
    OutputError
        If the folder cannot be used.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        bound: Sequence[BoundRule],
        clock: Clock,
        now: Callable[[], datetime],
        stack: ExitStack,
    ) -> None:
        self._config = config
        self._clock = clock
        self._now = now
        self._stack = stack
        self._fingerprints = {
            rule.configuration_name: self._fingerprint(rule, bound_rule)
            for rule, bound_rule in zip(config.rules, bound, strict=True)
        }
        overwrite = config.results.overwrite
        self.folder = OutputFolder(config.output, self._fingerprints, overwrite=overwrite)
        stack.callback(self.folder.close)
        self._journal: Journal | None = None

    def open(self, rule: RuleJobConfig, bound: BoundRule, source: StepSource) -> RuleJob:
        """Return a rule job, new or as an earlier process left it."""
        recorded = self.folder.recorded.get(rule.configuration_name)
        facts = RuleJobFacts(
            bound.parameters,
            self._config.trial_of(rule).canonical,
            rule.mode,
            self._fingerprints[rule.configuration_name],
            versions(),
            rule_source(rule.loaded),
            WINDOW if rule.profiler else STEP,
            self.folder.run_id,
        )
        state = self._state(rule, bound)
        return RuleJob(rule, source, state, facts, self.folder, recorded, self._clock, self._now)

    def _fingerprint(self, rule: RuleJobConfig, bound: BoundRule) -> str:
        config = self._config
        return fingerprint(
            rule_source=rule.loaded.source_sha256.encode(),
            rule=rule.loaded.name,
            configuration_name=rule.configuration_name,
            parameters=bound.parameters,
            trial=config.trial_of(rule).canonical,
            other_trials=[other.canonical for other in config.others_of(rule)],
            start_step=rule.start_step,
            end_step=rule.end_step,
            keep_going=config.results.keep_going,
            min_coverage=config.min_coverage_of(rule),
            mutes=[repr(mute) for mute in rule.mutes],
        )

    def _state(self, rule: RuleJobConfig, bound: BoundRule) -> RuleJobState:
        """Return the initial state of a rule job; a rejected one has already failed."""
        name = rule.configuration_name
        state = RuleJobState(rule.loaded.name, name, self._config.results.keep_going, self._now())
        if rule.config_error:
            state.rule_failed(CLIENT_ERROR + rule.config_error, self._now())
        for warning in bound.warnings:
            _log.warning("parameter_left_out", rule_job=name, reason=warning)
            state.note(warning)
        return state

    def add_actions(
        self, job: RuleJob, actions: Sequence[Action], recorded: Callable[[], None]
    ) -> None:
        """Give a rule job its actions, unless it only observes.

        Parameters
        ----------
        recorded
            Called after the intent of an action is in the journal, and before the action.
        """
        messages = self._config.messages
        if actions and job.config.mode is RuleMode.ENFORCE:
            policy = ActionPolicy(
                messages.action_timeout,
                messages.dry_run,
                self._clock,
                self._now,
                recorded,
                self._config.stop_on,
            )
            if self._journal is None:
                self._journal = Journal(self.folder.path)
                self._stack.callback(self._journal.close)
            name = job.config.configuration_name
            job.actions = JobActions(name, actions, self._journal, policy)
            self._stack.callback(job.actions.join)


def restore_ended(jobs: Sequence[RuleJob], config: EvaluationConfig) -> bool:
    """Restore the rule jobs if an earlier process completed all of them; return whether it did.

    Raises
    ------
    OutputError
        If some rule jobs have ended and others are new: the folder is of another evaluation.
    """
    new = [job.config.configuration_name for job in jobs if job.recorded is None]
    if new and any(job.recorded and job.recorded.ended_at for job in jobs):
        msg = (
            f"Output folder {str(config.output)!r} holds an ended evaluation without "
            f"rule job {new[0]!r}. Choose another folder, or use --overwrite."
        )
        raise OutputError(msg)
    conclusive = [
        (job, result)
        for job in jobs
        if (result := job.recorded) is not None
        and result.ended_at is not None
        and result.mode == job.config.mode
        and is_conclusive(result, keep_going=config.results.keep_going)
    ]
    if len(conclusive) < len(jobs):
        return False
    for job, result in conclusive:
        job.restore(result)
    return True
