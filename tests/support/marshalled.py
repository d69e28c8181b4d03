"""The bytes that marshal writes, one by one: for tables that no profiler would write."""

import struct
from typing import Final

END: Final = b"0"


def text(value: str, code: bytes = b"z") -> bytes:
    """Return a short text."""
    return code + bytes([len(value)]) + value.encode()


def long_text(value: bytes, code: bytes = b"u", length: int | None = None) -> bytes:
    """Return a text of any length, which may be a lie."""
    return code + struct.pack("<i", len(value) if length is None else length) + value


def whole(value: int) -> bytes:
    """Return a number of 32 bits."""
    return b"i" + struct.pack("<i", value)


def digits(*values: int, count: int | None = None) -> bytes:
    """Return a number of digits of 15 bits, which may be fewer than it says."""
    size = len(values) if count is None else count
    return b"l" + struct.pack(f"<i{len(values)}H", size, *values)


def real(value: float) -> bytes:
    """Return a number with a fraction."""
    return b"g" + struct.pack("<d", value)


def several(*parts: bytes) -> bytes:
    """Return a short tuple."""
    return b")" + bytes([len(parts)]) + b"".join(parts)


def ref(number: int) -> bytes:
    """Return a reference."""
    return b"r" + struct.pack("<i", number)


def kept(part: bytes) -> bytes:
    """Return something that may be referred to."""
    return bytes([part[0] | 0x80]) + part[1:]


def pairs(*parts: bytes) -> bytes:
    """Return a dictionary of keys and values in turn."""
    return b"{" + b"".join(parts) + END


KEY: Final = several(text("a.py"), whole(7), text("f"))
CALLS: Final = several(whole(1), whole(2), real(0.5), real(0.75))


def entry(
    primitive: bytes = whole(1),
    calls: bytes = whole(2),
    own: bytes = real(0.5),
    cumulative: bytes = real(0.75),
    callers: bytes = pairs(),
) -> bytes:
    """Return what stands behind a function."""
    return several(primitive, calls, own, cumulative, callers)
