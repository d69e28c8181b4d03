"""ListSource: rows in a list, as a source; and the trial over several of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

from memory_store import MemoryStore

from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.names import NameTable
from rule_core.trials.trial import Trial

Row = tuple[int, Mapping[str, float]]


class ListSource:
    """Reads the rows of `rows`, which may grow; `ended` is what the format says of the end."""

    kind = "list"
    description = "rows in a list"

    def __init__(self, *rows: Row, ended: bool | None = None) -> None:
        self.rows = [*rows]
        self.ended = ended
        self.written = 0.0
        self._read = 0

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new rows on; see `Source`."""
        new = self.rows[self._read :]
        self._read += len(new)
        for step, values in new:
            record.row(step, values, time=1000.0 + step)
        return bool(new)

    def has_ended(self) -> bool | None:
        """Return `ended`; see `Source`."""
        return self.ended

    def last_write(self) -> float:
        """Return `written`; see `Source`."""
        return self.written


def source_index(
    *sources: ListSource,
    modes: Mapping[int, ModeKeys] | None = None,
    window: int = 1000,
    range_steps: tuple[int | None, int | None] | None = None,
) -> SourceIndex:
    """Return the index over sources, with the modes of some by their place."""
    listed = [
        (f"source-{place}", source, (modes or {}).get(place))
        for place, source in enumerate(sources)
    ]
    return SourceIndex(MemoryStore({}), listed, NameTable(), range_steps, window)


def source_trial(index: SourceIndex) -> Trial:
    """Return a trial over an index."""
    return Trial.over("run", "memory", index)


@contextmanager
def opened(*indexes: SourceIndex) -> Iterator[None]:
    """Let evaluations open these indexes, one after the other, inside the block."""
    trials = iter(indexes)

    def open_trial(path: str, name: str | None, *_: object, **__: object) -> Trial:
        return Trial.over(name or "run", path, next(trials))

    with (
        mock.patch("rule_runner.steps.sources.open_trial", open_trial),
        mock.patch("rule_runner.steps.sources.is_there", return_value=True),
        mock.patch("rule_runner.steps.sources.reject_parent"),
    ):
        yield
