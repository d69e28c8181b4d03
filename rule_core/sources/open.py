"""open_sources: the index of a trial that consists of sources."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from rule_core.exceptions import SMDebugValueError
from rule_core.reading.source_index import KeyedSource, SourceIndex
from rule_core.sources.format import Recognized, SourceFormat
from rule_core.sources.formats import CHECKPOINTS
from rule_core.sources.names import NameTable
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.sources.recognize import SourceRun
from rule_core.storage.base import TrialStore


def open_sources(
    store: TrialStore,
    recognized: Sequence[tuple[SourceFormat, Recognized]],
    options: SourceOptions = DEFAULT,
    range_steps: tuple[int | None, int | None] | None = None,
    window: int = 1000,
    find_runs: Callable[[], Sequence[SourceRun]] = tuple,
) -> SourceIndex:
    """Return the index over the recognised files below a store, without reading them.

    Parameters
    ----------
    find_runs
        Returns the runs that the folder holds now, for files that appear later.

    Raises
    ------
    SMDebugValueError
        If one of the files can never be read, with what to do instead.
    """
    opened_items = list(recognized)

    def opened(items: Sequence[tuple[SourceFormat, Recognized]]) -> list[KeyedSource]:
        return [
            (item.key, source_format.open(store, item, options), item.mode)
            for source_format, item in items
        ]

    def find_more() -> list[KeyedSource]:
        more = _new_ones(opened_items, find_runs())
        opened_items.extend(more)
        with suppress(SMDebugValueError):  # a file that can never be read
            return opened(more)
        return []

    names = NameTable(options)
    sources = opened(opened_items)
    return SourceIndex(
        store, sources, names, range_steps, window, names.parameter, find_more, names.unused
    )


def _new_ones(
    opened_items: Sequence[tuple[SourceFormat, Recognized]], runs: Sequence[SourceRun]
) -> list[tuple[SourceFormat, Recognized]]:
    """Return what has appeared of a run: files of its formats, and checkpoints.

    A run whose numbers are being read is not read in another format as well.
    """
    keys = {(item.kind, item.key) for _, item in opened_items}
    of_run = [run for run in runs if any((item.kind, item.key) in keys for _, item in run.sources)]
    run = next(iter(of_run or (runs if len(runs) == 1 else ())), None)
    kinds = {item.kind for _, item in opened_items} | {CHECKPOINTS}
    return [
        (source_format, item)
        for source_format, item in (run.sources if run else ())
        if (item.kind, item.key) not in keys and (item.kind in kinds or kinds == {CHECKPOINTS})
    ]
