"""Measurement files: the measures of a block, written by one process and used by another.

A file is a digest of what follows, and MessagePack: a header, and the block. It is used for a part
of a step only while the index file and the event file are those that were measured.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Files, IndexFile, Layout
from rule_core.format.paths import StepFile
from rule_core.logger import get_logger
from rule_core.model.streaming_statistics import Want
from rule_core.reading.measuring.codec import EMPTY, DecodedBlock
from rule_core.reading.measuring.measurer import PartMeasures
from rule_core.storage.base import FileStatus, TrialStore
from rule_core.storage.read_pool import ReadPool

SUFFIX: Final = ".measures"
_MAGIC: Final = b"rule-runner measures 1\n"
_DIGEST_BYTES: Final = 32
BYTES_KEPT: Final = 256 << 20

Identity = tuple[str, int, float]  # of index file; size and time of the event file


class MeasuredPart(msgspec.Struct, array_like=True, frozen=True):
    """A measured part of a step.

    Attributes
    ----------
    identity
        Of its files, before they were read.
    earlier
        The steps of the earlier values, and the identities of their files.
    """

    step: int
    part: str
    identity: Identity
    earlier: tuple[tuple[int, Identity], ...] = ()


class _MeasuresHeader(msgspec.Struct):
    """What a measurement file holds.

    Attributes
    ----------
    version
        The version of the program, since another one may compute other results.
    wants
        The statistics, in words.
    """

    version: str
    wants: list[str]
    parts: list[MeasuredPart]


class _StoredBlock(msgspec.Struct):
    header: _MeasuresHeader
    content: bytes


_DECODER: Final = msgspec.msgpack.Decoder(_StoredBlock)


def want_text(want: Want) -> str:
    """Return a statistic in words, which are the same in every process; "" if it has none."""
    statistic, back = want
    kind = type(statistic)
    if kind.__repr__ is object.__repr__:
        return ""
    return f"{kind.__module__}.{statistic!r} of {back} steps back"


class PartIdentities:
    """Tells whether the files of a part of a step are the same as before.

    Parameters
    ----------
    store
        The store of the trial.
    """

    def __init__(self, store: TrialStore) -> None:
        self._store = store
        parallel = store.costs.parallel
        self._pool = ReadPool[FileStatus](parallel) if parallel > 1 else None
        self._digests: dict[int, tuple[Layout, str]] = {}

    def of(self, files: Sequence[IndexFile]) -> list[Identity | None]:
        """Return the identity of the files of parts; None without an event file."""
        asks: list[Callable[[], FileStatus]]
        asks = [partial(self._store.status, file.event_key or "") for file in files]
        if self._pool is not None:
            asks = [self._pool.submit(ask).result for ask in asks]
        return [self._identity(file, ask) for file, ask in zip(files, asks, strict=True)]

    def _identity(self, file: IndexFile, ask: Callable[[], FileStatus]) -> Identity | None:
        try:
            status = ask()
        except SMDebugError:
            return None
        index = f"{self._digest(file.layout)} {file.mode.name} {file.mode_step} {file.event_key}"
        return index, status.size, status.modified

    def _digest(self, layout: Layout) -> str:
        """Return a digest of what index files of a layout say."""
        digest = self._digests.get(id(layout))
        if digest is None or digest[0] is not layout:
            entries = [
                (name, entry.raw, sorted((*key, span) for key, span in entry.reductions.items()))
                for name, entry in sorted(layout.entries.items())
            ]
            content = msgspec.msgpack.encode(entries)
            digest = self._digests[id(layout)] = layout, hashlib.sha256(content).hexdigest()
        return digest[1]


def store_block(
    version: str, wants: Sequence[Want], parts: Sequence[MeasuredPart], content: bytes
) -> bytes:
    """Return a measurement file.

    Parameters
    ----------
    parts
        The measured parts.
    content
        The result of `measure_block`.
    """
    header = _MeasuresHeader(version, [*map(want_text, wants)], [*parts])
    body = msgspec.msgpack.encode(_StoredBlock(header, content))
    return _MAGIC + hashlib.sha256(body).digest() + body


def _read(content: memoryview | bytes, version: str) -> _StoredBlock:
    """Return the content of a measurement file.

    Raises
    ------
    ValueError
        If it is damaged, or none, or was written by another version of the program.
    """
    start = len(_MAGIC) + _DIGEST_BYTES
    data = bytes(content)
    if not data.startswith(_MAGIC):
        raise ValueError("it is no measurement file, or one of another version")
    if hashlib.sha256(data[start:]).digest() != data[len(_MAGIC) : start]:
        raise ValueError("it is cut off or damaged")
    try:
        block = _DECODER.decode(data[start:])
    except msgspec.MsgspecError as err:
        raise ValueError(f"it is of another form: {err}") from err
    if block.header.version != version:
        raise ValueError(f"it was written by version {block.header.version}, and this is {version}")
    return block


class StoredMeasurer:
    """Answers from measurement files; see `Measurer`.

    Parameters
    ----------
    folder
        The folder with the measurement files.
    version
        The version of the program; files of others are not used.

    Attributes
    ----------
    measured
        The number of parts of steps that were answered.
    changed
        The number of parts whose files are no longer those that were measured.
    problems
        A sentence for each file that cannot be used.
    """

    def __init__(self, folder: TrialStore, version: str) -> None:
        self._folder = folder
        self._version = version
        # By step and part: the key of the file, and what was measured.
        self._places: dict[tuple[int, str], tuple[str, MeasuredPart]] = {}
        self._wants: dict[str, Want] = {}
        self._files: Files = {}
        self._identities: PartIdentities | None = None
        self._kept: OrderedDict[str, tuple[DecodedBlock, int]] = OrderedDict()
        self._current: dict[tuple[int, str], Identity | None] = {}
        self._step = -1
        self._unchanged: set[str] = set()  # the parts of the current step that may be answered
        self.measured = self.changed = 0
        self.problems: list[str] = []

    def begin(self, files: Files, store: TrialStore, wants: Iterable[Want]) -> None:
        """Find the measurement files.

        Parameters
        ----------
        files
            The growing collection of the known index files.
        store
            The store of the trial.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the folder cannot be read.
        """
        self._files, self._identities = files, PartIdentities(store)
        self._wants = {text: want for want in wants if (text := want_text(want))}
        for key in self._folder.list_keys(""):
            if key.endswith(SUFFIX):
                block = self._load(key)
                for each in () if block is None else block.header.parts:
                    self._places[each.step, each.part] = key, each

    def _load(self, key: str) -> _StoredBlock | None:
        """Return a measurement file; None, with a reason, if it cannot be used."""
        try:
            return _read(self._folder.read(key), self._version)
        except (ValueError, SMDebugError) as err:
            self._report(key, err)
            return None

    def _report(self, key: str, err: Exception) -> None:
        text = f"Measurement file {key!r} is not used: {str(err).rstrip('.')}."
        if text not in self.problems:
            self.problems.append(text)
            get_logger().warning("%s", text)

    def parse(self, keys: Sequence[tuple[str, StepFile]]) -> Iterator[IndexFile | None]:
        """Yield None for each index file: all are parsed by the process that asks."""
        yield from (None for _ in keys)

    def measures(self, step: int, part: str) -> PartMeasures | None:
        """Return the measures of a part of a step; see `Measurer`."""
        if step != self._step:
            self._step = step
            self._unchanged = self._find_unchanged(step)
        if part not in self._unchanged:
            return None
        key, _ = self._places[step, part]
        try:
            measures = self._block(key).measures(step, part)
        except ValueError as err:
            self._report(key, err)
            return None
        self.measured += measures is not None
        return measures

    def _find_unchanged(self, step: int) -> set[str]:
        """Return the measured parts of a step whose files are still the same."""
        if self._identities is None:
            return set()
        measured = {
            part: self._places[step, part][1]
            for part in self._files[step]
            if (step, part) in self._places
        }
        expected = {
            part: {step: each.identity, **dict(each.earlier)} for part, each in measured.items()
        }
        keys = {(at, part) for part, identities in expected.items() for at in identities}
        now = self._identities_of(self._identities, sorted(keys))
        same = {
            part
            for part, identities in expected.items()
            if all(now.get((at, part)) == identity for at, identity in identities.items())
        }
        self.changed += len(measured) - len(same)
        return same

    def _identities_of(
        self, identities: PartIdentities, keys: Sequence[tuple[int, str]]
    ) -> Mapping[tuple[int, str], Identity | None]:
        """Return the identities of the known parts among some; those of the last steps are kept."""
        new = [
            (at, part)
            for at, part in keys
            if (at, part) not in self._current and part in self._files.get(at, {})
        ]
        looked_up = identities.of([self._files[at][part] for at, part in new])
        current = {**self._current, **dict(zip(new, looked_up, strict=True))}
        self._current = {key: current[key] for key in keys if key in current}
        return current

    def _block(self, key: str) -> DecodedBlock:
        """Return the measures of a file; the ones used last are kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        block = self._load(key)
        if block is None:
            return DecodedBlock(EMPTY, [])
        wants = [self._wants.get(text) for text in block.header.wants]
        decoded = DecodedBlock(block.content, wants)
        self._kept[key] = decoded, len(block.content)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > BYTES_KEPT:
            self._kept.popitem(last=False)
        return decoded

    def close(self) -> None:
        """Forget the files."""
        self._places.clear()
