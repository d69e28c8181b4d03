"""What containers mount of this machine: it is there, and what they write is theirs to write."""

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from rule_runner.config import STOP_FILE
from rule_runner.containers.options import Mount, Translated
from rule_runner.durable import output_errors
from rule_runner.errors import ClientError

ORDINARY: Final = 1000  # user and group of the image


def present(translated: Translated, output: str) -> Iterator[Mount]:
    """Yield the mounts; for a trial that is waited for, the folder that it will be in.

    Raises
    ------
    ClientError
        If a folder other than that of the output is not there.
    """
    waits = any(one.startswith("--wait-for-trial=") for one in translated.arguments)
    mounts = {mount.folder: mount for mount in translated.mounts}
    stop_folder = Path(os.environ.get(STOP_FILE, "")).parent
    if stop_folder.is_absolute() and stop_folder.is_dir():
        mounts.setdefault(stop_folder, Mount(stop_folder))
    for folder, mount in mounts.items():
        beside = folder.parent.is_dir()
        if folder.exists() or str(folder) == output or (mount.writable and beside):
            yield mount
        elif waits and beside:
            yield replace(mount, folder=folder.parent)
        else:
            msg = f"Folder {str(folder)!r} is not there. Check the path of the trial or rule."
            raise ClientError(msg)


def make_writable(written: Collection[Path], output: Path) -> tuple[int, int]:
    """Make what is written to, and return the user and group that may write to it.

    They are the caller's. If that is root, they are those of the output folder, but never root:
    what is root's is given to the ordinary user of the image.

    Raises
    ------
    OutputError
        If something cannot be made.
    """
    for path in written:
        with output_errors(path):
            if path == output:
                path.mkdir(parents=True, exist_ok=True)
            else:  # the file of a sink
                path.touch()
    if os.getuid():
        return os.getuid(), os.getgid()
    user = ORDINARY, ORDINARY
    if output in written and _owner(output)[0]:
        user = _owner(output)
    for path in written:
        if not _owner(path)[0]:
            os.chown(path, *user)
    return user


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


def aws_folder() -> str:
    """Return the folder of AWS's configuration.

    Raises
    ------
    ClientError
        If it is not there.
    """
    folder = Path.home() / ".aws"
    if not folder.is_dir():
        msg = (
            f"--aws-config needs the folder {str(folder)!r}. Run 'aws configure', or leave it out."
        )
        raise ClientError(msg)
    return str(folder)
