"""CompressedFile: the content of a compressed file that may grow, in bounded memory."""

import zlib
from collections.abc import Callable
from typing import Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.storage.base import ByteRange, TrialStore
from rule_core.storage.growing_file import PIECE_BYTES, GrowingFile, NewBytes

MEMORY_BYTES: Final = 256 << 20  # that xz may use
_ERRORS: Final[set[type[Exception]]] = {zlib.error, OSError}  # and those of the methods in use


def _bz2_decompressor() -> Any:
    from bz2 import BZ2Decompressor

    return BZ2Decompressor()


def _xz_decompressor() -> Any:
    from lzma import LZMADecompressor, LZMAError

    _ERRORS.add(LZMAError)
    return LZMADecompressor(memlimit=MEMORY_BYTES)


def _zstd_decompressor() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # since Python 3.14
    except ImportError:
        from backports import zstd  # type: ignore[import-not-found]
    _ERRORS.add(zstd.ZstdError)
    return zstd.ZstdDecompressor()


# The decompressor of one member.
_METHODS: Final[dict[str, Callable[[], Any]]] = {
    ".gz": lambda: zlib.decompressobj(31),
    ".bz2": _bz2_decompressor,
    ".xz": _xz_decompressor,
    ".zst": _zstd_decompressor,
}


def plain_name(name: str) -> str:
    """Return the name of a file without the ending of its compression.

    >>> plain_name("metrics.csv.gz"), plain_name("metrics.csv")
    ('metrics.csv', 'metrics.csv')
    """
    stem, dot, ending = name.rpartition(".")
    return stem if stem and dot + ending.lower() in _METHODS else name


def open_file(store: TrialStore, key: str) -> GrowingFile:
    """Return a file of which the content is read, decompressed if its name says so.

    Raises
    ------
    SMDebugValueError
        If the package that decompresses it is missing.
    """
    ending = key[len(plain_name(key)) :].lower()
    if not ending:
        return GrowingFile(store, key)
    try:
        return CompressedFile(store, key, _METHODS[ending])
    except ImportError as err:
        raise SMDebugValueError(
            f"File {key!r} is compressed. To read it, install the package backports.zstd."
        ) from err


def read_head(store: TrialStore, key: str, limit: int) -> bytes:
    """Return the first bytes of the content of a file; raises as `open_file` and its `read`."""
    if plain_name(key) == key:
        return bytes(store.read(key, ByteRange(0, limit)))
    head, file = b"", open_file(store, key)
    while len(head) < limit and (data := file.read(limit - len(head)).data):
        head += data
    return head


class Members:
    """The members of compressed data, one after another.

    Attributes
    ----------
    is_complete
        Whether each member that has begun has ended.
    """

    def __init__(self, new_member: Callable[[], Any] = _METHODS[".gz"]) -> None:
        self._new_member = new_member
        self._member = new_member()
        self._input = b""
        self.is_complete = True

    def feed(self, data: bytes) -> None:
        """Add compressed data."""
        self._input += data

    def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes of content; b"" if it takes more data.

        Raises
        ------
        zlib.error, OSError, lzma.LZMAError
            If the data is damaged; Zstandard has an error of its own.
        """
        content = b""
        while not content:
            if self.is_complete:
                self._input = self._input.lstrip(b"\0")  # padding
                if not self._input:
                    break
                self._member, self.is_complete = self._new_member(), False
            content = self._member.decompress(self._input, limit)
            self.is_complete = self._member.eof
            if not self.is_complete:
                self._input = getattr(self._member, "unconsumed_tail", b"")
                break
            self._input = self._member.unused_data
        return content


class CompressedFile(GrowingFile):
    """The content of a compressed file, which may have several members, and not yet its end.

    Attributes
    ----------
    problem
        A sentence on damage, at which the content ends; "" if there is none.
    """

    def __init__(self, store: TrialStore, key: str, new_member: Callable[[], Any]) -> None:
        super().__init__(store, key)
        self._new_member = new_member
        self._begin()

    def _begin(self) -> None:
        self.problem = ""
        self._members = Members(self._new_member)

    def read(self, limit: int = PIECE_BYTES) -> NewBytes:
        """Return at most `limit` bytes of the content; see `GrowingFile.read`."""
        restarted, content = False, self._decompressed(limit)
        while not content:
            new = super().read(limit)
            if new.restarted:
                self._begin()
                restarted = True
            if not new.data:
                break
            self._members.feed(bytes(new.data))
            content = self._decompressed(limit)
        return NewBytes(memoryview(content), restarted)

    def _decompressed(self, limit: int) -> bytes:
        try:
            return b"" if self.problem else self._members.read(limit)
        except (*_ERRORS,) as err:
            self.problem = f"It is damaged: {err}. What follows is not read."
            return b""
