"""Trust: the image files of projects that the user trusts, by path and content."""

import hashlib
from pathlib import Path

import msgspec

from rule_runner.errors import ImageError
from rule_runner.images.config_files import read_bytes, replace, trust_file

Trusted = dict[str, str]  # the SHA-256 of each file's content, by path


def is_trusted(path: Path, data: bytes) -> bool:
    """Return whether the file `path` is trusted with this content."""
    return _recorded().get(str(path.resolve())) == _digest(data)


def record(path: Path, data: bytes) -> None:
    """Trust the file `path` while it has this content.

    Raises
    ------
    OutputError
        If that cannot be recorded.
    """
    trusted = _recorded() | {str(path.resolve()): _digest(data)}
    text = msgspec.json.format(msgspec.json.encode(trusted, order="sorted"), indent=2)
    replace(trust_file(), text.decode() + "\n")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _recorded() -> Trusted:
    """Return the trusted files; empty without any."""
    data = read_bytes(trust_file())
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=Trusted)
    except msgspec.DecodeError as err:
        msg = f"{str(trust_file())!r} is damaged: {err}. Remove it, and trust your files again."
        raise ImageError(msg) from err
