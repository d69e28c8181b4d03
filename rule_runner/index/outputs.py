"""Outputs: the output folder of each trial, and the results in it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.storage.uri import is_s3
from rule_runner.config.output_names import OutputTemplate
from rule_runner.engine.outcome import is_conclusive
from rule_runner.errors import OutputError, unreadable
from rule_runner.index.records import RuleRecord
from rule_runner.report.text import sentence
from rule_runner.results.cursors import has_undelivered, undelivered_events
from rule_runner.results.evaluations import SavedEvaluation, saved_evaluations
from rule_runner.results.file_names import EVENTS, REPORT
from rule_runner.results.issues.acknowledged import log_unreadable
from rule_runner.results.issues.incidents import incidents
from rule_runner.results.schema import RuleResult
from rule_runner.results.versions import versions

_template = lru_cache(OutputTemplate)
FileMark: TypeAlias = tuple[int, int, int]
NO_FILE: Final[FileMark] = (0, 0, 0)
LONGEST_SENTENCE: Final = 300  # characters
SPACE_BYTES: Final = 1 << 20  # that evaluations need at least


def output_of(trial: str, template: str) -> str:
    """Return the output folder of a trial; the same path always has the same.

    >>> output_of("/data/runs/mnist 1", "/results/{trial}")
    '/results/runs-mnist-1-9164cd5c'
    """
    return _template(template).of(trial)


def base_of(template: str) -> str:
    """Return the folder of all output folders."""
    return _template(template).base


def lack_of_space(index: Path, template: str) -> str:
    """Return why the index or local outputs cannot be written, in a sentence; "" if they can."""
    folders = [index.parent] if is_s3(template) else [index.parent, Path(base_of(template))]
    for folder in folders:
        with suppress(OSError):  # it is created with the first output
            status = os.statvfs(folder)
            if status.f_bavail * status.f_frsize < SPACE_BYTES:
                return (
                    f"The disk of {str(folder)!r} is almost full. Evaluations start again when you "
                    "have freed some space."
                )
    return ""


class SavedOutput(msgspec.Struct, frozen=True):
    """What the output folder of a trial holds.

    Attributes
    ----------
    rules
        The rule jobs that have begun; without results none.
    trial
        The path of the trial; "" without results.
    ended
        Whether all of them have ended.
    final
        Whether more data cannot change their verdicts.
    same_version
        Whether this version of rule-runner wrote the results, and can continue them.
    end_time
        When the last of them ended, in seconds since the epoch; None unless all have.
    undelivered
        The number of events that a sink has not taken or has refused, when all have ended; 0 in S3,
        where it is unknown.
    """

    rules: tuple[RuleRecord, ...] = ()
    trial: str = ""
    ended: bool = False
    final: bool = False
    same_version: bool = True
    end_time: float | None = None
    undelivered: int = 0


def read_output(output: str) -> SavedOutput:
    """Return what an output folder holds; raises as `read_results`."""
    evaluations = _evaluations(output)
    saved = _summary(evaluations)
    if not saved.ended or is_s3(output):
        return saved
    holders = {Path(folder) for run in evaluations for folder in run.folders.values()}
    return msgspec.structs.replace(saved, undelivered=sum(map(undelivered_events, holders)))


def read_results(output: str) -> list[RuleResult]:
    """Return the results in an output folder or below an address, finished or not.

    They have the acknowledgements that hold now.

    Raises
    ------
    OutputError
        If storage does not answer, or a result is damaged.
    """
    return [rule for evaluation in _evaluations(output) for rule in evaluation.rules]


def _evaluations(output: str) -> list[SavedEvaluation]:
    with unreadable(f"Output {output!r}", OutputError, SMDebugError):
        evaluations = [*saved_evaluations(output, depth=1)]
    for evaluation in evaluations:
        for problem in evaluation.problems:
            raise OutputError(f"{problem} Remove the output folder to have the trial judged again.")
        if evaluation.acknowledgement_problem:
            log_unreadable(evaluation.acknowledgement_problem)
    return evaluations


def _summary(evaluations: Sequence[SavedEvaluation]) -> SavedOutput:
    results = [rule for evaluation in evaluations for rule in evaluation.rules]
    if not results:
        return SavedOutput()
    ended = all(result.ended_at is not None for result in results)
    own = versions()["rule-runner"]
    return SavedOutput(
        rules=_records(results),
        trial=results[0].trial,
        ended=ended,
        final=ended
        and all(
            is_conclusive(result, goes_on=result.state is not msgspec.UNSET) for result in results
        ),
        same_version=not any(evaluation.is_old for evaluation in evaluations)
        and all(result.versions.get("rule-runner") == own for result in results),
        end_time=max(map(_end_time, results)) if ended else None,
    )


def _end_time(result: RuleResult) -> float:
    return datetime.fromisoformat(result.ended_at or "1970-01-01T00:00:00Z").timestamp()


def _records(results: Sequence[RuleResult]) -> tuple[RuleRecord, ...]:
    roots = {
        rule.configuration_name: incident.root.configuration_name
        for incident in incidents(results)
        for rule in (incident.root, *incident.consequences)
    }
    return tuple(_record(result, roots.get(result.configuration_name, "")) for result in results)


def _record(result: RuleResult, root: str) -> RuleRecord:
    return RuleRecord(
        name=result.configuration_name,
        rule=result.rule,
        mode=result.mode,
        outcome=result.outcome,
        severity=result.severity,
        step=result.step,
        judged=result.coverage.judged,
        findings=result.findings_count,
        known=result.coverage.known,
        skipped=sum(result.coverage.skipped.values()),
        last_step=result.coverage.last,
        rule_time=result.rule_time_s,
        acknowledged=result.is_acknowledged,
        counted_severity=result.counted_severity,
        since=result.since if root else None,
        recovered_at=(result.recovered_at or 0) if result.has_recovered else None,
        root=root,
        sentence=sentence(result)[:LONGEST_SENTENCE] if root else "",
    )


def _folders(output: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(output) as entries:
        yield from sorted(
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def saved_outputs(template: str) -> Iterator[str]:
    """Yield the local folders that may be outputs, for an index that is made again."""
    base = base_of(template)
    if not is_s3(base):
        yield from map(str, _folders(Path(base)))


def file_mark(output: str, name: str) -> FileMark:
    """Return numbers that change with a file of a local output folder; `NO_FILE` if absent."""
    try:
        status = os.lstat(f"{output}/{name}")
    except OSError:  # also of an address in S3
        return NO_FILE
    return status.st_mtime_ns, status.st_size, status.st_ino


def is_finished(output: str) -> bool:
    """Return whether a local evaluation that has results also sent its events and reported.

    One that was killed between its verdicts and its end may not have. In S3 that is unknown.
    """
    folder = Path(output)
    holders = [path for path in (folder, *_folders(folder)) if (path / EVENTS).exists()]
    return (
        not is_s3(output) and (folder / REPORT).exists() and not any(map(has_undelivered, holders))
    )


def needs_nothing(output: str) -> bool:
    """Return whether an evaluation with final results needs no further work."""
    return is_s3(output) or is_finished(output)
