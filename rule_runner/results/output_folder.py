"""OutputFolder: the crash-safe output folder of a rule job."""

import os
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from rule_runner.errors import OutputError
from rule_runner.results.durable_files import (
    Closing,
    FolderLock,
    JsonLines,
    make_folder,
    open_regular,
    remove_files,
    write_atomically,
)
from rule_runner.results.finding_ids import FindingIds
from rule_runner.results.json_text import dump_json, dump_numbers
from rule_runner.results.measurements import MeasurementsRecord
from rule_runner.results.schema import Evidence, OtherTrial, RuleResult

RESULT: Final = "rule_result.json"
FINDINGS: Final = "findings.jsonl"
MEASUREMENTS: Final = "measurements.json"
REPORT: Final = "report.html"

_OVERWRITE: Final = "Choose another folder, or use --overwrite."


class _Recorded(msgspec.Struct):
    id: str


class _Judged(msgspec.Struct):
    last: int | None = None


class _Header(msgspec.Struct):
    fingerprint: str
    ended_at: str | None
    run_id: str = ""
    other_trials: list[OtherTrial] = []
    coverage: _Judged = msgspec.field(default_factory=_Judged)


class OutputFolder(Closing):
    """The output folder of one rule job, locked until `close`.

    ``rule_result.json`` is replaced as a whole, ``findings.jsonl`` grows. The folder of a crashed
    rule job is resumed by the same job: it judges all steps again, and findings that are already
    recorded are not recorded twice.

    Parameters
    ----------
    path
        The folder; created with its parents.
    fingerprint
        `rule_runner.results.schema.fingerprint` of the rule job.
    overwrite
        Whether to remove the result files of an earlier evaluation; other files are kept.
    run_id
        The run ID of the evaluation if another rule job already has it; "" creates a new one.

    Attributes
    ----------
    resumed
        Whether the folder holds an evaluation of this rule job.
    ended
        The result of that evaluation, if it has ended.
    other_trials
        How much of the other trials an earlier process showed to the rule.
    judged_to
        The last step that an evaluation judged which has not ended; -1 if there is none.
    run_id
        Unique ID of this evaluation, recorded with the first result, before the first event.

    Raises
    ------
    OutputError
        If the folder cannot be used, is in use, or holds another evaluation.
    """

    def __init__(
        self,
        path: Path,
        fingerprint: str,
        *,
        overwrite: bool = False,
        run_id: str = "",
    ) -> None:
        self.path = path
        self.run_id = run_id
        self.ended: RuleResult | None = None
        self.other_trials: list[OtherTrial] = []
        self.judged_to = -1
        self._fingerprint = fingerprint
        make_folder(path)
        with ExitStack() as stack:
            stack.callback(FolderLock(path, "lock").release)
            if overwrite:
                remove_files(path / name for name in (RESULT, FINDINGS, MEASUREMENTS))
            self.resumed = self._resumable()
            self._findings = JsonLines(path / FINDINGS)
            stack.callback(self._findings.close)
            self._recorded = self._recorded_ids()
            self._open = stack.pop_all()
        if not (self.run_id or self.resumed):
            self.run_id = uuid.uuid4().hex
        self._ids = FindingIds(fingerprint, self.run_id)

    def _resumable(self) -> bool:
        path = self.path / RESULT
        try:
            with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
                text = stream.read()
            header = msgspec.json.decode(text, type=_Header)
            if header.ended_at is not None and header.fingerprint == self._fingerprint:
                self.ended = msgspec.json.decode(text, type=RuleResult)
        except FileNotFoundError:
            return False
        except (OSError, msgspec.DecodeError) as err:
            msg = f"{str(path)!r} is not a readable result. {_OVERWRITE}"
            raise OutputError(msg) from err
        if header.fingerprint != self._fingerprint:
            msg = (
                f"Output folder {str(self.path)!r} holds another evaluation: its rule, "
                f"parameters, trial or range differ. {_OVERWRITE}"
            )
            raise OutputError(msg)
        if header.ended_at is None and header.coverage.last is not None:
            self.judged_to = header.coverage.last
        self.run_id = self.run_id or header.run_id
        self.other_trials = header.other_trials
        return True

    def _recorded_ids(self) -> set[str]:
        recorded = {finding.id for finding in self._findings.read(_Recorded)}
        if recorded and not self.resumed:
            msg = f"Output folder {str(self.path)!r} has findings without a result. {_OVERWRITE}"
            raise OutputError(msg)
        return recorded

    def write_result(self, result: RuleResult) -> None:
        """Replace ``rule_result.json``; the first write lets a restart resume a crash."""
        write_atomically(self.path / RESULT, dump_json(result, indent=2) + "\n")

    def write_measurements(self, record: MeasurementsRecord) -> None:
        """Replace ``measurements.json``."""
        write_atomically(self.path / MEASUREMENTS, dump_numbers(record) + "\n")

    def append_finding(self, evidence: Evidence) -> bool:
        """Add `evidence` to ``findings.jsonl``.

        Returns
        -------
        bool
            False if a crashed evaluation has already recorded it.
        """
        finding_id = self._ids.next(evidence)
        if finding_id in self._recorded:
            return False
        record = {"id": finding_id} | msgspec.to_builtins(evidence)
        self._findings.append(dump_json(record))
        return True

    def close(self) -> None:
        """Close the files and unlock the folder."""
        self._open.close()
