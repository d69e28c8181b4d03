"""Runs of Weights & Biases: the transaction log ``run-ID.wandb``, which every run has.

It holds messages of type ``Record``. Read are the history, the measurements of the system and
whether the run has ended. Settings, which may contain secrets, are not.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.tensor_proto import MORE, fields, read_varint
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import HEAD_BYTES, FileSource, Recognized, SourceFolder
from rule_core.sources.options import SourceOptions
from rule_core.sources.rows.json_lines import MAX_NAME, decoded, flattened
from rule_core.sources.rows.row_fields import field_role, to_number, to_time
from rule_core.sources.wandb.record_log import FILE_HEAD, RecordLog
from rule_core.storage.base import TrialStore
from rule_core.storage.growing_file import GrowingFile

KIND: Final = "wandb"
MAX_VALUE: Final = 1 << 16  # bytes of JSON; longer values are passed over
SYSTEM: Final = "system/"
STEP, TIME = "_step", "_timestamp"  # names of W&B; it reserves those with a first underscore
_MEDIA: Final = "/_type"  # ends a name whose siblings describe an image, a table and the like
_RECORD: Final = "record"  # what messages call it
_HISTORY, _STATS, _EXIT = 2, 7, 18  # fields of a Record
_ITEM, _HISTORY_STEP = 1, 2  # fields of a HistoryRecord
_STATS_TIME, _STATS_ITEM = 2, 3  # fields of a StatsRecord
_KEYS: Final = (1, 2)  # of items: `key`, `nested_key`
_ITEM_TAG: Final = 0x0A
_VALUE_JSON: Final = b"\x82\x01"  # the tag of the value of an item, which follows its keys
_STEP_ITEM: Final = b"\x05_step" + _VALUE_JSON  # in each row
_decoder: Final = msgspec.json.Decoder()
_NO_RECORD: Final = "The record is not one of Weights & Biases. Such records are skipped."
_NO_STEP: Final = "The row has no step, or a negative one. Such rows are skipped."


class WandbFormat:
    """Transaction logs of Weights & Biases; see `SourceFormat`."""

    kind: Final = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the logs in the folder of a run that have rows; see `SourceFormat`.

        W&B writes blocks of 32 KiB. Until the first one is full, only the console has values.
        """
        for name in folder.names:
            head = folder.head(name) if name.endswith(".wandb") else b""
            has_rows = _STEP_ITEM in head or len(head) == HEAD_BYTES
            if has_rows and head.startswith(FILE_HEAD):
                yield Recognized(KIND, folder.key + name, "it is a log of Weights & Biases")

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> "WandbRun":
        """Return the reader of a log; see `SourceFormat`."""
        del options
        return WandbRun(store, recognized)


class WandbRun(FileSource):
    """The log of one run; see `Source`."""

    def __init__(self, store: TrialStore, recognized: Recognized) -> None:
        super().__init__(KIND, f"{recognized.key}: {recognized.reason}")
        self._file = GrowingFile(store, recognized.key)
        self._reported: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self._log = RecordLog()
        self._step = -1  # of the last row
        self._measured: set[str] = set()  # since that row
        self._ended: bool | None = None

    def has_ended(self) -> bool | None:
        """Return True after the record of the exit; a run that was killed has none."""
        return self._ended

    def read_new(self, record: SourceRecord) -> bool:
        """Pass the new rows on; see `Source`."""
        new = self._file.read()
        self.written = self._file.modified
        if new.restarted:
            self._begin()
            record.begin_segment()

        def report(position: int, text: str) -> None:
            if text not in self._reported:
                self._reported.add(text)
                record.problem(text, f"{self._file.key}: byte {position}")

        for message in self._log.records(new.data, report):
            try:
                problem = self._add(message, record)
            except (CorruptFileError, TruncatedFileError):
                problem = _NO_RECORD
            if problem:
                report(self._log.position, problem)
        return bool(new.data)

    def _add(self, message: memoryview, record: SourceRecord) -> str:
        """Pass on what a record says; return what is wrong with it, or ""."""
        for number, field in _fields(message):
            if number == _HISTORY:
                return self._add_row(field, record)
            if number == _STATS:
                self._add_measurements(field, record)
            elif number == _EXIT:
                self._ended = True
        return ""

    def _add_row(self, message: bytes, record: SourceRecord) -> str:
        """Pass a row of the history on; return what is wrong with it, or ""."""
        values: dict[str, float] = {}
        others: dict[str, Any] = {}
        step: float | None = None
        for number, field in _fields(message):
            if number == _HISTORY_STEP:
                step = _integer(field)
            elif number == _ITEM:
                name, value = _item(field)
                if type(value) is float and name[:1] != "_":
                    values[name] = value
                elif value is not None:
                    others[name] = value
        time = to_time(others.pop(TIME, None))
        own_step = to_number(others.pop(STEP, None))
        step = own_step if step is None else step
        if others:
            values = _with_others(values, others)
        if not values:
            return ""
        if step is None or not is_step(step):
            return _NO_STEP
        self._step = int(step)
        self._measured.clear()
        record.row(self._step, values, time)
        return ""

    def _add_measurements(self, message: bytes, record: SourceRecord) -> None:
        """Pass on the first measurements of the system after a row, which get its step."""
        values: dict[str, float] = {}
        time = 0
        for number, field in _fields(message):
            if number == _STATS_TIME:
                time = _integer(field)
            elif number == _STATS_ITEM:
                values |= _numbers(*_item(field))
        new = {SYSTEM + name: value for name, value in values.items() if name not in self._measured}
        self._measured |= values.keys()
        if self._step >= 0 and new:
            record.row(self._step, new, to_time(time))


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, bytes]]:
    """Yield the messages and texts in a message, by field number.

    Short items, of which a history consists, are read faster than by `fields`.
    """
    message = bytes(message)
    start, size = 0, len(message)
    while start + 1 < size and message[start] == _ITEM_TAG and message[start + 1] < MORE:
        end = start + 2 + message[start + 1]
        if end > size:  # `fields` raises
            break
        yield _ITEM, message[start + 2 : end]
        start = end
    for number, field in fields(memoryview(message)[start:], _RECORD):
        if not isinstance(field, int):
            yield number, bytes(field)


def _item(item: bytes) -> tuple[str, Any]:
    """Return the name and value of an item; the name is "" if it is passed over."""
    keys, tag, rest = item.partition(_VALUE_JSON)
    name = _name(keys) if len(keys) <= MAX_NAME else ""
    if not name:
        return "", None
    if rest and rest[0] == len(rest) - 1 < MORE:
        value = rest[1:]
    else:
        _, value = next(_fields(tag + rest), (0, b""))
    if len(value) > MAX_VALUE:
        return "", None
    try:
        return name, _decoder.decode(value)
    except (ValueError, RecursionError):  # such as NaN
        return name, decoded(str(value, "utf-8", "replace"))


def _with_others(values: dict[str, float], others: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers with those in other values, but without those that describe media."""
    for name, value in others.items():
        values |= _numbers(name, value)
    media = tuple(name.removesuffix("_type") for name in others if name.endswith(_MEDIA))
    return (
        {name: values[name] for name in values if not name.startswith(media)} if media else values
    )


def _numbers(name: str, value: Any) -> dict[str, float]:
    """Return the numbers in a value by name: one, or those of a nested object."""
    pairs = ((each, to_number(content)) for each, content in flattened({name: value}))
    return {
        each: number for each, number in pairs if number is not None and field_role(each) is None
    }


@lru_cache(maxsize=8192)
def _name(keys: bytes) -> str:
    """Return the name that the keys of an item make; "" for what is no metric."""
    parts = [str(field, "utf-8", "replace") for number, field in _fields(keys) if number in _KEYS]
    name = "/".join(filter(None, parts))
    is_counter = name.startswith("_") or field_role(name) is not None
    return "" if is_counter and name not in {STEP, TIME} else name


def _integer(message: bytes) -> int:
    """Return the integer in the first field of a message; protobuf leaves out 0."""
    return read_varint(memoryview(message), 1, _RECORD)[0] if message[:1] == b"\x08" else 0


FORMAT: Final = WandbFormat()
