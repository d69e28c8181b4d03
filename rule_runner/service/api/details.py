"""Details: one trial with its findings, its configuration and its files."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from rule_core.severity import Severity
from rule_core.storage.uri import is_s3
from rule_runner.errors import OutputError
from rule_runner.fleet.watch.index_reader import IndexReader
from rule_runner.fleet.watch.outputs import read_results
from rule_runner.fleet.watch.records import TrialRecord
from rule_runner.notify.outbox import EVENTS
from rule_runner.results.acknowledged import finding_ids
from rule_runner.results.acknowledgements import ACKNOWLEDGEMENTS
from rule_runner.results.json_text import JsonScalar
from rule_runner.results.output_folder import FINDINGS, MEASUREMENTS, REPORT, RESULT
from rule_runner.results.schema import Evidence, RuleResult
from rule_runner.service.api.trials import TrialItem, trial_item
from rule_runner.service.responses import MsgspecResponse, service_of

_SHOWN: Final = frozenset({RESULT, FINDINGS, MEASUREMENTS, REPORT, EVENTS, ACKNOWLEDGEMENTS})
_DIGITS: Final = 18  # of the number of a trial
_MOST_FILES: Final = 500
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


class TrialDetail(TrialItem, frozen=True, kw_only=True):
    """A trial with what is behind its verdicts.

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


def is_number(text: str) -> bool:
    """Return whether a text may be the number of a trial."""
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS


def trial_of(index: IndexReader, number: str) -> TrialRecord:
    """Return a trial by the text of its number.

    Raises
    ------
    HTTPException
        If there is none.
    """
    record = index.trial(int(number)) if is_number(number) else None
    if record is None:
        msg = f"There is no trial {number:.20}. The table of trials has those that are known."
        raise HTTPException(404, msg)
    return record


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
        files=[*output_files(trial.output)],
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
    )


def output_files(output: str) -> dict[str, Path]:
    """Return the files of a local output folder that people may see, by their names in it."""
    if is_s3(output):
        return {}
    files: dict[str, Path] = {}
    for folder, folders, names in os.walk(output):
        folders.sort()
        if Path(folder) != Path(output):
            folders.clear()  # a rule's own folder has no more of ours below it
        for name in sorted(_SHOWN.intersection(names)):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink() and len(files) < _MOST_FILES:
                files[str(path.relative_to(output))] = path
    return files


def trial_file(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/files/{name}``, to be saved and never shown as a page."""
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
    path = output_files(trial.output).get(request.path_params["name"])
    if path is None:
        raise HTTPException(404, "The trial has no such file.")
    kind = "application/json" if path.suffix == ".json" else "text/plain"
    return FileResponse(path, media_type=kind, filename=path.name)
