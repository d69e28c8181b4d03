"""Reads files of text that users give, and says in one sentence what is wrong with one."""

import stat
from pathlib import Path

from rule_runner.errors import ClientError, restated, unreadable


def shown(path: Path | str) -> str:
    r"""Return a path or address for messages, quoted if a terminal would interpret it.

    >>> shown("runs/mnist"), shown("runs/a\x1b")
    ('runs/mnist', "'runs/a\\x1b'")
    """
    return str(path) if str(path).isprintable() else repr(str(path))


def read_regular_file(
    path: Path, subject: str, error: type[ClientError], limit: int | None = None
) -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    subject
        The file, at the beginning of messages.
    limit
        The largest size in bytes; None: there is none.

    Raises
    ------
    ClientError
        An `error` if the file does not exist, is not regular, is too large or cannot be read.
    """
    absent, absence = (FileNotFoundError, NotADirectoryError), f"{subject} does not exist."
    with (
        unreadable(subject, error, OSError, ValueError),  # such as a NUL byte in the path
        restated(error, *absent, sentence=absence),
    ):
        if not stat.S_ISREG(path.stat().st_mode):
            raise error(f"{subject} is not a regular file.")
        with path.open("rb") as stream:
            content = stream.read(-1 if limit is None else limit + 1)
    if limit is not None and len(content) > limit:
        raise error(f"{subject} is too large: the limit is {limit:,} bytes.")
    return content


def decoded(content: bytes, subject: str, error: type[ClientError]) -> str:
    """Return the text of a file, without a byte order mark.

    Raises
    ------
    ClientError
        An `error` if it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        byte = content[err.start]
        raise error(f"{subject} is not UTF-8 text: byte {byte:#04x} in line {line}.") from err
