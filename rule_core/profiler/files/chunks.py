"""chunks: the text of a timeline file in pieces, decompressed if needed.

Timelines are untrusted data: their size and their compression ratio are limited.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.sources.text.compressed_file import Members
from rule_core.storage.base import ByteRange, TrialStore

GZIP: Final = b"\x1f\x8b"
SNIFFED: Final = 1 << 16  # bytes
_FETCH: Final = 8 << 20  # bytes per request to a slow store


@dataclass(frozen=True, slots=True)
class TimelineLimits:
    """Limits for one untrusted timeline.

    Attributes
    ----------
    chunk
        Bytes of text in memory at once.
    total
        Bytes of text in all.
    swelling, unsuspected
        Largest decompression ratio, and decompressed bytes below which it is not checked. Traces
        compress 10 to 50 times, a gzip bomb 1000 times.
    record
        Bytes of one record.
    header
        Bytes before ``traceEvents`` in an object.
    depth
        Nesting depth of a record.
    rows
        Phases and threads, and ``B`` events open at once.
    skipped
        Invalid records, after which reading stops.
    """

    chunk: int = 1 << 20
    total: int = 4 << 30
    swelling: int = 200
    unsuspected: int = 64 << 20
    record: int = 1 << 20
    header: int = 4 << 20
    depth: int = 64
    rows: int = 1 << 16
    skipped: int = 1 << 16


LIMITS: Final = TimelineLimits()


class TimelineFaultError(SMDebugError):
    """A timeline cannot be read further; the message continues after the timeline's name."""


def chunks(store: TrialStore, key: str, limits: TimelineLimits = LIMITS) -> Iterator[bytes]:
    """Yield the text of a file in pieces of at most `limits.chunk` bytes.

    Raises
    ------
    TimelineFaultError
        If the text exceeds the limits, or the gzip data is damaged or cut off.
    ObjectNotFoundError, StorageUnavailableError
        See `TrialStore.read`.
    """
    pieces = _pieces(store, key, limits.chunk)
    first = next(pieces, b"")
    whole = chain((first,), pieces)
    read = 0
    for piece in _unzipped(whole, limits) if first.startswith(GZIP) else whole:
        if (read := read + len(piece)) > limits.total:
            raise TimelineFaultError(f"has more than {limits.total} bytes: the rest is left out")
        yield piece


def start_of_text(store: TrialStore, key: str) -> bytes:
    """Return at most `SNIFFED` bytes of the start of a file's text, decompressed if needed.

    A byte order mark and blank characters at the beginning are removed.

    Raises
    ------
    TimelineFaultError
        If the gzip data is damaged.
    ObjectNotFoundError, StorageUnavailableError
        See `TrialStore.read`.
    """
    start = bytes(store.read(key, ByteRange(0, SNIFFED)))
    if start.startswith(GZIP):
        start = _inflate(Members(), start, SNIFFED)
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _pieces(store: TrialStore, key: str, size: int) -> Iterator[bytes]:
    fetch = max(size, _FETCH) if store.costs.gap else size
    start = 0
    while data := store.read(key, ByteRange(start, start + fetch)):
        for offset in range(0, len(data), size):
            yield bytes(data[offset : offset + size])
        if len(data) < fetch:
            return
        start += fetch


def _unzipped(pieces: Iterable[bytes], limits: TimelineLimits) -> Iterator[bytes]:
    """Yield decompressed gzip data, member by member."""
    read = written = 0
    members = Members()
    for piece in pieces:
        read += len(piece)
        content = _inflate(members, piece, limits.chunk)
        while content:
            written += len(content)
            if written > max(limits.swelling * read, limits.unsuspected):
                raise TimelineFaultError(
                    f"expands to more than {limits.swelling} times its size: the rest is not read"
                )
            yield content
            content = _inflate(members, b"", limits.chunk)
    if not members.is_complete:
        raise TimelineFaultError("is truncated gzip data")


def _inflate(members: Members, data: bytes, most: int) -> bytes:
    members.feed(data)
    try:
        return members.read(most)
    except zlib.error as err:
        raise TimelineFaultError("is damaged gzip data") from err
