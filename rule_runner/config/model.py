"""RuleJobConfig and EvaluationConfig: a resolved evaluation, ready to run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rule_core.severity import Severity
from rule_core.sources.address import TrialAddress, address_of
from rule_core.sources.options import SourceOptions
from rule_runner.config.defaults import (
    DEFAULT_SCAN_INTERVAL_US,
    DEFAULT_WINDOW,
    Isolation,
    RuleMode,
)
from rule_runner.errors import UsageError
from rule_runner.loading.parameters import other_trials
from rule_runner.loading.trials import trial_address
from rule_runner.results.file_names import DEFAULT_OUTPUTS

if TYPE_CHECKING:
    from rule_core.rules.actions.base import Action
    from rule_runner.config.job_file.ignore import Mute
    from rule_runner.config.request import ContainerRule
    from rule_runner.loading.loader import LoadedRule

_S3: Final = re.compile(r"s3[an]?:/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RuleJobConfig:
    """One rule job: the rule class, the name of the job, and the parameters as text.

    Attributes
    ----------
    operator_actions
        Actions on the first finding, in addition to those in `actions`, which is JSON text.
    mode
        What happens on a finding.
    missing_parameter
        A sentence that names the required parameter without a value; "" if there is none.
    config_error
        Why the rule job fails before anything runs; "" if it does not.
    other_trials
        Paths of trials to compare with, in addition to those of the evaluation.
    profiler
        Whether the rule judges time windows of profiler data instead of steps.
    window_us
        Length of a window in microseconds.
    min_coverage
        Minimum share of its steps that the rule must judge; None: that of the evaluation.
    mutes
        The findings to mute.
    """

    configuration_name: str
    loaded: "LoadedRule"
    parameters: Mapping[str, str] = field(default_factory=dict)
    actions: str = ""
    start_step: int | None = None
    end_step: int | None = None
    mode: RuleMode = RuleMode.ENFORCE
    missing_parameter: str = ""
    operator_actions: "tuple[Action, ...]" = ()
    config_error: str = ""
    other_trials: tuple[str, ...] = ()
    profiler: bool = False
    window_us: int = DEFAULT_SCAN_INTERVAL_US
    min_coverage: float | None = None
    mutes: "tuple[Mute, ...]" = ()

    @property
    def is_rejected(self) -> bool:
        """Whether the rule job fails before its rule is constructed."""
        return bool(self.missing_parameter or self.config_error)


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """What an evaluation waits for, and for how long; as in `EvaluationRequest`."""

    wait: bool
    as_it_is: bool
    wait_for_trial: float
    timeout: float | None
    idle_timeout: float | None
    end_grace: float
    event_file_wait: float
    poll_max: float
    stop_grace: float
    pause_file: str | None


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """Where rules run and trials are measured; as in `EvaluationRequest`."""

    isolate: Isolation
    rule_timeout: float | None
    own_processes: bool
    measure_on: str | None
    measurements: str | None


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What is recorded of an evaluation; as in `EvaluationRequest`."""

    overwrite: bool
    report: bool
    keep_going: bool
    follow_issues: bool
    tag_run: bool

    @property
    def goes_on(self) -> bool:
        """Whether rules judge further steps after their first finding."""
        return self.keep_going or self.follow_issues


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """What events and actions say, and their limits; as in `EvaluationRequest`."""

    event_source: str
    training_job_name: str | None
    container: "ContainerRule | None"
    sink_deadline: float
    action_timeout: float
    dry_run: bool


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """One evaluation as `resolve` makes it of a request, ready to run.

    `start_step` and `end_step` of a rule job limit the steps it judges,
    ``start_step <= step < end_step``, but not the earlier steps that the rule may read.

    Attributes
    ----------
    trial
        The trial of tensors, or else that of profiler data.
    trial_name
        Name in results and events; None: that of its folder.
    other_trials
        Paths of the trials that every rule compares with, before its own.
    sources
        How to read outputs of other writers.
    profiler_trial
        The profiler data; None if that is `trial`.
    output
        The output folder.
    notes
        Sentences for the result as a whole.
    left_out
        Rules that are not evaluated, by name, with the reason: listed in the report.
    window
        Wait window for incomplete steps.
    min_coverage
        Minimum share of its steps that a rule must judge for ``NoIssuesFound``.
    stop_on
        The severity from which actions that stop a training are carried out.
    stop_files
        The evaluation stops `stop_grace` seconds after the time that such a file contains.
    profiler_stop_files
        Such a file marks the end of the profiler data, as the end of the job does.
    """

    rules: tuple[RuleJobConfig, ...]
    trial: TrialAddress
    output: Path
    waits: WaitOptions
    processes: ProcessOptions
    results: ResultOptions
    messages: MessageOptions
    trial_name: str | None
    other_trials: tuple[str, ...]
    sources: SourceOptions
    profiler_trial: TrialAddress | None = None
    window: int = DEFAULT_WINDOW
    min_coverage: float = 0.0
    stop_on: Severity = Severity.ERROR
    stop_files: tuple[Path, ...] = ()
    profiler_stop_files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def others_of(self, *rules: RuleJobConfig) -> tuple[TrialAddress, ...]:
        """Return the other trials of rules: the common ones, then their own.

        Raises
        ------
        TrialError
            If one has an unknown format.
        """
        own = [(*rule.other_trials, *other_trials(rule.loaded, rule.parameters)) for rule in rules]
        return tuple(map(trial_address, dict.fromkeys(chain(self.other_trials, *own))))

    @property
    def is_remote(self) -> bool:
        """Whether a trial is in S3."""
        trials = (self.trial, self.profiler_trial, *self.others_of(*self.rules))
        return any(trial.is_in_s3 for trial in trials if trial)

    def trial_of(self, rule: RuleJobConfig) -> TrialAddress:
        """Return the trial that a rule judges."""
        return (self.profiler_trial or self.trial) if rule.profiler else self.trial

    def min_coverage_of(self, rule: RuleJobConfig) -> float:
        """Return the minimum share of its steps that a rule must judge."""
        return self.min_coverage if rule.min_coverage is None else rule.min_coverage

    def folder_of(self, rule: RuleJobConfig) -> Path:
        """Return the folder for the files that a rule itself writes."""
        return self.output if len(self.rules) == 1 else self.output / rule.configuration_name


def check_is_local(place: str | Path, option: str) -> None:
    """Reject an address in S3, including one that lost a slash when it was read as a path.

    Raises
    ------
    UsageError
        If `place` is such an address.
    """
    if _S3.match(str(place)):
        raise UsageError(f"{option} must be a folder of this machine, got {str(place)!r}.")


def default_output(trial: str, now: datetime | None = None) -> Path:
    """Return ``./rule-output/<trial name>-<time>/``, with a number if that exists.

    >>> default_output("/runs/mnist/", datetime(2026, 1, 2, 3, 4, 5))
    PosixPath('rule-output/mnist-20260102-030405')
    >>> default_output("s3://bucket/runs/mnist", datetime(2026, 1, 2, 3, 4, 5))
    PosixPath('rule-output/mnist-20260102-030405')
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", address_of(trial).name).lstrip(".-") or "trial"
    moment = now or datetime.now().astimezone()
    stem = f"{name[:100]}-{moment:%Y%m%d-%H%M%S}"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(path for name in names if not (path := Path(DEFAULT_OUTPUTS, name)).exists())
