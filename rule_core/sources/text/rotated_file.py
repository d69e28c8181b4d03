"""RotatedFile: a log and its older parts, which a rotation has renamed, as one file."""

import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.text.compressed_file import open_file, plain_name
from rule_core.storage.base import ObjectNotFoundError, TrialStore
from rule_core.storage.growing_file import PIECE_BYTES, GrowingFile, NewBytes

MAX_PARTS: Final = 1000
ROTATIONS: Final = 4  # between two looks
# What a rotation appends: a number, which grows with age, or a date.
_ENDING: Final = re.compile(r"(.+?)(?:\.(\d{1,3})|[-.]((?:19|20)\d{6}(?:[-_T.]?\d{2,6})?))")


def without_parts(names: Sequence[str]) -> list[str]:
    """Return names without those of older parts, and of compressed copies, of others.

    >>> without_parts(["a.log", "a.log.1", "a.log-20260101.gz", "b.log.1", "c.csv", "c.csv.gz"])
    ['a.log', 'b.log.1', 'c.csv']
    """
    every = frozenset(names)

    def is_newest(name: str) -> bool:
        plain = plain_name(name)
        match = _ENDING.fullmatch(plain)
        return not (match and match[1] in every) and (plain == name or plain not in every)

    return [*filter(is_newest, names)]


def older_parts(store: TrialStore, key: str) -> list[str]:
    """Return the keys of the older parts of a log, the oldest first."""
    parts: dict[str, tuple[str, int, str]] = {}
    for name in islice(store.list_keys(key, start_after=key), MAX_PARTS):
        match = _ENDING.fullmatch(plain_name(name))
        if match and match[1] == key:  # a copy that is being compressed comes after its original
            parts.setdefault(match[0], (match[3] or "", -int(match[2] or 0), name))
    return [name for *_, name in sorted(parts.values())]


class RotatedFile:
    """Reads a log, also while it is rotated: no byte is lost or read twice.

    Attributes
    ----------
    modified, problem
        See `CompressedFile`.

    Raises
    ------
    SMDebugValueError
        If the package that decompresses the log is missing.
    """

    def __init__(self, store: TrialStore, key: str) -> None:
        open_file(store, key)
        self._store = store
        self._key = key
        self.modified = 0.0
        self.problem = ""
        self._files: list[GrowingFile] = []  # what is read, and what follows it
        self._begin()

    def _begin(self) -> None:
        self._size, self._checksum = 0, 1  # of what was read of the first file

    def _parts(self) -> list[GrowingFile]:
        files = []
        for key in [*older_parts(self._store, self._key), self._key]:
            try:
                files.append(open_file(self._store, key))
            except SMDebugValueError as err:
                self.problem = str(err)
        return files

    def read(self, limit: int = PIECE_BYTES) -> NewBytes:
        """Return the next bytes; see `GrowingFile.read`."""
        self._files = self._files or self._parts()
        while True:
            try:
                new = self._files[0].read(limit)
            except ObjectNotFoundError:
                if self._has_moved():
                    continue
                raise
            if new.restarted:
                if self._has_moved():
                    continue
                self._begin()
            self.modified = self._files[0].modified
            self.problem = self.problem or getattr(self._files[0], "problem", "")
            if new.data or new.restarted or not self._has_next():
                self._size += len(new.data)
                self._checksum = zlib.adler32(new.data, self._checksum)
                return new
            del self._files[0]
            self._begin()

    def _has_next(self) -> bool:
        """Return whether a newer file has begun; until then, writers may use the older one."""
        with suppress(ObjectNotFoundError):
            return len(self._files) > 1 and self._store.status(self._files[1].key).size > 0
        return False

    def _has_moved(self) -> bool:
        """Go on in the older part that begins with what was read; return whether there is one."""
        files = self._parts() if self._size else []
        for newest in range(len(files) - 2, -1, -1)[:ROTATIONS]:
            size, checksum = 0, 1
            with suppress(ObjectNotFoundError):
                while size < self._size and (
                    data := files[newest].read(min(PIECE_BYTES, self._size - size)).data
                ):
                    size, checksum = size + len(data), zlib.adler32(data, checksum)
                if (size, checksum) == (self._size, self._checksum):
                    newer = [open_file(self._store, file.key) for file in files[newest + 1 :]]
                    self._files = [files[newest], *newer]
                    return True
        return False
