"""What a source holds, for comparing readers."""

from rule_core.reading.source_index import SourceIndex
from rule_core.sources.format import Recognized, SourceFormat
from rule_core.sources.open import open_sources
from rule_core.storage.base import TrialStore


def opened(source_format: SourceFormat, store: TrialStore, key: str = "") -> SourceIndex:
    """Return the index over one file or folder."""
    return open_sources(store, [(source_format, Recognized(source_format.kind, key, "test"))])


def read(source_format: SourceFormat, store: TrialStore, key: str = "") -> SourceIndex:
    """Return the index over one file or folder after it was read."""
    index = opened(source_format, store, key)
    index.refresh()
    return index


def content(index: SourceIndex) -> list[tuple[int, str, str, str]]:
    """Return every number of an index: step, mode, name and value, as text because of NaN."""
    return sorted(
        (step, file.mode.name, name, repr(float(index.tensors.value(name, step, part)[0])))
        for step in index.steps
        for part, file in index.files[step].items()
        for name in file.entries
    )
