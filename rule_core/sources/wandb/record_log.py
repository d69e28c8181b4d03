"""RecordLog: the records in the transaction log of Weights & Biases, in bounded memory.

The log has the layout of LevelDB's, with the CRC-32 of zlib: blocks of 32 KiB hold chunks, each
with its checksum, length and type, and a long record is spread over chunks. The first block begins
with the head of the file.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

FILE_HEAD: Final = b":W&B\xe1\xbe\x00"  # with the version of the log
BLOCK_BYTES: Final = 1 << 15
MAX_RECORD: Final = 4 << 20  # bytes; longer ones are skipped
HEADER: Final = struct.Struct("<IHB")  # of a chunk
FULL, FIRST, MIDDLE, LAST = range(1, 5)  # types of chunks
_TYPE: Final = 6  # where the type is in a header; the checksum begins with it
_DAMAGED: Final = "The log is damaged. Damaged blocks of 32 KiB are skipped from there on."
_TOO_LONG: Final = f"The record has more than {MAX_RECORD >> 20} MiB. Such records are skipped."
_NO_LOG: Final = "It is no log of Weights & Biases, or one of an unknown version."

Report = Callable[[int, str], None]  # called with an offset in the file, and what is wrong there


class RecordLog:
    """Divides the bytes of a log into records; see the module.

    Attributes
    ----------
    position
        The offset of the next chunk, in a record the last one; -1 if the file is no log.
    """

    def __init__(self) -> None:
        self.position = 0
        self._partial = b""  # the start of a chunk, or of the file
        self._end = 0  # the number of bytes that were given
        self._record: bytearray | None = None  # the chunks of a record whose last one follows

    def records(self, data: bytes | memoryview, report: Report) -> Iterator[memoryview]:
        """Yield the complete records that end in the next bytes of the file."""
        self._end += len(data)
        data = self._partial + data
        start = self._end - len(data)
        if self.position == 0 and len(data) >= len(FILE_HEAD):
            self.position = len(FILE_HEAD) if data.startswith(FILE_HEAD) else -1
            if self.position < 0:
                report(0, _NO_LOG)
        view = memoryview(data)
        while 0 < self.position <= self._end - HEADER.size:
            left = BLOCK_BYTES - self.position % BLOCK_BYTES
            if left < HEADER.size:  # too few bytes for a chunk fill a block
                self.position += left
                continue
            offset = self.position - start
            checksum, length, kind = HEADER.unpack_from(data, offset)
            stop = offset + HEADER.size + length
            if stop > len(data) and HEADER.size + length <= left:
                break
            if zlib.crc32(view[offset + _TYPE : stop]) != checksum:
                report(self.position, _DAMAGED)
                self._record = None
                self.position += left
                continue
            record = self._joined(kind, view[offset + HEADER.size : stop], report)
            if record is not None:
                yield record
            self.position += HEADER.size + length
        self._partial = data[max(self.position - start, 0) :] if self.position >= 0 else b""

    def _joined(self, kind: int, chunk: memoryview, report: Report) -> memoryview | None:
        """Return the record that a chunk completes; None if there is none."""
        if kind == FULL:
            return chunk
        if kind == FIRST:
            self._record = bytearray()
        if self._record is None:  # the start of the record was skipped
            return None
        if len(self._record) + len(chunk) > MAX_RECORD:
            report(self.position, _TOO_LONG)
            self._record = None
            return None
        self._record += chunk
        if kind != LAST:
            return None
        record, self._record = memoryview(self._record), None
        return record
