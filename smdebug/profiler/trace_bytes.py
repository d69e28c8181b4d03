"""chunks: the text of a timeline file, a piece at a time, from any store, out of gzip if need be.

Timelines are a stranger's data: how much is read of one, and how much gzip may swell, is bounded.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from smdebug.exceptions import SMDebugError
from smdebug.storage import ByteRange, TrialStore

GZIP: Final = b"\x1f\x8b"
_GZIP_BITS: Final = zlib.MAX_WBITS | 16
_FETCH: Final = 8 << 20  # bytes asked of a store in which every request takes its time


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one timeline is believed.

    Attributes
    ----------
    chunk
        Bytes of text in memory at once.
    total
        Bytes of text in all.
    swelling, unsuspected
        How many times its size gzip may become, and how many bytes may do so unasked: text of
        traces becomes 10 to 50 times shorter, a bomb 1000 times.
    record
        Bytes of one record.
    header
        Bytes before ``traceEvents`` of an object.
    depth
        Of a record: how many objects and lists are inside each other.
    rows
        Phases and threads, and ``B`` events that are open at once.
    skipped
        Records that make no sense, after which the rest is not looked at.
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


LIMITS: Final = Limits()


class TimelineFaultError(SMDebugError):
    """A timeline cannot be read further; the text goes on after the timeline's name."""


def chunks(store: TrialStore, key: str, limits: Limits = LIMITS) -> Iterator[bytes]:
    """Yield the text of a file in pieces of at most `limits.chunk` bytes.

    Raises
    ------
    TimelineFaultError
        If there is more text than the limits allow, or the gzip data are damaged or cut off.
    ObjectNotFoundError, StorageUnavailableError
        See `TrialStore.read`.
    """
    pieces = _pieces(store, key, limits.chunk)
    first = next(pieces, b"")
    whole = chain((first,), pieces)
    read = 0
    for piece in _unzipped(whole, limits) if first.startswith(GZIP) else whole:
        if (read := read + len(piece)) > limits.total:
            msg = f"has more than {limits.total} bytes: what follows is left out"
            raise TimelineFaultError(msg)
        yield piece


def _pieces(store: TrialStore, key: str, size: int) -> Iterator[bytes]:
    fetch = max(size, _FETCH) if store.costs.gap else size
    start = 0
    while data := store.read(key, ByteRange(start, start + fetch)):
        for at in range(0, len(data), size):
            yield bytes(data[at : at + size])
        if len(data) < fetch:
            return
        start += fetch


def _unzipped(pieces: Iterable[bytes], limits: Limits) -> Iterator[bytes]:
    """Yield what gzip data hold, of one member after the other."""
    taken = given = 0
    inflate = zlib.decompressobj(_GZIP_BITS)
    for piece in pieces:
        taken += len(piece)
        rest, full = piece, False
        while rest or full:
            if inflate.eof:
                rest = rest.lstrip(b"\0")  # which may follow the last member
                if not rest:
                    break
                inflate = zlib.decompressobj(_GZIP_BITS)
            text = _inflate(inflate, rest, limits.chunk)
            full = len(text) == limits.chunk and not inflate.eof
            rest = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            given += len(text)
            if given > max(limits.swelling * taken, limits.unsuspected):
                msg = f"swells to more than {limits.swelling} times its size: it is not read on"
                raise TimelineFaultError(msg)
            if text:
                yield text
    if not inflate.eof:
        msg = "is gzip data that are cut off"
        raise TimelineFaultError(msg)


def _inflate(inflate: "zlib._Decompress", data: bytes, most: int) -> bytes:
    try:
        return inflate.decompress(data, most)
    except zlib.error as err:
        msg = "is gzip data that are damaged"
        raise TimelineFaultError(msg) from err
