"""Processes of this machine, found in /proc, and killed."""

import os
import signal
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def children(process: int) -> list[int]:
    """Return the children of a process's main thread; none if it is gone."""
    with suppress(OSError):
        return [*map(int, (PROC / f"{process}/task/{process}/children").read_text().split())]
    return []


def named(name: str) -> list[int]:
    """Return the processes of a name; its first 15 characters count."""
    found = []
    for path in PROC.glob("[0-9]*/comm"):
        with suppress(OSError):
            if path.read_text().strip() == name[:15]:
                found.append(int(path.parent.name))
    return found


def command(process: int) -> bytes:
    """Return the command line of a process, or its title; b"" if it is gone."""
    with suppress(OSError):
        return (PROC / f"{process}/cmdline").read_bytes()
    return b""


def folder(process: int) -> str:
    """Return the working folder of a process; "" if it is gone."""
    with suppress(OSError):
        return str((PROC / f"{process}/cwd").readlink())
    return ""


def kill(process: int) -> bool:
    """Kill a process; return whether it was there."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        return True
    return False


def open_files(root: Path) -> list[Path]:
    """Return the files below a folder that this process has open."""
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile by another thread
            paths.append(descriptor.readlink())
    return [path for path in paths if path.is_relative_to(root)]
