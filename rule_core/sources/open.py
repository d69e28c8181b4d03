"""open_sources: the index of a trial that consists of sources."""

from collections.abc import Sequence

from rule_core.reading.source_index import SourceIndex
from rule_core.sources.format import Recognized, SourceFormat
from rule_core.sources.names import NameTable
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import TrialStore


def open_sources(
    store: TrialStore,
    recognized: Sequence[tuple[SourceFormat, Recognized]],
    options: SourceOptions = DEFAULT,
    range_steps: tuple[int | None, int | None] | None = None,
    window: int = 1000,
) -> SourceIndex:
    """Return the index over the recognised files below a store, without reading them.

    Raises
    ------
    SMDebugValueError
        If one of the files can never be read, with what to do instead.
    """
    sources = [
        (item.key, source_format.open(store, item, options), item.mode)
        for source_format, item in recognized
    ]
    names = NameTable(options)
    return SourceIndex(store, sources, names, range_steps, window, names.parameter)
