"""Index files: bytes to typed records of what one worker saved at one global step."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from smdebug.core import locations
from smdebug.core.locations import StepFile
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import CorruptFileError, TruncatedFileError

MAX_RANK: Final = 64
MAX_STEP: Final = 2**63 - 1
MODES: Final = {mode.name: mode for mode in ModeKeys}
LAYOUTS_KEPT: Final = 256


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


class Layout(msgspec.Struct, frozen=True, eq=False):
    """What index files say of tensors: most steps say the same, and share one layout.

    Attributes
    ----------
    entries
        What there is of each tensor; nobody changes them.
    names
        The tensors' names, in order.
    damaged
        A sentence for each tensor whose record could not be used.
    has_records
        Whether an event file is needed.
    first_record
        The first record of the event file that is named here, or None: shapes only.
    end
        Where the last record of the event file ends.
    """

    entries: dict[str, Entry]
    names: tuple[str, ...]
    damaged: dict[str, str]
    has_records: bool
    first_record: Span | None
    end: int


class IndexFile(msgspec.Struct, gc=False):
    """One index file: its mode and mode step, its event file, and an entry for each tensor.

    There may be very many of them: names of files that follow from step and worker are made when
    they are asked for.

    Attributes
    ----------
    step, worker
        What the name of the file says.
    own_key
        Its place below the trial's root, if it is not the one that writers give it.
    event_file
        Place of the event file; True if it is the one that writers give it and nobody has asked
        yet, None if there are shapes only.
    entries
        Those of the layout.
    """

    step: int
    worker: str
    own_key: str | None
    mode: ModeKeys
    mode_step: int
    event_file: str | bool | None
    layout: Layout
    entries: dict[str, Entry]

    @property
    def key(self) -> str:
        """The place of the index file below the trial's root."""
        return self.own_key or locations.index_key(self.step, self.worker)

    @property
    def event_key(self) -> str | None:
        """The place of the event file below the trial's root; None if there are shapes only."""
        if self.event_file is True:
            self.event_file = locations.event_key(self.step, self.worker)
        return self.event_file or None

    @property
    def damaged(self) -> dict[str, str]:
        """A sentence for each tensor whose record could not be used."""
        return self.layout.damaged

    @property
    def first_record(self) -> Span | None:
        """The first record of the event file that is named here, or None: shapes only."""
        return self.layout.first_record

    @property
    def end(self) -> int:
        """Where the last record of the event file ends."""
        return self.layout.end


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


_NULL: Final = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, gc=False):
    """A document whose payloads are not looked at."""

    meta: _Meta
    tensor_payload: msgspec.Raw = _NULL
    shape_payload: msgspec.Raw = _NULL


_DOCUMENT = msgspec.json.Decoder(_Document)
_ENVELOPE = msgspec.json.Decoder(_Envelope)


class IndexParser:
    """Makes records of index files; what many of them say alike is decoded once."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[bytes, bytes], Layout] = {}

    def parse(self, data: memoryview | bytes, key: str, place: StepFile) -> IndexFile:
        """Return the content of an index file.

        Parameters
        ----------
        data
            The whole file.
        key
            Its place below the trial's root.
        place
            What its name says.

        Raises
        ------
        TruncatedFileError
            If the JSON ends too early.
        CorruptFileError
            If it is no index file, or names an event file outside the trial.
        """
        meta, layout = self._decode(data, key)
        mode = MODES.get(meta.mode) or MODES.get(meta.mode.strip())
        if mode is None:
            raise CorruptFileError(key, f"a mode of {', '.join(MODES)}", repr(meta.mode[:40]))
        mode_step = _mode_step(meta.mode_step, key)
        step, worker = place
        named = meta.event_file_name
        index_key, event_key = locations.step_keys(step, worker)
        usual = named == event_key
        if named is not None and not usual and not locations.is_inside(named):
            raise CorruptFileError(key, "an event file inside the trial", repr(named[:200]))
        if named is None and layout.has_records:
            raise CorruptFileError(key, "key 'event_file_name'", "none")
        own_key = None if key == index_key else key
        if mode_step == step:
            mode_step = step  # one object in memory
        event = usual or named
        return IndexFile(step, worker, own_key, mode, mode_step, event, layout, layout.entries)

    def _decode(self, data: memoryview | bytes, key: str) -> tuple[_Meta, Layout]:
        if not data:
            raise TruncatedFileError(key, "a JSON object", "an empty file")
        try:
            envelope = _ENVELOPE.decode(data)
            payloads = bytes(envelope.tensor_payload), bytes(envelope.shape_payload)
            layout = self._layouts.get(payloads)
            if layout is None:
                layout = self._keep(payloads, _layout(_DOCUMENT.decode(data), key))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            cls = TruncatedFileError if "truncated" in str(err) else CorruptFileError
            raise cls(key, "an index of tensors", str(err).rstrip(".")) from err
        return envelope.meta, layout

    def _keep(self, payloads: tuple[bytes, bytes], layout: Layout) -> Layout:
        """Keep a layout for the files that say the same; forget all when there are too many."""
        if len(self._layouts) >= LAYOUTS_KEPT:
            self._layouts.clear()
        self._layouts[payloads] = layout
        return layout


def _mode_step(value: int | str, key: str) -> int:
    if isinstance(value, int) and 0 <= value <= MAX_STEP:
        return value
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_STEP:  # noqa: PLR2004 - 2**63 has 19 digits
        return int(text)
    raise CorruptFileError(key, "a mode step >= 0", repr(value)[:40])


def _layout(document: _Document, key: str) -> Layout:
    """Return what the payloads of a document say."""
    tensors, shapes = document.tensor_payload, document.shape_payload
    if tensors is None and shapes is None:
        raise CorruptFileError(key, "key 'tensor_payload' or 'shape_payload'", "neither")
    entries: dict[str, Entry] = {}
    damaged: dict[str, str] = {}
    for tensor in tensors or ():
        _add_tensor(tensor, entries, damaged)
    for shape in shapes or ():
        _add_shape(shape, entries, damaged)
    spans = [*_spans(entries)]
    return Layout(
        entries,
        tuple(entries),
        damaged,
        has_records=bool(tensors),
        first_record=min(spans, default=None),
        end=max((span.start + span.length for span in spans), default=0),
    )


def _spans(entries: dict[str, Entry]) -> Iterator[Span]:
    for entry in entries.values():
        if entry.raw is not None:
            yield entry.raw
        yield from entry.reductions.values()


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
