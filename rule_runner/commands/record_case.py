"""record: cuts a case for a rule test out of a trial."""

import re
from pathlib import Path

from msgspec.structs import replace as with_fields

from rule_core.exceptions import SMDebugError
from rule_core.format import paths
from rule_core.model import patterns
from rule_core.model.segments import segment_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.commands.trial.export import read_index
from rule_runner.config.model import check_is_local
from rule_runner.errors import OutputError, TrialError, UsageError, counted, translated, unwritable
from rule_runner.escape import print_lines, printable
from rule_runner.export.saved_parts import Omissions, SavedPart, saved_parts
from rule_runner.rule_tests.saved_case import SavedCase, members_of, save_npz


def record(
    path: str, tensors: str, steps: str, output: str, sources: SourceOptions = DEFAULT
) -> None:
    """Write the values of some tensors and steps of a trial to an .npz file.

    Parameters
    ----------
    tensors
        A regular expression that matches anywhere in the names.
    steps
        ``A:B``, ``A <= step < B``; each may be missing.
    sources
        How to read outputs of other writers.

    Raises
    ------
    UsageError
        If `tensors` or `steps` is malformed.
    TrialError
        If `path` holds no trial, or nothing of it is chosen.
    OutputError
        If the output exists, or cannot be written.
    """
    check_is_local(output, "--output of record")
    first, end = _steps(steps)
    problem = f"Option --tensors must be a regular expression, got {tensors!r}: "
    with translated(UsageError, re.error, SMDebugError, before=problem, after="."):
        patterns.compiled(tensors)
    target = Path(output)
    if target.exists():
        raise OutputError(f"Output {output!r} exists. Choose another path, or remove it.")
    index, _ = read_index(path, sources)
    omissions = Omissions()
    case = SavedCase()
    for saved in saved_parts(index, omissions):
        if first <= saved.own_step and (end is None or saved.own_step < end):
            if segment_of(saved.step):
                raise TrialError(
                    f"Trial {path!r} was resumed: choose steps before its steps go back."
                )
            _add(case, saved, tensors)
    names = case.tensor_names
    if not names:
        raise TrialError(f"No tensor of trial {path!r} matches {tensors!r} at steps {steps!r}.")
    case.collections = members_of(index.collections, sorted(names))
    with unwritable(f"Output {output!r}"):
        save_npz(case, target)
    print_lines(omissions.sentences())
    count = len({key.step for key in case.steps})
    tensors, steps = counted(len(names), "tensor"), counted(count, "step")
    print(printable(f"Recorded {tensors} at {steps} in {output}."))


def _steps(text: str) -> tuple[int, int | None]:
    """Return the bounds of ``A:B``; None for a missing end."""
    bounds = re.fullmatch(r"(\d*):(\d*)", text, re.ASCII)
    if bounds is None:
        raise UsageError(
            f"Option --steps must be A:B, whole numbers that may be missing, got {text!r}."
        )
    return int(bounds[1] or 0), int(bounds[2]) if bounds[2] else None


def _add(case: SavedCase, saved: SavedPart, tensors: str) -> None:
    """Add the chosen tensors of a step to a case."""
    entries = {
        name: entry for name, entry in saved.file.entries.items() if patterns.search(tensors, name)
    }
    if not entries:
        return
    chosen = saved._replace(file=with_fields(saved.file, entries=entries))
    step = case.at(saved.worker, saved.step, saved.mode.name)
    step.mode_step = saved.file.mode_step
    for name, array in chosen.arrays(says_omissions=False):
        step.records[name] = array
    for name, operation, absolute, value in chosen.reductions():
        step.records[paths.reduction_record_name(name, operation, absolute)] = value
    for name, entry in entries.items():
        if entry.shape is not None:
            step.shapes[name] = entry.shape
