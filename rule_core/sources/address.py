"""TrialAddress: a path as a user gives it, with or without the format in front."""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.formats import MODULES, formats
from rule_core.storage.uri import is_s3

_KIND: Final = re.compile(r"\s*([A-Za-z][A-Za-z_-]+):(?!//)(.*)", re.DOTALL)
_SAGEMAKER_FOLDERS: Final = frozenset({"debug-output", "profiler-output"})
_ML: Final = Path("/opt/ml")
_ML_FOLDERS: Final = frozenset({"ml", "data", "input", "output", "outputs", "processing"})


class TrialAddress(NamedTuple):
    """A path or address, and the format that the user named; "" if none."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}" if self.kind else self.path

    @property
    def is_in_s3(self) -> bool:
        """Whether the trial is in S3.

        >>> address_of("csv:s3://bucket/log.csv").is_in_s3, address_of("csv:log.csv").is_in_s3
        (True, False)
        """
        return is_s3(self.path)

    @property
    def name(self) -> str:
        """The last part of the path, or the name of the training job for SageMaker's folders.

        SageMaker uses the same folder names for all jobs, below a folder with the name of the job.

        >>> address_of("/runs/mnist/").name, address_of("s3://bucket/mnist-42/debug-output/").name
        ('mnist', 'mnist-42')
        """
        folder = Path(self.path) if Path(self.path).name else Path(self.path).resolve()
        if folder.name in _SAGEMAKER_FOLDERS:
            job = (folder if folder.parent.name else folder.resolve()).parent
            mounted = job.is_relative_to(_ML) and job.name in _ML_FOLDERS
            folder = folder if mounted or not job.name else job
        return folder.name or "trial"

    @property
    def canonical(self) -> str:
        """The address in the spelling that all spellings of it share.

        >>> address_of(" S3://bucket/runs/mnist/").canonical
        's3://bucket/runs/mnist'
        """
        path = self.path.strip()
        if self.is_in_s3:
            from rule_core.storage.s3.bucket import parse_s3

            bucket, prefix = parse_s3(self.path)
            path = f"s3://{bucket}/{prefix}".removesuffix("/")
        elif not (self.kind and "://" in path):
            path = os.path.realpath(Path(path).expanduser())
        return str(self._replace(path=path))

    @property
    def folder(self) -> Path | None:
        """The local folder of the trial, or that of its file; None if it is elsewhere.

        >>> address_of("csv:/etc/passwd").folder, address_of("mlflow:http://localhost").folder
        (PosixPath('/etc'), None)
        """
        path = self.path.strip()
        if "://" in path and not path.lower().startswith("file://"):
            return None
        folder = Path(unquote(urlsplit(path).path) if "://" in path else path)
        return folder.parent if folder.is_file() else folder


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
            raise SMDebugValueError(
                f"No format is called {kind!r}, got {text!r}. {hint or _listed(kinds)}"
            )
    if not path.strip():
        raise SMDebugValueError(f"A path must follow {kind + ':'!r}, got {text!r}.")
    return TrialAddress(kind, path)


def address_of(text: str) -> TrialAddress:
    """Return the parts of ``PATH`` or ``KIND:PATH``; a text that is no address is a path.

    >>> address_of("csv:runs/log.txt"), address_of("cvs:runs/log.txt").kind
    (TrialAddress(kind='csv', path='runs/log.txt'), '')
    """
    try:
        return parse_address(text)
    except SMDebugValueError:
        return TrialAddress("", text)


def _listed(kinds: set[str]) -> str:
    return f"The formats are {', '.join(sorted(kinds))}. Put ./ in front of a path with a colon."
