"""Index files: bytes to typed records of what one worker saved at one global step."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from smdebug.core import locations
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import CorruptFileError, TruncatedFileError

MAX_RANK: Final = 64
MAX_STEP: Final = 2**63 - 1
MODES: Final = {mode.name: mode for mode in ModeKeys}


class Span(NamedTuple):
    """One whole record of an event file: where it starts, and its length in bytes."""

    start: int
    length: int


class Entry(msgspec.Struct):
    """What one index file holds of one tensor: value, reductions, shape, each if saved."""

    raw: Span | None = None
    reductions: dict[tuple[str, bool], Span] = {}
    shape: tuple[int, ...] | None = None
    original_name: str | None = None


class IndexFile(msgspec.Struct, frozen=True):
    """One index file: its mode and mode step, its event file, and an entry for each tensor.

    `damaged` has a sentence for each tensor whose record could not be used.
    """

    key: str
    mode: ModeKeys
    mode_step: int
    event_key: str | None
    entries: dict[str, Entry]
    damaged: dict[str, str] = {}

    @property
    def first_record(self) -> Span | None:
        """The first record of the event file that is named here, or None: shapes only."""
        return min(self._records(), default=None)

    @property
    def end(self) -> int:
        """Where the last record of the event file ends."""
        return max((span.start + span.length for span in self._records()), default=0)

    def _records(self) -> Iterator[Span]:
        for entry in self.entries.values():
            if entry.raw is not None:
                yield entry.raw
            yield from entry.reductions.values()


class _Meta(msgspec.Struct):
    mode: str
    mode_step: int | str
    event_file_name: str | None = None


class _TensorRecord(msgspec.Struct):
    tensorname: str
    start_idx: int
    length: int


class _ShapeRecord(msgspec.Struct):
    tensorname: str
    shape: list[int]
    originalname: str | None = None


class _Document(msgspec.Struct):
    meta: _Meta
    tensor_payload: list[_TensorRecord] | None = None
    shape_payload: list[_ShapeRecord] | None = None


_DECODER = msgspec.json.Decoder(_Document)


def parse_index(data: memoryview, key: str) -> IndexFile:
    """Return the content of an index file.

    Parameters
    ----------
    data
        The whole file.
    key
        Its place below the trial's root, for messages.

    Raises
    ------
    TruncatedFileError
        If the JSON ends too early.
    CorruptFileError
        If it is no index file, or names an event file outside the trial.
    """
    document = _decode(data, key)
    meta = document.meta
    mode = MODES.get(meta.mode.strip())
    if mode is None:
        raise CorruptFileError(key, f"a mode of {', '.join(MODES)}", repr(meta.mode[:40]))
    mode_step = _mode_step(meta.mode_step, key)
    tensors, shapes = document.tensor_payload, document.shape_payload
    if tensors is None and shapes is None:
        raise CorruptFileError(key, "key 'tensor_payload' or 'shape_payload'", "neither")
    event_key = meta.event_file_name
    if event_key is not None and not locations.is_inside(event_key):
        raise CorruptFileError(key, "an event file inside the trial", repr(event_key[:200]))
    if tensors and event_key is None:
        raise CorruptFileError(key, "key 'event_file_name'", "none")
    entries: dict[str, Entry] = {}
    damaged: dict[str, str] = {}
    for tensor in tensors or ():
        _add_tensor(tensor, entries, damaged)
    for shape in shapes or ():
        _add_shape(shape, entries, damaged)
    return IndexFile(key, mode, mode_step, event_key, entries, damaged)


def _decode(data: memoryview, key: str) -> _Document:
    if not data:
        raise TruncatedFileError(key, "a JSON object", "an empty file")
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        cls = TruncatedFileError if "truncated" in str(err) else CorruptFileError
        raise cls(key, "an index of tensors", str(err).rstrip(".")) from err


def _mode_step(value: int | str, key: str) -> int:
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_STEP:  # noqa: PLR2004 - 2**63 has 19 digits
        return int(text)
    raise CorruptFileError(key, "a mode step >= 0", repr(value)[:40])


def _add_tensor(record: _TensorRecord, entries: dict[str, Entry], damaged: dict[str, str]) -> None:
    """File one record of ``tensor_payload``: a value, or a reduction under its tensor's name."""
    if record.start_idx < 0 or record.length < 0:
        damaged[record.tensorname] = (
            f"a record at {record.start_idx} of {record.length} bytes cannot be"
        )
        return
    span = Span(record.start_idx, record.length)
    reduction = locations.parse_reduction_name(record.tensorname)
    if reduction is None:
        entries.setdefault(record.tensorname, Entry()).raw = span
        return
    entry = entries.setdefault(reduction.tensor, Entry())
    entry.reductions = entry.reductions or {}
    entry.reductions[reduction.operation, reduction.absolute] = span


def _add_shape(record: _ShapeRecord, entries: dict[str, Entry], damaged: dict[str, str]) -> None:
    """File one record of ``shape_payload`` beside what else there is of the tensor."""
    if len(record.shape) > MAX_RANK or any(size < 0 for size in record.shape):
        damaged[record.tensorname] = f"a shape of {len(record.shape)} dimensions cannot be"
        return
    entry = entries.setdefault(record.tensorname, Entry())
    entry.shape = tuple(record.shape)
    entry.original_name = record.originalname or record.tensorname
