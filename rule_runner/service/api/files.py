"""Files: those of a trial's output folder that people may see."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rule_core.storage.uri import is_s3
from rule_runner.results.durable_files import open_regular
from rule_runner.results.file_names import (
    ACKNOWLEDGEMENTS,
    EVENTS,
    FINDINGS,
    MEASUREMENTS,
    OLD_RESULT,
    REPORT,
    RESULTS,
)
from rule_runner.service.api.queries import trial_of
from rule_runner.service.responses import service_of

_DATA: Final = frozenset({RESULTS, OLD_RESULT, FINDINGS, MEASUREMENTS, EVENTS, ACKNOWLEDGEMENTS})
# Of data, and of the pages and plots that rules make. Others, such as requests, may hold secrets.
_TYPES: Final = {
    ".json": "application/json",
    ".jsonl": "text/plain; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
# A rule may write any page: it has no scripts, forms or origin, and loads nothing.
_POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MOST_FILES: Final = 500
_MOST_FOLDERS: Final = 1000
_DEEPEST: Final = 3  # folders below the output
_CHUNK: Final = 1 << 18


class OutputFile(NamedTuple):
    """A file of an output folder: its name there, and its size in bytes."""

    name: str
    size: int


def output_files(output: str) -> list[OutputFile]:
    """Return the files of a local output folder that people may see, the report first.

    They are at most `_MOST_FILES`, and none if the folder is gone or in S3.
    """
    names = () if is_s3(output) else islice(filter(_is_shown, _names(output)), _MOST_FILES)
    files: list[OutputFile] = []
    for name in names:
        with suppress(OSError):  # it vanished
            status = os.lstat(Path(output, name))
            if stat.S_ISREG(status.st_mode):
                files.append(OutputFile(name, status.st_size))
    return sorted(files, key=lambda file: (file.name != REPORT, file.name))


def _names(output: str) -> Iterator[str]:
    """Yield the names of the files below a folder, without hidden folders."""
    for folder, inner, names in islice(os.walk(output), _MOST_FOLDERS):
        parent = PurePosixPath(folder).relative_to(output)
        is_deepest = len(parent.parts) >= _DEEPEST
        inner[:] = [] if is_deepest else sorted(name for name in inner if name[0] != ".")
        for name in sorted(names):
            yield str(parent / name)


def _is_shown(name: str) -> bool:
    path = PurePosixPath(name)
    if path.suffix in {".json", ".jsonl"}:
        return path.name in _DATA and name.isprintable()
    return path.suffix in _TYPES and name.isprintable()


def trial_file(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/files/{name}``."""
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
    name = request.path_params["name"]
    if not any(file.name == name for file in output_files(trial.output)):
        raise HTTPException(404, "The trial has no such file.")
    try:
        stream = _open_below(Path(trial.output), PurePosixPath(name))
    except OSError as err:
        raise HTTPException(404, f"File {name!r:.200} cannot be read: {err.strerror}.") from err
    size = os.fstat(stream.fileno()).st_size
    path = PurePosixPath(name)
    headers = {
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(path.name, safe='')}",
        "Content-Length": str(size),
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(_chunks(stream, size), 200, headers, _TYPES[path.suffix])


def _open_below(folder: Path, name: PurePosixPath) -> BinaryIO:
    """Open a regular file below a folder, without following a link in any part of its name.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(folder, flags)
    try:
        for folder_name in name.parts[:-1]:
            inner = os.open(folder_name, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return os.fdopen(open_regular(Path(name.name), os.O_RDONLY, descriptor), "rb")
    finally:
        os.close(descriptor)


def _chunks(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the first bytes of a file, which may grow meanwhile."""
    with stream:
        while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
            size -= len(chunk)
            yield chunk
