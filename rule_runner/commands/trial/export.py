"""trial export: writes the values of a trial in another format, and says what is left out."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from rule_core.exceptions import SMDebugValueError
from rule_core.failures import OnError
from rule_core.format.paths import END_OF_JOB
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.config.model import check_is_local
from rule_runner.errors import OutputError, TrialError, translated, unwritable
from rule_runner.escape import print_lines, printable
from rule_runner.export.checkpoints import SafetensorsExport
from rule_runner.export.native_trial import NativeExport
from rule_runner.export.number_files import CsvExport, JsonLinesExport, TensorBoardExport
from rule_runner.export.saved_parts import Omissions, SavedPart, saved_parts
from rule_runner.loading.trials import read_trial, reject_parent


class Exporter(Protocol):
    """Writes one format."""

    def add(self, saved: SavedPart) -> bool:
        """Write what was saved of one mode by one worker at a step; return whether anything was."""
        ...

    def close(self) -> None:
        """Finish the files."""
        ...


FORMATS: Final[dict[str, Callable[[Path, TrialIndex], Exporter]]] = {
    "tensorboard": lambda output, _: TensorBoardExport(output),
    "csv": lambda output, _: CsvExport(output),
    "jsonl": lambda output, _: JsonLinesExport(output),
    "safetensors": lambda output, _: SafetensorsExport(output),
    "smdebug": NativeExport,
}


def export_trial(path: str, form: str, output: str, sources: SourceOptions = DEFAULT) -> None:
    """Write the trial at `path`, read as `sources` says, in another format.

    Raises
    ------
    TrialError
        If `path` holds no trial, or nothing of it can be written in this format.
    OutputError
        If the output exists, or cannot be written.
    """
    check_is_local(output, "--output of trial export")
    target = Path(output)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise OutputError(f"Output {output!r} exists. Choose another path, or remove it.")
    index, ended = read_index(path, sources)
    omissions = Omissions()
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    problem = f"Trial {path!r} cannot be written as {form}: "
    with (
        translated(TrialError, SMDebugValueError, before=problem),
        unwritable(f"Output {output!r}"),
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        with OnError(lambda: _remove(partial)):
            count = _write(index, FORMATS[form](partial, index), omissions)
            if ended and partial.is_dir():  # otherwise readers wait for more
                (partial / END_OF_JOB).touch()
            if count:
                partial.replace(target)
    print_lines(omissions.sentences())
    if not count:
        _remove(partial)
        raise TrialError(f"Nothing in trial {path!r} can be written as {form}.")
    print(printable(f"Exported {count} of {len(index.steps)} steps to {output} ({form})."))


def _remove(partial: Path) -> None:
    """Remove what was written."""
    if partial.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.unlink(missing_ok=True)


def read_index(path: str, sources: SourceOptions = DEFAULT) -> tuple[TrialIndex, bool]:
    """Return the index of a trial with steps, and whether the trial has ended.

    Raises
    ------
    TrialError
        If `path` holds no trial, or one without steps.
    """
    trial, ended = read_trial(path, sources)
    if not trial.index.steps:
        reject_parent(trial)
        raise TrialError(f"Trial {path!r} has no steps.")
    return trial.index, ended


def _write(index: TrialIndex, exporter: Exporter, omissions: Omissions) -> int:
    """Write all steps; return how many have anything that was written."""
    with OnError(exporter.close):
        steps = {saved.step for saved in saved_parts(index, omissions) if exporter.add(saved)}
    exporter.close()
    return len(steps)
