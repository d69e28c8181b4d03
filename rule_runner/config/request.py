"""EvaluationRequest: what a user asks to evaluate; it round-trips through JSON."""

import sys
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from rule_core.severity import Severity
from rule_core.sources.options import SourceOptions
from rule_runner.config.defaults import (
    BASELINE,
    DEFAULT_ACTION_TIMEOUT_S,
    DEFAULT_END_GRACE_S,
    DEFAULT_EVENT_FILE_WAIT_S,
    DEFAULT_IDLE_TIMEOUT_S,
    DEFAULT_POLL_MAX_S,
    EVERY_RULE,
    FITTING_RULES,
    Isolation,
    Issue,
)
from rule_runner.config.job_file.definition import JobDefinition
from rule_runner.errors import UsageError, unreadable
from rule_runner.notify.delivery import DEADLINE_S

Step = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
TimeLimit = Annotated[float, Meta(gt=0)]

STDIN: Final = "-"
_LONGEST_S: Final = 1e9  # JSON has no infinity


class RuleRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rule as the user asks for it: by name, by source file, or both.

    Attributes
    ----------
    id
        Name of the rule job; None: the name of the rule.
    name
        A built-in rule, or a class in the source file.
    source
        A path or an address.
    """

    id: str | None = None
    name: str | None = None
    source: str | None = None


class ContainerRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rule of a SageMaker rule container.

    Attributes
    ----------
    name
        Name of the rule job.
    environment
        Variables that configure the runner, such as ``rule_to_invoke`` and ``start_step``.
    parameters
        The declared parameters; None: variables of the process that the rule knows.
    profiler
        Whether a custom rule evaluates profiler data.
    training_job_arn, rule_job_arn
        ARNs of the training job and of this rule job; "" if the platform gave none.
    """

    name: str
    environment: Mapping[str, str]
    parameters: Mapping[str, str] | None = None
    profiler: bool = False
    training_job_arn: str = ""
    rule_job_arn: str = ""


class EvaluationRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One evaluation as requested; `resolve` turns it into what the engine runs.

    Times are seconds; None is no limit. Texts have the form of the command line's options.

    Attributes
    ----------
    rules, job, container
        Where the rules come from: one of the three.
    parameters
        ``[ID.]KEY=VALUE`` for `rules`.
    modes
        ``[ID=]enforce|observe``.
    actions
        ``[ID=]KIND:TARGET``.
    sinks
        ``KIND[:TARGET][,region=R]``.
    start_step, end_step
        Global steps to evaluate, ``start_step <= step < end_step``.
    min_coverage
        Minimum share of steps; None: that of `job`, else 0.
    keep_going, follow_issues
        Whether rules go on after their first finding: to list each further one, or only to learn
        whether it recovers.
    output
        Folder or ``s3://`` address; None: a new folder in ``rule-output``.
    sources
        How to read outputs of other writers; it precedes that of `job`.
    baseline, trend
        A file of ``rule-runner baseline make``, by which the rule `Baseline` judges the run in
        addition to other rules, and a folder of earlier runs.
    fail_on
        The severity from which an issue sets the exit code; `fail_on_issues` means ``warning``.
    stop_on
        The severity from which actions that stop a training are carried out; None: that of `job`,
        else ``error``.
    window
        Wait window for incomplete steps; None: that of the environment.
    measure_on
        An executor, such as ``local:4``, whose workers measure the trial; None: this process does.
    measurements
        A folder or address with what ``rule-runner measure`` has measured of the trial.
    as_it_is
        Whether a log that may still grow is judged up to its last complete row.
    tag_run
        Whether the run of TensorBoard or MLflow that is judged gets the verdicts.
    stop_file
        Path of a file that ends the evaluation, relative to the trial; None: that of the
        environment.
    pause_file
        Path of a file that pauses the evaluation while it waits for new data: the process ends
        without verdicts, and the same request continues it.
    """

    trial: str | None = None
    profiler_trial: str | None = None
    trial_name: str | None = None
    other_trials: tuple[str, ...] = ()
    rules: tuple[RuleRequest, ...] = ()
    job: JobDefinition | None = None
    container: ContainerRule | None = None
    baseline: str | None = None
    trend: str | None = None
    sources: SourceOptions = SourceOptions()
    parameters: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    start_step: Step | None = None
    end_step: Step | None = None
    min_coverage: Annotated[float, Meta(ge=0, le=1)] | None = None
    keep_going: bool = False
    follow_issues: bool = False
    wait: bool = True
    as_it_is: bool = False
    wait_for_trial: Seconds = 0.0
    timeout: TimeLimit | None = None
    idle_timeout: Seconds | None = DEFAULT_IDLE_TIMEOUT_S
    rule_timeout: TimeLimit | None = None
    end_grace: Seconds = DEFAULT_END_GRACE_S
    event_file_wait: Seconds = DEFAULT_EVENT_FILE_WAIT_S
    poll_max: Annotated[float, Meta(ge=0.1)] = DEFAULT_POLL_MAX_S
    window: Step | None = None
    stop_file: str | None = None
    stop_grace: Seconds = 60.0
    pause_file: str | None = None
    isolate: Isolation = Isolation.NONE
    measure_on: str | None = None
    measurements: str | None = None
    output: str | None = None
    overwrite: bool = False
    retention: str | None = None
    report: bool = True
    format: Literal["table", "json", "junit", "sarif", "brief"] = "table"
    sinks: tuple[str, ...] = ()
    sink_deadline: Seconds = DEADLINE_S
    actions: tuple[str, ...] = ()
    action_timeout: TimeLimit = DEFAULT_ACTION_TIMEOUT_S
    dry_run: bool = False
    event_source: str = "rule-runner"
    training_job_name: str | None = None
    fail_on_issues: bool = False
    fail_on: Issue | None = None
    stop_on: Issue | None = None
    tag_run: bool = False
    quiet: bool = False
    verbose: int = 0

    @property
    def any_trial(self) -> str:
        """The trial of tensors, or else that of profiler data.

        Raises
        ------
        UsageError
            If there is neither.
        """
        trial = self.trial or self.profiler_trial
        if trial is not None:
            return trial
        msg = "No trial was given: give --trial PATH, or --profiler-trial PATH for profiler rules."
        if self.job is not None:
            msg = (
                "No trial was given, and the job file does not say where one is saved, with "
                "TrainingJobName and S3OutputPath of DebugHookConfig. Give --trial PATH."
            )
        raise UsageError(msg)

    def with_baseline(self) -> "EvaluationRequest":
        """Return the request with the rule `Baseline` among its rules, if it has a baseline.

        Raises
        ------
        UsageError
            If it has a trend alone.
        """
        if self.baseline is None:
            if self.trend is not None:
                raise UsageError("Option --trend requires --baseline.")
            return self
        paths = {"baseline": self.baseline, "trend": self.trend}
        return msgspec.structs.replace(
            self,
            rules=(*self.rules, RuleRequest(name=BASELINE)),
            parameters=(*self.parameters, *(f"{BASELINE}.{k}={v}" for k, v in paths.items() if v)),
            **dict.fromkeys(paths),
        )

    def check_rules(self) -> None:
        """Check that rules are requested, in one way.

        Raises
        ------
        UsageError
            If they are not.
        """
        ways = [bool(self.rules), self.job is not None, self.container is not None]
        if not any(ways):
            raise UsageError("No rule was given: give --rule auto, --rule NAME or --source FILE.")
        if sum(ways) > 1:
            raise UsageError(
                "A request has 'rules', a 'job' or a 'container', not several of them."
            )

    def check_measuring(self) -> None:
        """Check that the rules run where the measures arrive.

        Raises
        ------
        UsageError
            If they run in processes of their own, or measures come from two places.
        """
        if self.measure_on is not None and self.measurements is not None:
            raise UsageError(
                "Options --measure-on and --measurements cannot be combined. Choose one."
            )
        option = "--measurements" if self.measure_on is None else "--measure-on"
        if (self.measure_on or self.measurements) is not None and self.own_processes:
            what = "--rule-timeout" if self.isolate is Isolation.NONE else "--isolate process"
            raise UsageError(
                f"Option {option} cannot be combined with {what}, which lets each rule read "
                "the trial itself. Leave one of them out."
            )

    @property
    def fails_on(self) -> Severity | None:
        """The severity from which an issue sets the exit code; None: issues do not set it."""
        if self.fail_on_issues:
            return Severity.WARNING
        return None if self.fail_on is None else Severity(self.fail_on)

    @property
    def source_options(self) -> SourceOptions:
        """How to read outputs of other writers: as the request says, then as its job says."""
        if self.job is None:
            return self.sources
        return self.sources.over(self.job.sources)

    @property
    def own_processes(self) -> bool:
        """Whether each rule runs in a process of its own."""
        return self.rule_timeout is not None or self.isolate is not Isolation.NONE

    @property
    def every_rule(self) -> bool:
        """Whether rules are requested as a group: some may then have nothing to evaluate."""
        groups = (EVERY_RULE, FITTING_RULES)
        return any(rule.id is None and rule.name in groups for rule in self.rules)

    @property
    def fits_rules(self) -> bool:
        """Whether the rules that fit the trial are requested."""
        return any(rule.source is None and rule.name == FITTING_RULES for rule in self.rules)

    def to_json(self) -> str:
        """Return the request as JSON text, without fields that have their default."""
        times = {name: _LONGEST_S for name in self.__struct_fields__ if getattr(self, name) == inf}
        return msgspec.json.encode(msgspec.structs.replace(self, **times)).decode()


def read_request(text: str) -> EvaluationRequest:
    """Return the request in a file, on standard input (``-``), or in JSON text itself.

    Raises
    ------
    UsageError
        If it cannot be read or is not a request.
    """
    is_json = text.lstrip().startswith("{")
    source = "" if is_json else " from standard input" if text == STDIN else f" from {text!r}"
    try:
        with unreadable(f"Request{source}", UsageError, OSError):
            content = text if is_json else _content(text)
        return msgspec.json.decode(content, type=EvaluationRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"Request{source} is not valid: {str(err).rstrip('.')}.") from err


def _content(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
