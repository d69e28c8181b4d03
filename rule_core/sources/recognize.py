"""recognize: the training runs in a folder whose files are in formats of others."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import islice
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.failures import attempt
from rule_core.modes import ModeKeys
from rule_core.sources import names as meanings
from rule_core.sources.format import HEAD_BYTES, Recognized, SourceFolder, SourceFormat, Unreadable
from rule_core.sources.formats import CHECKPOINTS, MODULES, formats, reason_of
from rule_core.sources.text.compressed_file import read_head
from rule_core.sources.text.rotated_file import without_parts
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
    list_folder,
)

ENTRIES: Final = 10_000  # looked at in one folder
TRAINER: Final = "trainer-state"
WANDB: Final = "wandb"
WANDB_LOGS: Final = "logs/"  # of its client
HEADS: Final = 256  # kept of one folder
# Folders in which a trainer keeps the logs of the checkpoints beside them.
_LOG_FOLDERS: Final = ("runs/", "logs/", "log/", "tensorboard/", "tb/", "tb_logs/")
_WORD: Final = re.compile(r"[A-Za-z]+|\d+")
# Words in which the files of one run differ.
_MODES: Final = {
    **dict.fromkeys(("train", "training", "trn", "learn"), ModeKeys.TRAIN),
    **dict.fromkeys(("eval", "evaluation", "evaluations", "test", "dev"), ModeKeys.EVAL),
    **dict.fromkeys(("val", "vali", "valid", "validation", "validations"), ModeKeys.EVAL),
}
# Words of metrics, in which files with one metric each differ. Logs are named "error" too.
_METRICS: Final = frozenset(
    word for row in meanings.ROWS if row.meaning for word in re.findall("[a-z]{2,}", row.phrases)
)
_ENVIRONMENT: Final = re.compile(r"(\d+\.)+(?=monitor\.csv)")  # of several, in Stable-Baselines3
_LOGS: Final = ("log", "out", "err", "txt")
_SIBLINGS: Final = frozenset({*_MODES, "files", "log", "logs"})  # folders with files of one run
Read = tuple[SourceFormat, Recognized]
ByKind = dict[str, list[Recognized]]


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
    refused
        The files that formats looked at, and that none of them reads.
    """

    runs: Sequence[SourceRun]
    owned: frozenset[str] = frozenset()
    problems: Sequence[str] = ()
    refused: Sequence[Unreadable] = ()


def source_folder(store: TrialStore, key: str, only: str | None = None) -> SourceFolder:
    """Return a folder of a store, in which formats can look.

    Parameters
    ----------
    only
        The name of the only file to look at, with those of the same run; None: all.
    """

    def names(folder: str) -> Sequence[str]:
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            return sorted(islice(list_folder(store, key + folder), ENTRIES))
        return ()

    if only is None:
        return folder_of(store, key, names(""), names)
    group = _group(only)
    alike = [name for name in names("") if name[-1:] != "/" and _group(name) == group]
    return folder_of(store, key, alike if only in alike else (only,), lambda _: ())


def folder_of(
    store: TrialStore, key: str, names: Sequence[str], list_below: Callable[[str], Sequence[str]]
) -> SourceFolder:
    """Return a folder whose names are known; heads are read once for all formats."""

    def start(name: str, size: int) -> bytes:
        with suppress(ObjectNotFoundError, StorageUnavailableError, SMDebugValueError):
            return read_head(store, key + name, size)
        return b""

    first = lru_cache(HEADS)(partial(start, size=HEAD_BYTES))

    def head(name: str, size: int = HEAD_BYTES) -> bytes:
        return first(name) if size == HEAD_BYTES else start(name, size)

    def tail(name: str) -> bytes:
        with suppress(ObjectNotFoundError, StorageUnavailableError):
            size = store.status(key + name).size
            return bytes(store.read(key + name, ByteRange(max(0, size - HEAD_BYTES), size)))
        return b""

    return SourceFolder(key, without_parts(names), cache(list_below), head, tail=tail)


def recognize(
    folder: SourceFolder, by_kind: Mapping[str, SourceFormat] | None = None
) -> Recognition:
    """Return the runs in a folder.

    Several formats of numbers may describe one run: the first one in `formats` is read, the others
    are set aside, so that no value counts twice. Checkpoints belong to the run beside them. Files
    of one format are separate runs, unless their names or folders differ only in words of modes
    and metrics, such as ``train.csv`` and ``val.csv`` or ``train/loss.tsv`` and ``eval/acc.tsv``,
    or in the number of an environment, such as ``0.monitor.csv`` and ``1.monitor.csv``.

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
    refused: dict[str, Unreadable] = {}
    ask = partial(_ask_all, by_kind, refused, problems.append)
    recognized = ask(folder)
    _add_siblings(recognized, folder, ask)
    owned = {below for items in recognized.values() for below in _folders_of(items, folder.key)}
    if recognized:
        owned |= {name for name in folder.names if _is_checkpoint(name)}
    if WANDB in recognized:
        owned.add(WANDB_LOGS)
    if CHECKPOINTS in recognized or TRAINER in recognized:
        _add_logs_below(recognized, owned, folder, by_kind)
    read = {item.key for items in recognized.values() for item in items}
    unread = [item for item in refused.values() if item.key not in read]
    return Recognition(_runs(recognized, folder.key, by_kind), frozenset(owned), problems, unread)


def _is_checkpoint(name: str) -> bool:
    from rule_core.sources.safetensors import step_in

    return name.endswith("/") and step_in(name[:-1], is_folder=True) is not None


def _ask_all(
    by_kind: Mapping[str, SourceFormat],
    refused: dict[str, Unreadable],
    report: Callable[[str], None],
    folder: SourceFolder,
) -> ByKind:
    """Return what formats recognise in a folder; add what they refuse."""
    recognized: ByKind = {}
    for kind, source_format in by_kind.items():
        for item in _ask(source_format, folder, report):
            if isinstance(item, Recognized):
                recognized.setdefault(kind, []).append(item)
            else:
                refused.setdefault(item.key, item)
    return recognized


def _ask(
    source_format: SourceFormat, folder: SourceFolder, report: Callable[[str], None]
) -> list[Recognized | Unreadable]:
    """Return what a format recognises and refuses; nothing, after a report, if it fails."""
    if source_format.kind in MODULES:
        return list(source_format.recognize(folder))

    def failed(err: Exception) -> list[Recognized | Unreadable]:
        report(
            f"Format {source_format.kind!r} failed on folder {folder.key or '.'!r}: "
            f"{reason_of(err)}."
        )
        return []

    return attempt(lambda: list(source_format.recognize(folder)), failed)


def _add_siblings(
    recognized: ByKind, folder: SourceFolder, ask: Callable[[SourceFolder], ByKind]
) -> None:
    """Add what is in folders of modes, and of loggers in other formats, if all is one run then."""
    together = {kind: {item.key: item for item in items} for kind, items in recognized.items()}
    holders = len(recognized.keys() - {CHECKPOINTS})
    for name in folder.names:
        if name == WANDB_LOGS and WANDB in recognized:
            continue
        if name[-1:] == "/" and name[:-1].lower() in _SIBLINGS:
            below = ask(_inner(folder, name))
            below.pop(CHECKPOINTS, None)
            if name[:-1].lower() in _MODES or together.keys().isdisjoint(below):
                holders += bool(below)
                for kind, items in below.items():
                    together.setdefault(kind, {}).update((item.key, item) for item in items)
    groups = ({_group(key.removeprefix(folder.key)) for key in keys} for keys in together.values())
    if holders > 1 and all(len(each) == 1 for each in groups):
        recognized.update((kind, [*items.values()]) for kind, items in together.items())


def _folders_of(items: Iterable[Recognized], folder: str) -> Iterator[str]:
    """Yield the names of the folders below `folder` that hold recognised files."""
    for item in items:
        name, slash, _ = item.key.removeprefix(folder).partition("/")
        if slash:
            yield name + slash


def _add_logs_below(
    recognized: ByKind,
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
        lambda inner, *size: folder.head(name + inner, *size),
        folder.options,
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
    first, *later = kinds
    read = {item.key for item in recognized[first]}
    candidates = (item for kind in later for item in recognized[kind])
    aside = [item for item in candidates if item.key not in read]
    groups: dict[object, list[Read]] = {}
    for item in recognized[first]:
        groups.setdefault(_group(item.key.removeprefix(folder)), []).append((by_kind[first], item))
    if len(groups) == 1:
        sources = _with_modes(groups.popitem()[1], folder)
        return [SourceRun(folder, [*sources, *checkpoints], aside)]
    runs = [
        SourceRun(sources[0][1].key, _with_modes(sources, folder), aside)
        for sources in groups.values()
    ]
    if checkpoints:
        runs.append(SourceRun(folder, checkpoints))
    return sorted(runs, key=lambda run: run.key)


def _with_modes(sources: list[Read], folder: str) -> list[Read]:
    """Return the sources of a run; files that are called after an evaluation have its mode.

    A file of the training may hold values of the evaluation too, under names that say so. A file
    that is alone and called "test" may be that of a training which is tried out.
    """
    modes = _MODES if len(sources) > 1 else {**_MODES, "test": ModeKeys.TRAIN}

    def with_mode(item: Recognized) -> Recognized:
        words = _WORD.findall(item.key.removeprefix(folder).lower())
        mode = next((modes[word] for word in words if word in modes), None)
        return item._replace(mode=item.mode or mode) if mode is ModeKeys.EVAL else item

    return [(kind, with_mode(item)) for kind, item in sources]


def _group(name: str) -> object:
    """Return what the files of one run in a folder have in common.

    Folders, and files of folders that a format has joined, are one run.
    """
    above, slash, _ = name.partition("/")
    if not name or name[-1] == "/" or (slash and above.lower() not in _SIBLINGS):
        return None
    words = _WORD.findall(_ENVIRONMENT.sub("", name.lower()))
    dropped = _MODES.keys() if words and words[-1] in _LOGS else _MODES.keys() | _METRICS
    return tuple(word for word in words if word not in dropped)
