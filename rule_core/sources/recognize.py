"""recognize: the training runs in a folder whose files are in formats of others."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from rule_core.failures import attempt
from rule_core.sources.format import HEAD_BYTES, Recognized, Refused, SourceFolder, SourceFormat
from rule_core.sources.formats import CHECKPOINTS, MODULES, formats, reason_of
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
    list_folder,
)

ENTRIES: Final = 10_000  # looked at in one folder
TRAINER: Final = "trainer-state"
# Folders in which a trainer keeps the logs of the checkpoints beside them.
_LOG_FOLDERS: Final = ("runs/", "logs/", "log/", "tensorboard/", "tb/", "tb_logs/")
_WORD: Final = re.compile(r"[A-Za-z]+|\d+")
# Words in which the files of one run differ.
_MODES: Final = frozenset(
    ("train", "training", "trn", "eval", "evaluation", "val", "valid", "validation", "test", "dev")
)
Read = tuple[SourceFormat, Recognized]


class SourceRun(NamedTuple):
    """The files of one training run.

    Attributes
    ----------
    key
        What to call it: the folder that was looked at, or one of its files if it holds several
        runs.
    sources
        What is read, with the format of each.
    set_aside
        What describes the same run in another format and is not read.
    """

    key: str
    sources: Sequence[Read]
    set_aside: Sequence[Recognized] = ()


class Recognition(NamedTuple):
    """What a folder holds.

    Attributes
    ----------
    runs
        The training runs, ordered by key.
    owned
        The names of folders that belong to them, in which no other run is looked for.
    problems
        Sentences on formats of other packages that failed.
    """

    runs: Sequence[SourceRun]
    owned: frozenset[str] = frozenset()
    problems: Sequence[str] = ()


def source_folder(store: TrialStore, key: str, only: str | None = None) -> SourceFolder:
    """Return a folder of a store, in which formats can look.

    Parameters
    ----------
    only
        The name of the only file to look at; None: all.
    """

    def names(folder: str) -> Sequence[str]:
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return sorted(islice(list_folder(store, key + folder), ENTRIES))
        return ()

    listed = names("") if only is None else (only,)
    return folder_of(store, key, listed, names if only is None else lambda _: ())


def folder_of(
    store: TrialStore, key: str, names: Sequence[str], list_below: Callable[[str], Sequence[str]]
) -> SourceFolder:
    """Return a folder whose names are known; heads are read once for all formats."""

    @cache
    def head(name: str) -> bytes:
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return bytes(store.read(key + name, ByteRange(0, HEAD_BYTES)))
        return b""

    def tail(name: str) -> bytes:
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            size = store.status(key + name).size
            return bytes(store.read(key + name, ByteRange(max(0, size - HEAD_BYTES), size)))
        return b""

    return SourceFolder(key, names, cache(list_below), head, tail)


def recognize(
    folder: SourceFolder, by_kind: Mapping[str, SourceFormat] | None = None
) -> Recognition:
    """Return the runs in a folder.

    Several formats of numbers may describe one run: the first one in `formats` is read, the others
    are set aside, so that no value counts twice. Checkpoints belong to the run beside them. Files
    of one format are separate runs, unless their names differ only in a mode, such as `train.csv`
    and `val.csv`.

    Parameters
    ----------
    by_kind
        The formats to look for; by default all.
    """
    problems: list[str] = []
    if by_kind is None:
        available = formats()
        by_kind = available.by_kind
        problems += available.problems.values()
    recognized: dict[str, list[Recognized]] = {}
    for kind, source_format in by_kind.items():
        asked = _ask(source_format, folder, problems.append)
        items = [item for item in asked if isinstance(item, Recognized)]
        if items:
            recognized[kind] = items
    owned = {below for items in recognized.values() for below in _folders_of(items, folder.key)}
    if CHECKPOINTS in recognized or TRAINER in recognized:
        owned |= {name for name in folder.names if _is_checkpoint(name)}
        _add_logs_below(recognized, owned, folder, by_kind)
    return Recognition(_runs(recognized, folder.key, by_kind), frozenset(owned), problems)


def _is_checkpoint(name: str) -> bool:
    from rule_core.sources.safetensors import step_in

    return name.endswith("/") and step_in(name[:-1], is_folder=True) is not None


def _ask(
    source_format: SourceFormat, folder: SourceFolder, report: Callable[[str], None]
) -> list[Recognized | Refused]:
    """Return what a format recognises and refuses; nothing, after a report, if it fails."""
    if source_format.kind in MODULES:
        return list(source_format.recognize(folder))

    def failed(err: Exception) -> list[Recognized | Refused]:
        report(
            f"Format {source_format.kind!r} failed on folder {folder.key or '.'!r}: "
            f"{reason_of(err)}."
        )
        return []

    return attempt(lambda: list(source_format.recognize(folder)), failed)


def _folders_of(items: Iterable[Recognized], folder: str) -> Iterator[str]:
    """Yield the names of the folders below `folder` that hold recognised files."""
    for item in items:
        name, slash, _ = item.key.removeprefix(folder).partition("/")
        if slash:
            yield name + slash


def _add_logs_below(
    recognized: dict[str, list[Recognized]],
    owned: set[str],
    folder: SourceFolder,
    by_kind: Mapping[str, SourceFormat],
) -> None:
    """Add the TensorBoard logs of a trainer, unless there are those of several starts.

    A trainer that is resumed logs to a new folder, while its state contains the whole history.
    """
    tensorboard = by_kind.get("tensorboard")
    if "tensorboard" in recognized or tensorboard is None:
        return
    logs: list[list[Recognized]] = []
    folders = [name for name in _LOG_FOLDERS if name in folder.names]
    for name in folders:
        below = [name, *(name + inner for inner in folder.list_folder(name) if inner[-1:] == "/")]
        each = (tensorboard.recognize(_inner(folder, inner)) for inner in below[:ENTRIES])
        read = ([item for item in items if isinstance(item, Recognized)] for items in each)
        logs += filter(None, read)
    if len(logs) == 1:
        recognized["tensorboard"] = logs[0]
        owned |= {*_folders_of(logs[0], folder.key)}
    elif TRAINER in recognized:
        owned |= {*folders}


def _inner(folder: SourceFolder, name: str) -> SourceFolder:
    """Return a folder below another one."""
    return SourceFolder(
        folder.key + name,
        folder.list_folder(name),
        lambda inner: folder.list_folder(name + inner),
        lambda inner: folder.head(name + inner),
        lambda inner: folder.tail(name + inner),
    )


def _runs(
    recognized: Mapping[str, Sequence[Recognized]], folder: str, by_kind: Mapping[str, SourceFormat]
) -> list[SourceRun]:
    """Divide what was recognised in a folder into runs."""
    checkpoints = [(by_kind[CHECKPOINTS], item) for item in recognized.get(CHECKPOINTS, ())]
    kinds = [kind for kind in by_kind if kind in recognized and kind != CHECKPOINTS]
    if not kinds:
        return [SourceRun(folder, checkpoints)] if checkpoints else []
    first, *others = kinds
    aside = [item for kind in others for item in recognized[kind]]
    groups: dict[object, list[Read]] = {}
    for item in recognized[first]:
        groups.setdefault(_group(item, folder), []).append((by_kind[first], item))
    if len(groups) == 1:
        return [SourceRun(folder, [*groups.popitem()[1], *checkpoints], aside)]
    runs = [SourceRun(sources[0][1].key, sources, aside) for sources in groups.values()]
    if checkpoints:
        runs.append(SourceRun(folder, checkpoints))
    return sorted(runs, key=lambda run: run.key)


def _group(item: Recognized, folder: str) -> object:
    """Return what the files of one run in a folder have in common."""
    name = item.key.removeprefix(folder)
    if not name or "/" in name:  # folders, and files of folders, which the format has joined
        return None
    words = _WORD.findall(name.lower())
    return tuple(word for word in words if word not in _MODES)
