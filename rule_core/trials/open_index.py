"""open_index: the index of the trial at a path, whatever its format."""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.format.marks import TENSORS, has_marks
from rule_core.reading.native_index import NativeIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.address import TrialAddress, parse_address
from rule_core.sources.format import Recognized
from rule_core.sources.formats import format_named
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.sources.recognize import (
    Recognition,
    SourceRun,
    folder_of,
    recognize,
    source_folder,
)
from rule_core.sources.unread import unread_files
from rule_core.storage.address_store import AddressStore
from rule_core.storage.base import (
    FileStatus,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore
from rule_core.storage.uri import is_s3, open_store
from rule_core.storage.wait_budget import WaitEndedError

YOUNG_S: Final = 60.0  # since the last write of a file whose first row may still be written
YOUNG_BYTES: Final = 4096
_RUN_ID: Final = re.compile("[0-9a-f]{32}")
SAID_SO: Final = "you said so"
LOOKED_FOR: Final = (
    "The formats are TensorBoard event files, trainer_state.json, tables, JSON, YAML, NumPy and "
    "Parquet histories, notebooks, text logs, runs of MLflow and W&B, and safetensors. If it is "
    "one of them, say so, as in text-log:PATH."
)


class TrialPlace(NamedTuple):
    """Where the files of a trial are.

    Attributes
    ----------
    store
        A folder or prefix.
    file
        The only file in it to look at; "" if the trial is the whole folder.
    """

    store: TrialStore
    file: str


def open_index(
    address: TrialAddress | str,
    open_at: Callable[[str], TrialStore] = open_store,
    *,
    options: SourceOptions = DEFAULT,
    range_steps: tuple[int | None, int | None] | None = None,
    window: int = 1000,
) -> TrialIndex:
    """Return the index of the trial at an address, without reading its numbers.

    Saved tensors come first, then files in other formats. Of a folder that holds neither, the
    index has no files, and is `unrecognized`, as it is if the store does not answer.

    Parameters
    ----------
    open_at
        Opens a folder or prefix.

    Raises
    ------
    SMDebugValueError
        If the address is not valid, or names a file that cannot be read.
    """
    address = parse_address(address) if isinstance(address, str) else address
    named = _named(address)
    if named is not None:
        from rule_core.sources.open import open_sources

        store, item = named
        source_format = format_named(address.kind)
        return open_sources(store, [(source_format, item)], options, range_steps, window)
    store = open_at(address.path)
    with suppress(StorageUnavailableError, WaitEndedError):  # whoever reads the index says it
        location = find_place(address.path, store, open_at)
        if not address.kind and not location.file and _is_native(location.store):
            return NativeIndex(location.store, range_steps, window)
        index = _open_place(location, address, options, range_steps, window)
        if index is not None:
            return index
    native = NativeIndex(store, range_steps, window)
    native.unrecognized = True
    return native


def _named(address: TrialAddress) -> tuple[TrialStore, Recognized] | None:
    """Return the store and key of what only its format understands; None for files and folders.

    That is an address, a part of a file, as in ``mlflow:mlflow.db#RUN``, or a run of MLflow that
    has an ID.
    """
    kind, path = address
    if not kind or is_s3(path) or path.strip().lower().startswith("file://"):
        return None
    if "://" in path or (_RUN_ID.fullmatch(path) and not Path(path).exists()):
        return AddressStore(path), Recognized(kind, path, SAID_SO)
    file, part, _ = path.rpartition("#")
    if part and not Path(path).exists() and Path(file).is_file():
        root, _, name = os.path.abspath(path).rpartition("/")  # noqa: PTH100 - links stay
        return LocalStore(root or "/"), Recognized(kind, name, SAID_SO)
    return None


def _open_place(
    location: TrialPlace,
    address: TrialAddress,
    options: SourceOptions,
    range_steps: tuple[int | None, int | None] | None,
    window: int,
) -> TrialIndex | None:
    """Return the index over files of other formats; None if there is no run, or several."""
    from rule_core.sources.open import open_sources

    find = partial(find_runs, location, address.kind, options)
    recognition = find()
    runs = recognition.runs
    if location.file and not runs and address.kind:
        item = Recognized(address.kind, location.file, SAID_SO)
        runs = [SourceRun(location.file, [(format_named(address.kind), item)])]
    if location.file and not runs:
        _check_young(location, address, recognition)
    elif len(runs) != 1:
        return None
    sources = runs[0].sources if runs else ()
    index = open_sources(
        location.store, sources, options, range_steps, window, find_runs=lambda: find().runs
    )
    index.set_aside = [
        f"{item.key or 'The folder'!r} is not read: {sources[0][1].kind} describes the same run. "
        f"To read it, give {item.kind}:PATH."
        for item in (runs[0].set_aside if runs else ())
    ]
    for problem in recognition.problems:
        index.file_problems.report("", problem)
    return index


def find_runs(
    location: TrialPlace, kind: str = "", options: SourceOptions = DEFAULT
) -> Recognition:
    """Return the runs at a place in formats of others.

    Raises
    ------
    SMDebugValueError
        If the format that the user named cannot be used.
    """
    folder = source_folder(location.store, "", location.file or None)._replace(options=options)
    return recognize(folder, {kind: format_named(kind)} if kind else None)


def find_place(path: str, store: TrialStore, open_at: Callable[[str], TrialStore]) -> TrialPlace:
    """Return the folder and file that a path means; see `TrialPlace`.

    A path that does not exist means a folder.

    Parameters
    ----------
    store
        The store that `open_at` returns for the path.

    Raises
    ------
    StorageUnavailableError
        If the store does not answer.
    """
    if isinstance(store, LocalStore):
        if not store.root.is_file():
            return TrialPlace(store, "")
        real = Path(os.path.realpath(store.root))
        return TrialPlace(open_at(str(real.parent)), real.name)
    parent, _, name = path.strip().rstrip("/").rpartition("/")
    if path.strip().endswith("/") or next(store.list_keys(""), None) or not is_s3(parent + "/x"):
        return TrialPlace(store, "")
    with suppress(ObjectNotFoundError, SMDebugValueError):
        above = open_at(parent)
        above.status(name)
        return TrialPlace(above, name)
    return TrialPlace(store, "")


def _is_native(store: TrialStore) -> bool:
    """Return whether a folder holds saved tensors."""
    folder = source_folder(store, "")
    return has_marks(folder.names, TENSORS, folder.list_folder)


def _check_young(location: TrialPlace, address: TrialAddress, recognition: Recognition) -> None:
    """Reject a file that no format reads, unless its first rows may still be written.

    Raises
    ------
    SMDebugValueError
        Says why it is not read, and what was looked for.
    """
    status = FileStatus(0, 0.0)
    with suppress(ObjectNotFoundError):
        status = location.store.status(location.file)
    if status.size < YOUNG_BYTES and time.time() - status.modified < YOUNG_S:
        return
    refused = [item for item in recognition.refused if item.key == location.file]
    file = folder_of(location.store, "", (location.file,), lambda _: ())
    reason = unread_files(file, refused, every=True)[location.file]
    state = f"is in no format that is read as a trial: {reason}" if status.size else "is empty"
    raise SMDebugValueError(f"File {str(address)!r} {state}. {LOOKED_FOR}")
