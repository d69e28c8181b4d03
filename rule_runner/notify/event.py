"""Events about changes of rule statuses, in the shape of SageMaker's own."""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeAlias

import msgspec

from rule_core.model.segments import global_step, numbers_of
from rule_core.severity import Severity
from rule_runner.errors import UsageError
from rule_runner.results.json_text import json_digest
from rule_runner.results.status import DETAILED, FindingState, RuleStatus

Event: TypeAlias = dict[str, object]

DETAIL_TYPE: Final = "SageMaker Training Job State Change"
DEFAULT_SOURCE: Final = "rule-runner"
COMPLETED: Final = "Completed"
LISTS: Final = ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
RESERVED_SOURCE: Final = "aws."  # EventBridge accepts it from AWS services only
SOURCE_LIMIT: Final = 256  # characters
NAME_LIMIT: Final = 63  # characters of a training job's name in the SageMaker API
JOB_NAME_PART: Final = 26  # characters of each name in the name of a rule's processing job

_ARN: Final = re.compile(r"arn:[a-z-]+:sagemaker:([a-z0-9-]{1,64}):([0-9]{12}):[a-z-]+/.+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9-]")


def check_source(source: str) -> None:
    """Check the source of events.

    Raises
    ------
    UsageError
        If it is empty, too long for EventBridge, or reserved for AWS.
    """
    if not source or source.casefold().startswith(RESERVED_SOURCE):
        raise UsageError(
            f"Event source must not be empty or begin with 'aws.', got {source!r}. "
            "That prefix is reserved for AWS services."
        )
    if len(source) > SOURCE_LIMIT:
        raise UsageError(
            f"Event source must have at most {SOURCE_LIMIT} characters, got {len(source)}."
        )


@dataclass(frozen=True, slots=True)
class EventSubject:
    """The training job that events are about.

    Attributes
    ----------
    name
        The name that users know; ARNs contain a form that the API accepts.
    started_at
        Start of its evaluation; aware.
    training_job_arn
        The ARN of a job in SageMaker; "" makes a synthetic one.
    rule_job_arns
        Those of rule jobs in SageMaker, by configuration name; the others are synthetic.

    Raises
    ------
    UsageError
        If the source is invalid.
    """

    name: str
    started_at: datetime
    source: str = DEFAULT_SOURCE
    region: str = "us-east-1"
    account: str = "000000000000"
    training_job_arn: str = ""
    rule_job_arns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def in_sagemaker(
        cls,
        name: str,
        started_at: datetime,
        source: str,
        training_job_arn: str,
        rule_job_arns: Mapping[str, str],
    ) -> Self:
        """Return a job in the region and account of its ARNs; what is no ARN is ignored."""
        arns = {key: arn for key, arn in rule_job_arns.items() if _ARN.fullmatch(arn)}
        training = training_job_arn if _ARN.fullmatch(training_job_arn) else ""
        match = _ARN.fullmatch(training or next(iter(arns.values()), ""))
        if match is None:
            return cls(name, started_at, source)
        return cls(name, started_at, source, match[1], match[2], training, arns)

    def __post_init__(self) -> None:
        """Check the source, which users set."""
        check_source(self.source)

    @property
    def arn(self) -> str:
        """The ARN of the training job; a synthetic one passes the API's pattern."""
        return self.training_job_arn or self._arn(
            "training-job", _name_part(self.name, NAME_LIMIT).rstrip("-")
        )

    def rule_job_arn(self, configuration_name: str) -> str:
        """Return the ARN of the processing job of one rule; synthetic ones are in lower case."""
        if configuration_name in self.rule_job_arns:
            return self.rule_job_arns[configuration_name]
        suffix = json_digest([self.name, configuration_name], 8)
        first = _name_part(self.name, JOB_NAME_PART)
        second = _name_part(configuration_name, JOB_NAME_PART)
        return self._arn("processing-job", f"{first}-{second}-{suffix}".lower())

    def _arn(self, kind: str, name: str) -> str:
        return f"arn:aws:sagemaker:{self.region}:{self.account}:{kind}/{name}"


@dataclass(frozen=True, slots=True)
class RuleState:
    """The status of one rule job of this process.

    Attributes
    ----------
    mode
        ``enforce`` or ``observe``.
    steps_evaluated
        Number of steps judged.
    last_step
        The last of them, a global step; None before the first.
    lag_s
        Seconds for which the newest files have had steps that are not judged yet.
    profiler
        Whether its rule judges profiler data.
    severity
        That of the most serious finding; None without issues.
    finding_state, state_step
        See `RuleJobState`.
    summary, advice
        Of its first finding.
    """

    configuration_name: str
    status: RuleStatus
    details: str | None = None
    mode: str = "enforce"
    steps_evaluated: int = 0
    last_step: int | None = None
    lag_s: float = 0.0
    profiler: bool = False
    severity: Severity | None = None
    finding_state: FindingState | None = None
    state_step: int | None = None
    summary: str | None = None
    advice: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Name and status, which tell events apart; so do mild severities, and recoveries."""
        mild = "" if self.severity in {None, Severity.ERROR} else f" ({self.severity})"
        since = "" if self.state_step is None else f" {self.finding_state} since {self.state_step}"
        return self.configuration_name, f"{self.status}{mild}{since}"


class _StatusEntry(msgspec.Struct, rename="pascal"):
    rule_configuration_name: str
    rule_evaluation_status: RuleStatus
    rule_evaluation_mode: str = "enforce"
    status_details: str | None = None
    steps_evaluated: int = 0
    last_step: int | None = None
    last_segment: int = 0
    evaluation_lag_seconds: float = 0.0
    rule_evaluation_severity: Severity | None = None
    rule_evaluation_state: FindingState | None = None
    state_step: int | None = None
    state_segment: int = 0

    def state(self, finding: "_FindingEntry | None", *, profiler: bool) -> RuleState:
        last, since = self.last_step, self.state_step
        if last is not None:
            last = global_step(self.last_segment, last)
        if since is not None:
            since = global_step(self.state_segment, since)
        return RuleState(
            self.rule_configuration_name,
            self.rule_evaluation_status,
            self.status_details,
            self.rule_evaluation_mode,
            self.steps_evaluated,
            last,
            self.evaluation_lag_seconds,
            profiler,
            self.rule_evaluation_severity,
            self.rule_evaluation_state,
            since,
            finding.summary if finding else None,
            finding.advice if finding else None,
        )


class _FindingEntry(msgspec.Struct, rename="pascal"):
    rule_configuration_name: str
    summary: str
    advice: str = ""


class EventDetail(msgspec.Struct, rename="pascal"):
    """The fields of an event's ``detail`` that rule-runner reads back."""

    event_key: str
    event_sequence: int
    training_job_status: str = ""
    debug_rule_evaluation_statuses: list[_StatusEntry] = []
    profiler_rule_evaluation_statuses: list[_StatusEntry] = []
    findings: list[_FindingEntry] = []

    def states(self) -> Iterator[RuleState]:
        """Yield the states of the rule jobs, those over tensors first."""
        findings = {finding.rule_configuration_name: finding for finding in self.findings}
        for profiler, entries in (
            (False, self.debug_rule_evaluation_statuses),
            (True, self.profiler_rule_evaluation_statuses),
        ):
            for entry in entries:
                yield entry.state(findings.get(entry.rule_configuration_name), profiler=profiler)


class DecodedEvent(msgspec.Struct):
    """An event, decoded from JSON."""

    detail: EventDetail


def statuses(detail: Mapping[str, Any]) -> list[Any]:
    """Return the entries of all rule jobs of an event, those over tensors first."""
    return [entry for name in LISTS for entry in detail.get(name, ())]


def build_event(
    job: EventSubject,
    rules: Sequence[RuleState],
    *,
    training_ended: bool,
    now: datetime,
    sequence: int,
    changed: Sequence[str] | None = None,
    run_id: str = "",
) -> Event:
    """Return the event with the statuses of all `rules`.

    Parameters
    ----------
    job
        The training job.
    rules
        Every rule job of this process, also those whose status did not change: consumers
        treat the list as complete.
    training_ended
        Whether the trial has its end mark.
    now
        The current time; aware.
    sequence
        ``EventSequence``: `Outbox.next_sequence`.
    changed
        Names of the rule jobs whose status differs from the last published one; None means all.
    run_id
        Unique identifier of this evaluation.

    Returns
    -------
    Event
        JSON-ready. ``EventKey`` and ``id`` depend on the evaluation, names and statuses only: the
        same statuses have the same key after a restart, and no other evaluation uses that key.
    """
    training_status = COMPLETED if training_ended else "InProgress"
    changed = [rule.configuration_name for rule in rules] if changed is None else list(changed)
    identities = (field for rule in rules for field in rule.identity)
    key = json_digest([run_id, job.name, training_status, *identities])
    modified = _milliseconds(now)
    return {
        "version": "0",
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, key)),
        "detail-type": DETAIL_TYPE,
        "source": job.source,
        "account": job.account,
        "time": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": job.region,
        "resources": [job.arn],
        "detail": {
            "TrainingJobName": job.name,
            "TrainingJobArn": job.arn,
            "TrainingJobStatus": training_status,
            "SecondaryStatus": COMPLETED if training_ended else "Training",
            "CreationTime": _milliseconds(job.started_at),
            "LastModifiedTime": modified,
            "DebugRuleEvaluationStatuses": [
                _rule_entry(job, rule, modified) for rule in rules if not rule.profiler
            ],
            "ProfilerRuleEvaluationStatuses": [
                _rule_entry(job, rule, modified) for rule in rules if rule.profiler
            ],
            "ChangedRules": changed,
            **_findings(rule for rule in rules if rule.configuration_name in changed),
            "RunId": run_id,
            "EventSequence": sequence,
            "EventKey": key,
        },
    }


def _findings(rules: Iterable[RuleState]) -> dict[str, list[dict[str, str]]]:
    """Return what the findings of rules say, if any of them has one."""
    findings = [
        {
            "RuleConfigurationName": rule.configuration_name,
            "Summary": rule.summary,
            "Advice": rule.advice or "",
        }
        for rule in rules
        if rule.summary
    ]
    return {"Findings": findings} if findings else {}


def _rule_entry(job: EventSubject, rule: RuleState, modified: int) -> dict[str, object]:
    entry: dict[str, object] = {
        "RuleConfigurationName": rule.configuration_name,
        "RuleEvaluationJobArn": job.rule_job_arn(rule.configuration_name),
        "RuleEvaluationStatus": str(rule.status),
        "RuleEvaluationMode": str(rule.mode),
        "StepsEvaluated": rule.steps_evaluated,
        "EvaluationLagSeconds": round(rule.lag_s, 3),
    }
    for name, step in (("Last", rule.last_step), ("State", rule.state_step)):
        if step is not None:
            segment, entry[f"{name}Step"] = numbers_of(step)
            if segment:
                entry[f"{name}Segment"] = segment
    if rule.finding_state is not None:
        entry["RuleEvaluationState"] = str(rule.finding_state)
    if rule.status in DETAILED and rule.details is not None:
        entry["StatusDetails"] = rule.details
    if rule.severity is not None:
        entry["RuleEvaluationSeverity"] = str(rule.severity)
    return entry | {"LastModifiedTime": modified}


def _name_part(name: str, limit: int) -> str:
    """Return `name` with hyphens for characters that ARNs do not allow; never empty."""
    return _NOT_IN_NAMES.sub("-", name).lstrip("-")[:limit] or "unnamed"


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
