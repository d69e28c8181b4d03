"""Outputs: the folder of a rule job, safe across crashes."""

import os
import unicodedata
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from rule_runner.durable import (
    Closing,
    FolderLock,
    JsonLines,
    make_folder,
    open_regular,
    remove_files,
    write_atomically,
)
from rule_runner.errors import OutputError, UsageError
from rule_runner.finding_ids import FindingIds
from rule_runner.measurements import MeasurementsRecord
from rule_runner.results import Evidence, RuleResult, dump_json, dump_numbers

RESULT: Final = "rule_result.json"
FINDINGS: Final = "findings.jsonl"
MEASUREMENTS: Final = "measurements.json"
NAME_LIMIT: Final = 255  # bytes of a file name

_OVERWRITE: Final = "Choose another folder, or use --overwrite."


def safe_name(name: str) -> str:
    """Return `name` if it can name a folder inside the output folder.

    Raises
    ------
    UsageError
        If it is empty, longer than 255 bytes, begins with a dot, or holds a slash, a control
        character or a lone surrogate.
    """
    odd = any(char == "/" or unicodedata.category(char) in {"Cc", "Cs"} for char in name)
    if not name or name.startswith(".") or odd or len(name.encode()) > NAME_LIMIT:
        msg = (
            "Name of a rule job must be 1 to 255 bytes, without '/' and control characters and "
            f"not beginning with '.', got {name!r}."
        )
        raise UsageError(msg)
    return name


class _Recorded(msgspec.Struct):
    id: str


class _Begun(msgspec.Struct):
    fingerprint: str
    ended_at: str | None


class OutputFolder(Closing):
    """The output folder of one rule job, locked until `close`.

    ``rule_result.json`` is replaced as a whole, ``findings.jsonl`` grows. A folder left by a
    crash of the same rule job is taken up again: the job is walked from its start, and what is
    already recorded is not recorded twice.

    Parameters
    ----------
    path
        The folder; made with its parents.
    fingerprint
        `rule_runner.results.fingerprint` of the rule job.
    overwrite
        Whether our files of an earlier evaluation there are removed; no other file is.
    reopen
        Whether a rule job that has ended is taken up again: another of its evaluation has not.

    Attributes
    ----------
    resumed
        Whether the folder holds an unfinished evaluation of this rule job.

    Raises
    ------
    OutputError
        If the folder cannot be used, is in use, or holds another or an ended evaluation.
    """

    def __init__(
        self, path: Path, fingerprint: str, *, overwrite: bool = False, reopen: bool = False
    ) -> None:
        self.path = path
        self._fingerprint = fingerprint
        make_folder(path)
        with ExitStack() as stack:
            stack.callback(FolderLock(path, "lock").release)
            if overwrite:
                remove_files(path / name for name in (RESULT, FINDINGS, MEASUREMENTS))
            self.resumed = self._resumable(reopen=reopen)
            self._findings = JsonLines(path / FINDINGS)
            stack.callback(self._findings.close)
            self._recorded = self._recorded_ids()
            self._open = stack.pop_all()
        self._ids = FindingIds(fingerprint)

    def _resumable(self, *, reopen: bool) -> bool:
        path = self.path / RESULT
        try:
            with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
                begun = msgspec.json.decode(stream.read(), type=_Begun)
        except FileNotFoundError:
            return False
        except (OSError, msgspec.DecodeError) as err:
            msg = f"{str(path)!r} is not a result that can be read. {_OVERWRITE}"
            raise OutputError(msg) from err
        if begun.fingerprint != self._fingerprint:
            msg = (
                f"Output folder {str(self.path)!r} holds another evaluation: its rule, "
                f"parameters, trial or range differ. {_OVERWRITE}"
            )
            raise OutputError(msg)
        if begun.ended_at is not None and not reopen:
            msg = f"Output folder {str(self.path)!r} holds an ended evaluation. {_OVERWRITE}"
            raise OutputError(msg)
        return True

    def _recorded_ids(self) -> set[str]:
        recorded = {finding.id for _, finding in self._findings.read(_Recorded)}
        if recorded and not self.resumed:
            msg = f"Output folder {str(self.path)!r} has findings without a result. {_OVERWRITE}"
            raise OutputError(msg)
        return recorded

    def write_result(self, result: RuleResult) -> None:
        """Replace ``rule_result.json``; once at the start, so that a crash can be resumed."""
        write_atomically(self.path / RESULT, dump_json(result, indent=2) + "\n")

    def write_measurements(self, record: MeasurementsRecord) -> None:
        """Replace ``measurements.json``."""
        write_atomically(self.path / MEASUREMENTS, dump_numbers(record) + "\n")

    def append_finding(self, evidence: Evidence) -> bool:
        """Add `evidence` to ``findings.jsonl``; steps come in ascending order.

        Returns
        -------
        bool
            False if an earlier, crashed evaluation had recorded it.
        """
        finding_id = self._ids.next(evidence)
        if finding_id in self._recorded:
            return False
        record = {"id": finding_id} | msgspec.to_builtins(evidence)
        self._findings.append(dump_json(record))
        return True

    def close(self) -> None:
        """Close the files and give the folder free."""
        self._open.close()
