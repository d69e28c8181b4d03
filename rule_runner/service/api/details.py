"""Details: one trial with its findings, its configuration and the names of its files."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.index.outputs import read_results
from rule_runner.results.acknowledged import finding_ids
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.schema import Evidence, RuleResult
from rule_runner.service.api.files import output_files
from rule_runner.service.api.queries import trial_of
from rule_runner.service.api.trials import TrialItem, trial_item
from rule_runner.service.responses import MsgspecResponse, service_of

_MOST_FINDINGS: Final = 1000


class FindingItem(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a rule job."""

    id: str
    rule: str
    step: int
    severity: Severity | None
    tensor: str | None
    worker: str | None
    measured: float | None
    limit: float | None
    note: str | None
    mode: str | None


class TrialDetail(TrialItem, frozen=True, kw_only=True):
    """A trial with the details of its verdicts.

    Attributes
    ----------
    findings
        The first thousand.
    configuration
        The parameters of each rule job.
    files
        Of its output folder; none if that is in S3.
    problem
        Why the results cannot be read, in a sentence; "" otherwise.
    """

    output: str
    findings: list[FindingItem]
    configuration: Mapping[str, Mapping[str, JsonScalar]]
    files: list[str]
    problem: str


def trial_detail(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}``."""
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
        item = trial_item(trial, index.rules_of(trial.id))
    problem, results = "", []
    try:
        results = read_results(trial.output)
    except OutputError as err:
        problem = str(err)
    findings = [finding for result in results for finding in _findings(result)]
    detail = TrialDetail(
        **msgspec.structs.asdict(item),
        output=trial.output,
        findings=findings[:_MOST_FINDINGS],
        configuration={result.configuration_name: result.parameters for result in results},
        files=[file.name for file in output_files(trial.output)],
        problem=problem,
    )
    return MsgspecResponse(detail)


def _findings(result: RuleResult) -> Iterator[FindingItem]:
    for finding_id, evidence in zip(finding_ids(result), result.evidence, strict=True):
        yield _item(finding_id, result.configuration_name, evidence)


def _item(finding_id: str, rule: str, evidence: Evidence) -> FindingItem:
    return FindingItem(
        id=finding_id,
        rule=rule,
        step=evidence.step,
        severity=evidence.severity,
        tensor=evidence.tensor,
        worker=evidence.worker,
        measured=evidence.measured if isinstance(evidence.measured, float) else None,
        limit=evidence.limit if isinstance(evidence.limit, float) else None,
        note=evidence.note,
        mode=None if evidence.mode is msgspec.UNSET else evidence.mode,
    )
