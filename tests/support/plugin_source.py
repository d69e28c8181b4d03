"""A format of another package: files `*.numbers`, of which each line is a step and a loss."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.storage.base import TrialStore
from rule_core.storage.growing_file import GrowingFile


class NumbersSource:
    """Reads one file."""

    kind = "numbers"

    def __init__(self, store: TrialStore, key: str) -> None:
        self.description = f"{key!r} is read as numbers"
        self._file = GrowingFile(store, key)
        self._rest = b""

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new lines on; see `Source`."""
        new = self._file.read()
        *lines, self._rest = (self._rest + bytes(new.data)).split(b"\n")
        for line in lines:
            step, loss = line.split()
            record.row(int(step), {"loss": float(loss)})
        return bool(new.data)

    def has_ended(self) -> bool | None:
        """Return None: the format does not say it; see `Source`."""
        return None

    def last_write(self) -> float:
        """Return when the file was last written; see `Source`."""
        return self._file.modified


class NumbersFormat:
    """The format; see `SourceFormat`."""

    kind = "numbers"

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the files of this format."""
        for name in folder.names:
            if name.endswith(".numbers"):
                yield Recognized(self.kind, folder.key + name, "its name ends in .numbers")

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions
    ) -> NumbersSource:
        """Return the reader of a file."""
        del options
        return NumbersSource(store, recognized.key)


FORMAT: Final = NumbersFormat()


def install(folder: Path, value: str = "plugin_source:FORMAT", name: str = "numbers") -> None:
    """Write the metadata of a package with an entry point, for a folder of `sys.path`."""
    info = folder / f"{name}_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-source\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rule_runner.sources]\n{name} = {value}\n")
