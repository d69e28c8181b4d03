"""FolderNotifications: waits until files arrive in folders, by inotify of Linux.

The kernel wakes the waiting thread, so that an idle wait costs nothing and a file is noticed within
a fraction of a millisecond (docs/decisions/0073-notifications.md).
"""

import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rule_core.clock import Clock

# See inotify(7).
_MODIFY: Final = 0x2
_CLOSE_WRITE: Final = 0x8
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_IGNORED: Final = 0x8000
_ONLY_FOLDERS: Final = 0x01000000
_NO_LINKS: Final = 0x02000000
_IS_FOLDER: Final = 0x40000000
_EVENT: Final = struct.Struct("=iIII")  # watch, mask, cookie, length of the name
_BUFFER: Final = 1 << 16  # bytes
_DRAFT: Final = b".tmp"  # the suffix of files that are being written


class FolderNotifications:
    """Notifications of new and changed files in folders.

    Files with the suffix ``.tmp`` are ignored until they are renamed. Where the operating system
    has no inotify, or none is free, no folder can be watched and `wait` only waits.

    Parameters
    ----------
    clock
        Measures waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._folders: dict[int, tuple[Path, bool]] = {}  # path and whether recursive, by watch
        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self._fd = -1
        if hasattr(self._libc, "inotify_init1"):
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)

    @property
    def folders(self) -> set[Path]:
        """The watched folders."""
        return {path for path, _ in self._folders.values()}

    def watch(self, folder: Path, *, recursive: bool = False) -> None:
        """Watch a folder; with `recursive`, also the folders in it and those that will be.

        Links in the folder are not followed.

        Raises
        ------
        OSError
            If it cannot be watched.
        """
        self._watch(folder, recursive, 0)

    def _watch(self, folder: Path, recursive: bool, flags: int) -> None:
        watch = -1
        if self._fd >= 0:
            mask = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE | _ONLY_FOLDERS | flags
            watch = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), mask)
        if watch < 0:
            number = ctypes.get_errno() if self._fd >= 0 else errno.ENOSYS
            raise OSError(number, os.strerror(number), str(folder))
        self._folders[watch] = folder, recursive
        if recursive:
            with os.scandir(folder) as entries:
                inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            for path in inner:
                self._watch_inner(Path(path))

    def _watch_inner(self, folder: Path) -> None:
        with suppress(OSError):  # the folder is gone, or no watch is free: polling continues
            self._watch(folder, recursive=True, flags=_NO_LINKS)

    def wait(self, seconds: float) -> bool:
        """Return whether files have arrived or changed: at once if so, or after `seconds`."""
        end = self._clock.monotonic() + seconds
        while self._poll.poll(max(0.0, end - self._clock.monotonic()) * 1e3):
            changes = [self._is_change(*event) for event in self._events()]
            if any(changes):
                return True
        return False

    def _events(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield watch, mask and file name of the events that have arrived."""
        with suppress(BlockingIOError):
            while True:
                data = os.read(self._fd, _BUFFER)
                start = 0
                while start < len(data):
                    watch, mask, _, length = _EVENT.unpack_from(data, start)
                    start += _EVENT.size + length
                    yield watch, mask, data[start - length : start].rstrip(b"\0")

    def _is_change(self, watch: int, mask: int, name: bytes) -> bool:
        """Return whether an event may be of a complete file; watch new folders."""
        if mask & _IGNORED:  # the folder is gone
            self._folders.pop(watch, None)
            return True
        folder, recursive = self._folders.get(watch, (Path(), False))
        if recursive and mask & _IS_FOLDER:
            self._watch_inner(folder / os.fsdecode(name))
        return not name.endswith(_DRAFT)

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            self._poll.unregister(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._folders.clear()
