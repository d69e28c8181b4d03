"""Checks of mounted folders: they exist, and containers may write to outputs."""

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from rule_runner.config.defaults import STOP_FILE
from rule_runner.containers.entry_point import ORDINARY
from rule_runner.containers.options import ContainerRequest, Mount
from rule_runner.errors import ClientError
from rule_runner.results.durable_files import output_errors


def present(translated: ContainerRequest, output: str) -> Iterator[Mount]:
    """Yield the mounts; for a trial that does not exist yet, its parent folder.

    Raises
    ------
    ClientError
        If a folder other than the output folder does not exist.
    """
    waits = translated.request.wait_for_trial > 0
    mounts = {mount.folder: mount for mount in translated.mounts}
    stop_folder = Path(os.environ.get(STOP_FILE, "")).parent
    if stop_folder.is_absolute() and stop_folder.is_dir():
        mounts.setdefault(stop_folder, Mount(stop_folder))
    for folder, mount in mounts.items():
        has_parent = folder.parent.is_dir()
        if folder.exists() or str(folder) == output or (mount.writable and has_parent):
            yield mount
        elif waits and has_parent:
            yield replace(mount, folder=folder.parent)
        else:
            raise ClientError(
                f"Folder {str(folder)!r} does not exist. Check the path of the trial or rule."
            )


def make_writable(written: Collection[Path], output: Path) -> tuple[int, int]:
    """Create missing outputs, and return the user and group that may write to them.

    These are the caller's. For root they are those of the output folder, but never root: outputs
    owned by root are given to the ordinary user of the image.

    Raises
    ------
    OutputError
        If an output cannot be created.
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
    status = path.stat()
    return status.st_uid, status.st_gid


def aws_folder() -> str:
    """Return the folder with the AWS configuration.

    Raises
    ------
    ClientError
        If it does not exist.
    """
    folder = Path.home() / ".aws"
    if not folder.is_dir():
        raise ClientError(
            f"--aws-config needs the folder {str(folder)!r}. Run 'aws configure', or omit the "
            "option."
        )
    return str(folder)
