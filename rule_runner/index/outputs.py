"""Outputs: the output folder of each trial, and the results in it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.storage import open_store
from rule_core.storage.uri import is_s3
from rule_runner.config.output_names import OutputTemplate
from rule_runner.engine.outcome import is_conclusive
from rule_runner.errors import OutputError
from rule_runner.escape import printable
from rule_runner.index.records import RuleRecord
from rule_runner.index.states import trial_outcome
from rule_runner.notify.outbox import has_undelivered, undelivered_events
from rule_runner.results.acknowledged import acknowledged_if_readable
from rule_runner.results.acknowledgements import ACKNOWLEDGEMENTS
from rule_runner.results.durable_files import SCRATCH, open_regular
from rule_runner.results.output_folder import REPORT, RESULT
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import Outcome
from rule_runner.results.versions import versions

_template = lru_cache(OutputTemplate)
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
    stopped
        Whether one was stopped.
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
    stopped: bool = False
    same_version: bool = True
    end_time: float | None = None
    undelivered: int = 0


def read_output(output: str) -> SavedOutput:
    """Return what an output folder holds; raises as `read_results`."""
    saved = _summary(read_results(output), begun=_begun(output))
    if not saved.ended or is_s3(output):
        return saved
    folders = (Path(output), *_folders(Path(output)))
    return msgspec.structs.replace(saved, undelivered=sum(map(undelivered_events, folders)))


def read_results(output: str) -> list[RuleResult]:
    """Return the results in an output folder or below an address, finished or not.

    They have the acknowledgements that hold now.

    Raises
    ------
    OutputError
        If storage does not answer, or a result is damaged.
    """
    texts = _s3_results(output) if is_s3(output) else _local_results(Path(output))
    results = []
    for name, text in texts:
        try:
            results.append(msgspec.json.decode(text, type=RuleResult))
        except (msgspec.MsgspecError, ValueError) as err:
            msg = (
                f"Result {name!r} in {output!r} is damaged: {printable(err)}. Remove the output "
                "folder to have the trial judged again."
            )
            raise OutputError(msg) from err
    return acknowledged_if_readable(output, results)


def _summary(results: Sequence[RuleResult], begun: int) -> SavedOutput:
    if not results:
        return SavedOutput()
    ended = len(results) >= begun and all(result.ended_at is not None for result in results)
    own = versions()["rule-runner"]
    return SavedOutput(
        rules=tuple(map(_record, results)),
        trial=results[0].trial,
        ended=ended,
        final=ended and all(is_conclusive(result, keep_going=False) for result in results),
        stopped=any(result.outcome == "Stopped" for result in results),
        same_version=all(result.versions.get("rule-runner") == own for result in results),
        end_time=max(map(_end_time, results)) if ended else None,
    )


def _end_time(result: RuleResult) -> float:
    return datetime.fromisoformat(result.ended_at or "1970-01-01T00:00:00Z").timestamp()


def _record(result: RuleResult) -> RuleRecord:
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
    )


def trial_outcome_of(saved: SavedOutput, *, lenient: bool) -> Outcome:
    """Return the outcome of a trial from its results; for `lenient` see `trial_outcome`."""
    return trial_outcome((rule.outcome for rule in saved.rules), lenient=lenient)


def _begun(output: str) -> int:
    """Return how many rule jobs have begun in a local folder, with or without a result."""
    return 0 if is_s3(output) else len(begun_rules(Path(output)))


def begun_rules(output: Path) -> list[str]:
    """Return the names of the folders of rule jobs in an output folder.

    All folders exist before the first result is written, so that they name the rules of an
    evaluation that was killed.
    """
    return [path.name for path in _folders(output) if (path / SCRATCH).is_dir()]


def _folders(output: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(output) as entries:
        yield from sorted(
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
        )


def _local_results(output: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the results in a folder: its own, and those of the folders of several rule jobs."""
    for folder in (output, *_folders(output)):
        with suppress(FileNotFoundError, NotADirectoryError):
            try:
                with os.fdopen(open_regular(folder / RESULT, os.O_RDONLY), "rb") as stream:
                    yield str((folder / RESULT).relative_to(output)), stream.read()
            except (FileNotFoundError, NotADirectoryError):
                raise
            except OSError as err:
                msg = f"Result {str(folder / RESULT)!r} cannot be read: {err.strerror}."
                raise OutputError(msg) from err


def _s3_results(output: str) -> Iterator[tuple[str, memoryview]]:
    try:
        store = open_store(output)
        keys: Iterable[str] = [
            key
            for key in store.list_keys("")
            if key.rpartition("/")[2] == RESULT and key.count("/") <= 1
        ]
        for key in keys:
            yield key, store.read(key)
    except SMDebugError as err:
        msg = f"Output {output!r} cannot be read: {printable(getattr(err, 'reason', err))}."
        raise OutputError(msg) from err


def saved_outputs(template: str) -> Iterator[str]:
    """Yield the local folders that may be outputs, for an index that is made again."""
    base = base_of(template)
    if not is_s3(base):
        yield from map(str, _folders(Path(base)))


def acknowledgements_mark(output: str) -> tuple[int, int] | None:
    """Return numbers that change with the acknowledgements in a local output folder.

    None without any, and in S3, where looking at each trial would cost a request.
    """
    if is_s3(output):
        return None
    try:
        status = (Path(output) / ACKNOWLEDGEMENTS).lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def results_mark(output: str) -> tuple[tuple[int, int, int], ...]:
    """Return numbers that change with the results and acknowledgements in a local output folder."""
    folders: list[str] = []
    with suppress(OSError), os.scandir(output) as entries:
        folders = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    results = (f"{folder}/{RESULT}" for folder in (output, *folders))
    return tuple(map(_file_mark, (f"{output}/{ACKNOWLEDGEMENTS}", *results)))


def _file_mark(path: str) -> tuple[int, int, int]:
    """Return numbers that change with a file; zeros while there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def is_finished(output: str) -> bool:
    """Return whether a local evaluation that has results also sent its events and reported.

    One that was killed between its verdicts and its end may not have. In S3 that is unknown.
    """
    folder = Path(output)
    folders = (folder, *_folders(folder))
    return (
        not is_s3(output)
        and (folder / REPORT).exists()
        and not any(has_undelivered(path) for path in folders if (path / SCRATCH).is_dir())
    )


def needs_nothing(output: str) -> bool:
    """Return whether an evaluation with final results needs no further work."""
    return is_s3(output) or is_finished(output)
