"""OutputFolder: the crash-safe output folder of an evaluation."""

import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from rule_runner.errors import OutputError
from rule_runner.results.cursors import cursor_files
from rule_runner.results.durable_files import (
    SCRATCH,
    Closing,
    FolderLock,
    JsonLines,
    read_regular,
    remove_files,
    write_atomically,
)
from rule_runner.results.evaluations import SavedEvaluation, saved_evaluations
from rule_runner.results.file_names import (
    EVALUATION_FILES,
    FINDINGS,
    MEASUREMENTS,
    OLD_RESULT,
    REPORT,
    RESULTS,
)
from rule_runner.results.json_text import dump_json, dump_numbers
from rule_runner.results.measurements import (
    MeasurementsFile,
    MeasurementsRecord,
    decode_measurements,
)
from rule_runner.results.schema import EvaluationResult, Evidence, summary

_REMEDY: Final = "Choose another folder, or use --overwrite."


class _Recorded(msgspec.Struct):
    id: str


class OutputFolder(Closing):
    """The output folder of an evaluation, locked until `close`.

    ``results.json`` is replaced as a whole, ``findings.jsonl`` grows. The folder of a crashed
    evaluation is resumed by the same one: it judges all steps again, and findings that are already
    recorded are not recorded twice. Results of rule jobs that an earlier process evaluated and this
    one does not are kept.

    Parameters
    ----------
    path
        The folder; created with its parents.
    fingerprints
        `rule_runner.results.schema.fingerprint` of each rule job, by its name.
    overwrite
        Whether to remove the result files of an earlier evaluation; other files are kept.

    Attributes
    ----------
    recorded
        The results that an earlier process recorded, by the name of the rule job.
    run_id
        Unique ID of this evaluation, recorded with the first results, before the first event.

    Raises
    ------
    OutputError
        If the folder cannot be used, is in use, or holds another evaluation.
    """

    def __init__(
        self, path: Path, fingerprints: Mapping[str, str], *, overwrite: bool = False
    ) -> None:
        self.path = path
        self._names = fingerprints.keys()
        with ExitStack() as stack:
            stack.enter_context(FolderLock(path))
            if overwrite:
                remove_evaluation(path)
            earlier = self._earlier(fingerprints)
            self.run_id = uuid.uuid4().hex if earlier is None else earlier.run_id
            rules = () if earlier is None else earlier.rules
            self.recorded = {rule.configuration_name: rule for rule in rules}
            self._findings = JsonLines(path / FINDINGS)
            stack.callback(self._findings.close)
            self._finding_ids = {finding.id for finding in self._findings.read(_Recorded)}
            if self._finding_ids and not self.recorded:
                raise OutputError(
                    f"Output folder {str(path)!r} has findings without results. {_REMEDY}"
                )
            self._open = stack.pop_all()

    def _earlier(self, fingerprints: Mapping[str, str]) -> EvaluationResult | None:
        """Return the results of the same evaluation by an earlier process; None if it is new."""
        path = self.path / RESULTS
        try:
            earlier = read_results_file(self.path)
        except FileNotFoundError:
            if _old_evaluations(self.path):
                raise OutputError(old_version(str(self.path))) from None
            return None
        except (OSError, ValueError, msgspec.MsgspecError) as err:
            raise OutputError(f"{str(path)!r} is not a readable result. {_REMEDY}") from err
        same = [
            fingerprints[rule.configuration_name] == rule.fingerprint
            for rule in earlier.rules
            if rule.configuration_name in fingerprints
        ]
        if not (same and all(same)):
            raise OutputError(
                f"Output folder {str(self.path)!r} holds another evaluation: its rule, "
                f"parameters, trial or range differ. {_REMEDY}"
            )
        return earlier

    def write(self, evaluation: EvaluationResult) -> None:
        """Replace ``results.json``; the first write lets a restart resume a crash."""
        rules = [
            *evaluation.rules,
            *(rule for name, rule in self.recorded.items() if name not in self._names),
        ]
        write_results_file(self.path, replace(evaluation, rules=rules))

    def write_measurements(self, records: Mapping[str, MeasurementsRecord]) -> None:
        """Replace ``measurements.json``, which is left out if nothing was measured."""
        path = self.path / MEASUREMENTS
        kept: Mapping[str, MeasurementsRecord] = {}
        if self.recorded.keys() - self._names:
            with suppress(OSError, msgspec.MsgspecError):
                kept = decode_measurements(path.read_bytes()).rules
        rules = {name: record for name, record in {**kept, **records}.items() if record.series}
        if rules:
            write_atomically(path, dump_numbers(MeasurementsFile(rules=rules)) + "\n")
        else:
            remove_files([path])

    def append_finding(self, rule_job: str, finding_id: str, evidence: Evidence) -> None:
        """Add a finding to ``findings.jsonl`` unless a crashed process has recorded it."""
        if finding_id not in self._finding_ids:
            record = {"id": finding_id, "configuration_name": rule_job}
            self._findings.append(dump_json(record | msgspec.to_builtins(evidence)))

    def close(self) -> None:
        """Close the files and unlock the folder."""
        self._open.close()


def read_results_file(folder: Path) -> EvaluationResult:
    """Return the content of the ``results.json`` in a folder.

    Raises
    ------
    OSError, MsgspecError
        If it cannot be read.
    """
    return msgspec.json.decode(read_regular(folder / RESULTS), type=EvaluationResult)


def write_results_file(folder: Path, evaluation: EvaluationResult) -> None:
    """Replace the ``results.json`` in a folder; the evaluation ends with the last of its rules.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    rules = evaluation.rules
    ends = [rule.ended_at for rule in rules if rule.ended_at is not None]
    ended_at = max(ends) if ends and len(ends) == len(rules) else None
    complete = replace(evaluation, summary=summary(rules, evaluation.left_out), ended_at=ended_at)
    write_atomically(folder / RESULTS, dump_json(complete, indent=2) + "\n")


def old_version(output: str) -> str:
    """Return the message that version 0.1.0 wrote the results in an output folder."""
    return (
        f"Output folder {output!r} holds results of version 0.1.0, which can be shown, but not "
        f"continued. {_REMEDY}"
    )


def _old_evaluations(folder: Path) -> list[SavedEvaluation]:
    """Return what version 0.1.0 wrote for the evaluation in a folder."""
    saved = saved_evaluations(str(folder), depth=1)
    return [run for run in saved if run.is_old and run.output == str(folder)]


def evaluation_files(folder: Path) -> list[Path]:
    """Return the files of an evaluation in a folder, there or not, the results first.

    Acknowledgements, which people wrote, and files of rules are not among them.
    """
    names = (OLD_RESULT, *EVALUATION_FILES, REPORT)
    return [*(folder / name for name in names), *cursor_files(folder)]


def remove_evaluation(folder: Path) -> None:
    """Remove the files that an evaluation wrote, also one of version 0.1.0.

    Raises
    ------
    OutputError
        If one cannot be removed.
    """
    from shutil import rmtree  # which imports bz2 and lzma

    old = {Path(path) for run in _old_evaluations(folder) for path in run.folders.values()}
    for path in {folder, *old}:
        remove_files(evaluation_files(path))
    for path in old - {folder}:
        rmtree(path / SCRATCH, ignore_errors=True)
        with suppress(OSError):  # it holds what the rule wrote
            path.rmdir()
