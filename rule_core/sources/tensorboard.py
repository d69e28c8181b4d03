"""TensorBoard: the event files in a folder, which torch, tensorboardX and Keras write, as a source.

The event files of a folder are one stream, in the order of their names, which contain the time at
which each was begun.
"""

import re
from collections.abc import Iterator
from typing import Final

from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import FileSource, Recognized, SourceFolder
from rule_core.sources.names import NAMES
from rule_core.sources.options import SourceOptions
from rule_core.sources.tensorboard_events import EventDecoder, RecordHeaderError, first_tag
from rule_core.storage.base import ObjectNotFoundError, TrialStore
from rule_core.storage.growing_file import GrowingFile

KIND: Final = "tensorboard"
PREFIX: Final = "events.out.tfevents."
VERDICTS: Final = ".rule-runner-verdicts"  # ends the name of a file that `--tag-run` writes
MAX_RECORD: Final = 16 << 20  # bytes; a longer one holds no numbers
_MODES: Final = {
    **dict.fromkeys(("train", "training"), ModeKeys.TRAIN),
    **dict.fromkeys(("eval", "evaluation", "test", "val", "valid", "validation"), ModeKeys.EVAL),
}
_STARTED: Final = re.compile(re.escape(PREFIX) + r"(\d+)")


def is_event_file(name: str) -> bool:
    """Return whether a file is named as TensorBoard's writers name theirs.

    >>> is_event_file("events.out.tfevents.1700000000.host.12.0")
    True
    >>> is_event_file("000000000000_worker_0.tfevents")  # of a trial
    False
    """
    return _STARTED.match(name) is not None and not name.endswith(VERDICTS)


def _order(name: str) -> tuple[int, str]:
    """Return what orders event files by the times at which they were begun."""
    started = _STARTED.match(name)
    return int(started[1]) if started else 0, name


class TensorBoardFormat:
    """Folders with event files; see `SourceFormat`."""

    kind = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield a folder with event files, and those of its modes; see `SourceFormat`."""
        count = sum(map(is_event_file, folder.names))
        if count:
            yield Recognized(KIND, folder.key, _reason(count), _mode(folder.key))
        for name in folder.names:
            if not name.endswith("/"):
                continue
            mode = _mode(name)
            if mode is None and count:
                mode = _mode_of_scalars(folder, name)
            files = sum(map(is_event_file, folder.list_folder(name))) if mode is not None else 0
            if files:
                yield Recognized(KIND, folder.key + name, _reason(files), mode)

    def open(
        self, store: TrialStore, recognized: Recognized, options: SourceOptions
    ) -> "TensorBoardSource":
        """Return the reader of a folder; see `SourceFormat`."""
        del options
        return TensorBoardSource(store, recognized.key, recognized.reason)


def _reason(count: int) -> str:
    return f"it holds {count} TensorBoard event file{'s' * (count > 1)}"


def _mode(folder: str) -> ModeKeys | None:
    """Return the mode that the name of a folder says, such as ``val`` or ``val_loss``."""
    name = folder.rstrip("/").rpartition("/")[2]
    meaning = NAMES(name)
    is_curve = meaning.is_metric and meaning.says_mode
    return meaning.mode if is_curve else _MODES.get(name.lower())


def _mode_of_scalars(folder: SourceFolder, name: str) -> ModeKeys | None:
    """Return the mode of a folder below a run that torch's ``add_scalars`` made; None of others.

    It is named after the tag of all its numbers, and one of several curves: ``loss_train/``.
    """
    curve = name.rstrip("/").rpartition("_")[2]
    mode = _mode(curve)
    files = [*filter(is_event_file, folder.list_folder(name))] if mode is not None else []
    tag = first_tag(folder.head(name + files[0])) if files else None
    is_curve = tag is not None and name == f"{tag.replace('/', '_')}_{curve}/"
    return mode if is_curve else None


class TensorBoardSource(FileSource):
    """The event files of one folder; see `Source`.

    Parameters
    ----------
    folder
        The folder with a final slash, relative to the root; "" for the root.
    reason
        Why it was recognised.
    """

    def __init__(self, store: TrialStore, folder: str, reason: str) -> None:
        super().__init__(KIND, f"{folder or 'The folder'} is read as {KIND}: {reason}.")
        self._store = store
        self.folder = folder
        self._files: dict[str, _EventFile] = {}
        self._decoder = EventDecoder(title=folder.rstrip("/").rpartition("/")[2])

    def read_new(self, record: SourceRecord) -> bool:
        """Pass on what was written; see `Source`."""
        any_new = False
        record.is_ordered = True
        for file in self._listed():
            try:
                while file.read_new(record):
                    any_new = True
            except ObjectNotFoundError:  # removed meanwhile; what was read stays
                continue
            self.written = max(self.written, file.growing.modified)
        return any_new

    def _listed(self) -> list["_EventFile"]:
        """Return the files that exist, in the order in which they were begun."""
        keys = self._store.list_keys(self.folder + PREFIX)
        names = [*filter(is_event_file, (key.removeprefix(self.folder) for key in keys))]
        for name in names:
            if name not in self._files:
                key, number = self.folder + name, len(self._files)
                self._files[name] = _EventFile(self._store, key, self._decoder, number)
        return [self._files[name] for name in sorted(names, key=_order)]


class _EventFile:
    """One event file that may grow."""

    def __init__(self, store: TrialStore, key: str, decoder: EventDecoder, number: int) -> None:
        self._number = number
        self.growing = GrowingFile(store, key)
        self._decoder = decoder
        self._partial = b""  # the start of a record whose end is not yet written
        self._skipped = 0  # bytes of a record that are still to be passed over
        self._is_damaged = False
        self._reported: set[str] = set()

    def read_new(self, record: SourceRecord) -> bool:
        """Pass on the numbers in the next bytes; return whether there were bytes."""
        new = self.growing.read()
        if new.restarted:
            self._partial, self._skipped, self._is_damaged = b"", 0, False
            record.begin_segment()
        if not len(new.data) or self._is_damaged:
            return False
        skipped = min(self._skipped, len(new.data))
        self._skipped -= skipped
        record.stream = self._number
        self._decode(self._partial + new.data[skipped:], record)
        return True

    def _decode(self, data: bytes, record: SourceRecord) -> None:
        start = self.growing.position - len(data)

        def report(text: str, position: int) -> None:
            if text not in self._reported:
                self._reported.add(text)
                record.problem(f"At byte {start + position}, {text}.", self.growing.key)

        try:
            used = self._decoder.decode(data, record, report)
        except RecordHeaderError as err:
            report("the length of a record has a wrong checksum; the rest is skipped", err.position)
            self._partial, self._is_damaged = b"", True
            return
        rest = len(data) - used
        missing = self._decoder.missing(data, used)
        if rest + missing > MAX_RECORD:
            report("a record is too long for numbers; such records are skipped", used)
            self._partial, self._skipped = b"", missing
        else:
            self._partial = data[used:]


FORMAT: Final = TensorBoardFormat()
