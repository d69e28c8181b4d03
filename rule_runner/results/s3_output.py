"""S3OutputSync: an output folder in S3, written to a local folder that is uploaded."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError, SMDebugValueError
from rule_core.failures import OnError
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.s3.bucket import parse_s3
from rule_core.storage.uri import open_output
from rule_runner.errors import OutputError, UsageError, reason_of, translated
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.results.durable_files import (
    SCRATCH,
    FolderLock,
    make_folder,
    open_regular,
    output_errors,
    write_atomically,
)
from rule_runner.results.file_names import (
    ACKNOWLEDGEMENTS,
    EVALUATION_FILES,
    OLD_RESULT,
    RESULTS,
)
from rule_runner.results.json_text import dump_json
from rule_runner.results.output_folder import old_version
from rule_runner.user_folders import user_folder

if TYPE_CHECKING:
    from rule_core.storage.base import TrialOutput

_log: Final = get_logger(__name__)
PAUSE_S: Final = 2.0
SHARE: Final = 5  # pauses are this many times as long as the upload before them
LONGEST_PAUSE_S: Final = 60.0
_PIECE: Final = 1 << 20
_UPLOADED: Final = "uploaded.json"
_Mark = tuple[int, int, int]
_UNKNOWN: Final = (0, 0, 0)
_KEPT: Final = (
    " Results are kept there until they are uploaded; set XDG_STATE_HOME to use another directory."
)


class S3OutputSync:
    """An evaluation's output at an address in S3.

    Inside a ``with`` block a thread uploads the changes in `folder`. The end of the block uploads
    the rest and removes the folder. If an earlier process could not upload everything, its folder
    is used again. Otherwise an evaluation at the address is fetched first, so that it is resumed
    or rejected like a local one. Scratch files and links are not uploaded.

    Parameters
    ----------
    uri
        ``s3://bucket/prefix``; the bucket must exist.
    overwrite
        Whether to replace an evaluation at the address.

    Attributes
    ----------
    uri
        The address without a trailing slash.
    folder
        The local folder; an address always has the same.
    keep
        Whether `folder` is kept after the upload, until it is used again.
    problem
        After the block: why the upload is incomplete, and the path of the results; "" if it is
        complete.

    Raises
    ------
    UsageError
        If the address is invalid.
    OutputError
        On entering: if the address cannot be read, or another local process uses it.
    """

    def __init__(self, uri: str, *, overwrite: bool = False) -> None:
        with translated(UsageError, SMDebugValueError):
            bucket, prefix = parse_s3(uri)
            self._remote: TrialOutput = open_output(uri)
        self.uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self._home = user_folder("state") / "outputs" / _digest(self.uri)
        self.folder = self._home / "output"
        self.keep = False
        self.problem = ""
        self._overwrite = overwrite
        self._marks: dict[str, _Mark] = {}
        self._uploading = Lock()
        self._ending = Event()
        self._thread = Thread(target=self._follow, name="s3-output", daemon=True)
        self._stack = ExitStack()

    def to_address(self, text: str) -> str:
        """Return a text with addresses instead of paths in the folder."""
        return text.replace(str(self.folder), self.uri)

    def __enter__(self) -> Self:
        """Lock the folder, fetch the evaluation at the address, and start to upload."""
        with ExitStack() as stack:
            self._lock(stack)
            self._marks = self._recall()
            if not any(self._changed()) or self._is_superseded():
                # The address is at least as new as this folder.
                shutil.rmtree(self.folder, ignore_errors=True)
                self._marks = {}
                if not self._overwrite:
                    self._fetch()
            else:  # another machine may have written to the address since
                self._remember(dict.fromkeys(self._marks, _UNKNOWN))
            self._fetch_acknowledgements()
            self._stack = stack.pop_all()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Upload the remaining changes, and remove the folder if that succeeds."""
        self._ending.set()
        self._thread.join()
        with self._stack:
            try:
                self._upload()
                self._remove_replaced_files()
                if not self.keep:
                    shutil.rmtree(self.folder, ignore_errors=True)
            except OSError as err:
                self.problem = printable(
                    f"{err} The results are in {str(self.folder)!r}: start the same command again "
                    "to have them uploaded."
                )
        if isinstance(error, OutputError):
            if self.problem:
                _log.error("output_not_uploaded", reason=self.problem)
            # Only sentences about the whole folder also hold for the address.
            subject = "Output folder '{}".format
            raise OutputError(
                str(error).replace(subject(self.folder), subject(self.uri))
            ) from error

    def _lock(self, stack: ExitStack) -> None:
        with translated(OutputError, OutputError, after=_KEPT):
            with output_errors(self._home):
                self._home.parents[1].mkdir(mode=0o700, parents=True, exist_ok=True)
            make_folder(self._home)
        names = str(self._home), self.uri
        with translated(OutputError, OutputError, words=lambda err: str(err).replace(*names)):
            stack.enter_context(FolderLock(self._home))

    def _fetch(self) -> None:
        """Fetch the evaluation at the address; the folder appears completely or not at all."""
        draft = self._home / "fetching"
        shutil.rmtree(draft, ignore_errors=True)
        for name in EVALUATION_FILES:
            data = self._read(name)
            if data is not None:
                with output_errors(draft):
                    draft.mkdir(parents=True, exist_ok=True)
                    (draft / name).write_bytes(data)
            elif name == RESULTS:  # without it there is no evaluation
                if self._old_keys():
                    raise OutputError(old_version(self.uri))
                return
        if draft.exists():
            with output_errors(self.folder):
                draft.rename(self.folder)
            self._remember({key: _mark(path) for key, path in self._files()})

    def _fetch_acknowledgements(self) -> None:
        """Fetch the acknowledgements at the address, which only others write."""
        data = self._read(ACKNOWLEDGEMENTS)
        if data is not None:
            with output_errors(self.folder):
                self.folder.mkdir(exist_ok=True)
                (self.folder / ACKNOWLEDGEMENTS).write_bytes(data)

    def _is_superseded(self) -> bool:
        """Return whether another machine has continued this evaluation at the address.

        An evaluation whose run id is not at the address has sent no event. An ended one is
        complete.
        """
        if self._overwrite:
            return False
        remote = _identity(self._read(RESULTS))
        try:
            local = _identity((self.folder / RESULTS).read_bytes())
        except OSError:
            local = None
        if remote is None or local is None:
            return remote is not None
        return remote.run_id != local.run_id or bool(remote.ended_at and not local.ended_at)

    def _read(self, key: str) -> memoryview | None:
        problem, cause = f"Output folder {self.uri!r} cannot be used: ", StorageUnavailableError
        with (
            translated(OutputError, cause, before=problem, after=".", words=reason_of),
            suppress(ObjectNotFoundError),
        ):
            return self._remote.read(key)
        return None

    def _follow(self) -> None:
        """Upload changes until the end, with pauses."""
        clock = SystemClock()
        pause = PAUSE_S
        while not self._ending.wait(pause):
            began = clock.monotonic()
            self.record()
            pause = min(max(PAUSE_S, SHARE * (clock.monotonic() - began)), LONGEST_PAUSE_S)

    def record(self) -> None:
        """Upload changed files now; after a failure, which is logged, the thread retries.

        A restart on another machine then continues the same evaluation, under the same run id.
        """
        try:
            self._upload()
        except OSError as err:
            _log.warning("output_not_uploaded", reason=printable(err))

    def _upload(self) -> None:
        """Upload each file that is new or has changed.

        Raises
        ------
        OSError
            If one cannot be uploaded; the files after it are not uploaded either.
        """
        with self._uploading:
            for key, path, mark in sorted(self._changed(), key=lambda item: self._turn(item[0])):
                if key == RESULTS and not self._ending.is_set() and self._has_ended(path):
                    continue  # once they are at the address, all other files are
                try:
                    fd = open_regular(path, os.O_RDONLY)
                except FileNotFoundError:  # removed meanwhile
                    continue
                self._send(key, fd)
                self._remember({key: mark})

    def _changed(self) -> Iterator[tuple[str, Path, _Mark]]:
        """Yield the files whose current version is not at the address."""
        for key, path in self._files():
            with suppress(FileNotFoundError):  # removed meanwhile
                mark = _mark(path)
                if self._marks.get(key) != mark:
                    yield key, path, mark

    def _remember(self, marks: dict[str, _Mark]) -> None:
        """Record what is at the address, also for later processes."""
        self._marks |= marks
        with suppress(OutputError):  # then it is uploaded once more
            write_atomically(self._home / _UPLOADED, dump_json(self._marks) + "\n")

    def _recall(self) -> dict[str, _Mark]:
        """Return what an earlier process recorded."""
        try:
            return msgspec.json.decode((self._home / _UPLOADED).read_bytes(), type=dict[str, _Mark])
        except (OSError, msgspec.DecodeError):
            return {}

    def _turn(self, key: str) -> int:
        """Return a sort key: a first result is uploaded before other files, a later one after."""
        is_later = key in self._marks or self._ending.is_set()
        return 2 * is_later if key == RESULTS else 1

    @staticmethod
    def _has_ended(path: Path) -> bool:
        identity = _identity(path.read_bytes())
        return identity is not None and identity.ended_at is not None

    def _send(self, key: str, fd: int) -> None:
        draft = self._remote.open(key)
        with OnError(draft.discard):
            with os.fdopen(fd, "rb") as file:
                while piece := file.read(_PIECE):
                    draft.write(piece)
            draft.publish()

    def _remove_replaced_files(self) -> None:
        """Remove result files at the address that the new evaluation does not have."""
        if not (self._overwrite and (self.folder / RESULTS).exists()):  # it has not started
            return
        old = self._old_keys()
        parts = {key.removesuffix(OLD_RESULT) for key in old} | {""}
        for name in (*(part + name for part in parts for name in EVALUATION_FILES), *old):
            if not (self.folder / name).exists():
                self._remote.remove(name)

    def _old_keys(self) -> list[str]:
        """Return the results of version 0.1.0 at the address; none if it cannot be listed."""
        with suppress(SMDebugError):
            keys = self._remote.list_keys("")
            return [
                key for key in keys if key.rpartition("/")[2] == OLD_RESULT and key.count("/") <= 1
            ]
        return []

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield the keys and paths of the files to upload, in order."""
        for where, folders, names in os.walk(self.folder):
            folders[:] = sorted(folder for folder in folders if folder != SCRATCH)
            for name in sorted(names):
                path = Path(where) / name
                if path.is_file() and not path.is_symlink() and name != ACKNOWLEDGEMENTS:
                    yield path.relative_to(self.folder).as_posix(), path


class _Identity(msgspec.Struct):
    run_id: str = ""
    ended_at: str | None = None


def _identity(result: bytes | memoryview | None) -> _Identity | None:
    """Return the evaluation that a result belongs to; None if it cannot be read."""
    with suppress(msgspec.DecodeError):
        return None if result is None else msgspec.json.decode(result, type=_Identity)
    return None


def _mark(path: Path) -> _Mark:
    """Return attributes that change when a file is written or replaced."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _digest(uri: str) -> str:
    """Return a name that is unique to an address and the service behind it."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return hashlib.sha256(f"{endpoint}\n{uri}".encode()).hexdigest()[:32]
