"""IndexParser: parses index files, which list what one worker saved at one global step."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import paths
from rule_core.format.paths import StepFile
from rule_core.modes import ModeKeys

if TYPE_CHECKING:
    from rule_core.format.record_layout import RecordLayout

MAX_RANK: Final = 64
MODES: Final = {mode.name: mode for mode in ModeKeys}
LAYOUTS_KEPT: Final = 256
NAMES_KEPT: Final = 64  # lists of names


class Span(NamedTuple):
    """The span of one record in an event file: start and length in bytes."""

    start: int
    length: int


class Entry(msgspec.Struct):
    """The entry of one tensor in an index file: value, reductions and shape, if saved.

    Attributes
    ----------
    layout
        The layout of the value, if it is known beforehand; otherwise the record is parsed.
    """

    raw: Span | None = None
    reductions: dict[tuple[str, bool], Span] = {}
    shape: tuple[int, ...] | None = None
    original_name: str | None = None
    layout: "RecordLayout | None" = None


class Layout(msgspec.Struct, frozen=True, eq=False):
    """The tensor entries of index files, shared by the steps that have the same entries.

    Attributes
    ----------
    entries
        The entry of each tensor; do not modify.
    names
        The tensors' names, sorted; see `shared_names`.
    damaged
        A sentence for each tensor with an invalid record.
    has_records
        Whether there are records in an event file.
    first_record
        The first record of the event file, or None if there are only shapes.
    end
        The end of the last record in the event file.
    """

    entries: dict[str, Entry]
    names: tuple[str, ...]
    damaged: dict[str, str]
    has_records: bool
    first_record: Span | None
    end: int


@lru_cache(NAMES_KEPT)
def shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names; usually the same tuple for the same names."""
    return names


class IndexFile(msgspec.Struct, gc=False):
    """One index file: its mode and mode step, its event file, and an entry for each tensor.

    There may be very many of them, so that file names that follow from step and worker are computed
    on demand.

    Attributes
    ----------
    step, worker
        As in the name of the file.
    own_key
        The key of the file, if it differs from the standard one.
    event_file
        The key of the event file. True means the standard key, not computed yet; None means that
        there are only shapes.
    entries
        The entries of the layout.
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
        """The key of the index file."""
        return self.own_key or paths.index_key(self.step, self.worker)

    @property
    def event_key(self) -> str | None:
        """The key of the event file, or None if there are only shapes."""
        if self.event_file is True:
            worker = paths.worker_to_file_name(self.worker)
            self.event_file = paths.EVENT_KEY.format(self.step, worker)
        return self.event_file or None

    @property
    def damaged(self) -> dict[str, str]:
        """A sentence for each tensor with an invalid record."""
        return self.layout.damaged

    @property
    def first_record(self) -> Span | None:
        """The first record of the event file, or None if there are only shapes."""
        return self.layout.first_record

    @property
    def end(self) -> int:
        """The end of the last record in the event file."""
        return self.layout.end


# Index files by global step and part.
Files = Mapping[int, Mapping[str, IndexFile]]


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


class _IndexDocument(msgspec.Struct):
    meta: _Meta
    tensor_payload: list[_TensorRecord] | None = None
    shape_payload: list[_ShapeRecord] | None = None


_NULL: Final = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, gc=False):
    """A document with unparsed payloads."""

    meta: _Meta
    tensor_payload: msgspec.Raw = _NULL
    shape_payload: msgspec.Raw = _NULL


_DOCUMENT = msgspec.json.Decoder(_IndexDocument)
_ENVELOPE = msgspec.json.Decoder(_Envelope)


class IndexParser:
    """Parses index files; equal payloads are decoded once."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[bytes, bytes], Layout] = {}

    def parse(self, data: memoryview | bytes, key: str, step_file: StepFile) -> IndexFile:
        """Parse an index file.

        Parameters
        ----------
        data
            The content of the file.
        key
            The key of the file.
        step_file
            The step and worker in its name.

        Raises
        ------
        TruncatedFileError
            If the JSON is truncated.
        CorruptFileError
            If it is not an index file, or names an event file outside the trial.
        """
        meta, layout = self._decode(data, key)
        mode = MODES.get(meta.mode) or MODES.get(meta.mode.strip())
        if mode is None:
            raise CorruptFileError(key, f"a mode of {', '.join(MODES)}", repr(meta.mode[:40]))
        mode_step = _mode_step(meta.mode_step, key)
        step, worker = step_file
        event_file_name = meta.event_file_name
        index_key, event_key = paths.step_keys(step, worker)
        is_standard = event_file_name == event_key
        if event_file_name is not None and not is_standard and not paths.is_inside(event_file_name):
            raise CorruptFileError(
                key, "an event file inside the trial", repr(event_file_name[:200])
            )
        if event_file_name is None and layout.has_records:
            raise CorruptFileError(key, "key 'event_file_name'", "none")
        own_key = None if key == index_key else key
        if mode_step == step:
            mode_step = step  # one object in memory
        event = is_standard or event_file_name
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
        """Cache a layout for equal payloads; clear the cache when it is full."""
        if len(self._layouts) >= LAYOUTS_KEPT:
            self._layouts.clear()
        self._layouts[payloads] = layout
        return layout


def _mode_step(value: int | str, key: str) -> int:
    if isinstance(value, int) and 0 <= value <= paths.MAX_STEP:
        return value
    text = str(value)
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= paths.MAX_STEP:  # noqa: PLR2004 - 2**63 has 19 digits
        return int(text)
    raise CorruptFileError(key, "a mode step >= 0", repr(value)[:40])


def _layout(document: _IndexDocument, key: str) -> Layout:
    """Convert the payloads of a document to a layout."""
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
        shared_names(tuple(sorted(entries))),
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
    """Add one record of ``tensor_payload``: a value, or a reduction under its tensor's name."""
    if record.start_idx < 0 or record.length < 0:
        damaged[record.tensorname] = (
            f"a record at {record.start_idx} of {record.length} bytes cannot be"
        )
        return
    span = Span(record.start_idx, record.length)
    reduction = paths.parse_reduction_name(record.tensorname)
    if reduction is None:
        entries.setdefault(record.tensorname, Entry()).raw = span
        return
    entry = entries.setdefault(reduction.tensor, Entry())
    entry.reductions = entry.reductions or {}
    entry.reductions[reduction.operation, reduction.absolute] = span


def _add_shape(record: _ShapeRecord, entries: dict[str, Entry], damaged: dict[str, str]) -> None:
    """Add one record of ``shape_payload`` to the entry of its tensor."""
    if len(record.shape) > MAX_RANK or any(size < 0 for size in record.shape):
        damaged[record.tensorname] = f"a shape of {len(record.shape)} dimensions cannot be"
        return
    entry = entries.setdefault(record.tensorname, Entry())
    entry.shape = tuple(record.shape)
    entry.original_name = record.originalname or record.tensorname
