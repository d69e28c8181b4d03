"""TrialAddress: a path as a user gives it, with or without the format in front."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.formats import MODULES, formats
from rule_core.storage.uri import is_s3

_KIND: Final = re.compile(r"\s*([A-Za-z][A-Za-z_-]+):(?!//)(.*)", re.DOTALL)


class TrialAddress(NamedTuple):
    """A path or address, and the format that the user named; "" if none."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}" if self.kind else self.path


def parse_address(text: str) -> TrialAddress:
    """Return the parts of ``PATH`` or ``KIND:PATH``.

    A drive letter and the scheme of an address are no formats, and neither is the beginning of a
    path that exists.

    >>> parse_address("csv:runs/log.txt"), parse_address("s3://bucket/runs")
    (TrialAddress(kind='csv', path='runs/log.txt'), TrialAddress(kind='', path='s3://bucket/runs'))
    >>> parse_address("C:/runs").kind, parse_address("mlflow:http://host:5000").path
    ('', 'http://host:5000')

    Raises
    ------
    SMDebugValueError
        If there is no such format; the message suggests the nearest.
    """
    match = _KIND.fullmatch(text)
    if match is None:
        return TrialAddress("", text)
    kind, path = match[1].lower(), match[2]
    if kind not in MODULES:
        kinds = {*MODULES, *formats().by_kind, *formats().problems}
        if kind not in kinds:
            if Path(text.strip()).exists():
                return TrialAddress("", text)
            close = get_close_matches(kind, sorted(kinds), n=1)
            hint = f"Did you mean {close[0]!r}?" if close else ""
            msg = f"No format is called {kind!r}, got {text!r}. {hint or _listed(kinds)}"
            raise SMDebugValueError(msg)
    if not path.strip():
        msg = f"A path must follow {kind + ':'!r}, got {text!r}."
        raise SMDebugValueError(msg)
    return TrialAddress(kind, path)


def split_kind(text: str) -> tuple[str, str]:
    """Return the format with its colon, and the path of ``KIND:PATH``; never raises.

    >>> split_kind("csv:runs/log.txt"), split_kind("runs/log.txt")
    (('csv:', 'runs/log.txt'), ('', 'runs/log.txt'))
    """
    try:
        kind, path = parse_address(text)
    except SMDebugValueError:
        return "", text
    return (f"{kind}:" if kind else ""), path


def is_in_s3(text: str) -> bool:
    """Return whether the path of a trial is in S3.

    >>> is_in_s3("csv:s3://bucket/log.csv"), is_in_s3("s3://bucket"), is_in_s3("csv:log.csv")
    (True, True, False)
    """
    return is_s3(split_kind(text)[1])


def folder_of(text: str) -> Path | None:
    """Return the local folder of a trial, or that of its file; None if it is elsewhere.

    >>> folder_of("csv:/etc/passwd"), folder_of("/etc"), folder_of("mlflow:http://localhost")
    (PosixPath('/etc'), PosixPath('/etc'), None)
    """
    path = split_kind(text)[1].strip()
    if "://" in path and not path.lower().startswith("file://"):
        return None
    folder = Path(unquote(urlsplit(path).path) if "://" in path else path)
    return folder.parent if folder.is_file() else folder


def _listed(kinds: set[str]) -> str:
    return f"The formats are {', '.join(sorted(kinds))}. Put ./ in front of a path with a colon."
