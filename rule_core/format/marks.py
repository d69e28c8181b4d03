"""Marks of trials: the names by which a folder with saved tensors or profiler data is known."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from rule_core.format.paths import COLLECTIONS, END_OF_JOB, EVENTS, INDEX

_COLLECTIONS: Final = COLLECTIONS.partition("/")
# The subfolders that identify a trial, and patterns of the names in them.
TENSORS: Final = {
    f"{_COLLECTIONS[0]}/": re.compile(_COLLECTIONS[2]),
    INDEX: re.compile(r"\d{9,}/"),
    EVENTS: re.compile(r"\d{12,}/"),
}
PROFILER: Final = {
    "system/": re.compile(rf"incremental/|{END_OF_JOB}"),
    "framework/": re.compile(rf"pevents/|tensorflow/|{END_OF_JOB}"),
}
# Traces of torch.profiler; other names are profiler data only where a user says so.
TRACES: Final = (".pt.trace.json", ".pt.trace.json.gz")
FOLDERS: Final = frozenset({*TENSORS, *PROFILER, "closed/"})  # of trials
TENSORBOARD: Final = "tensorboard/"  # what hooks save, once more, for TensorBoard
RECORDED: Final = FOLDERS | {"kineto/"}  # of profiles, which may have traces beside them


def has_marks(
    names: Collection[str],
    marks: Mapping[str, re.Pattern[str]],
    list_folder: Callable[[str], Iterable[str]],
) -> bool:
    """Return whether a folder holds a trial with these marks.

    Parameters
    ----------
    names
        The names in the folder; those of folders end with a slash.
    list_folder
        Returns the names in one of its folders.
    """
    return any(
        mark.fullmatch(name)
        for inner, mark in marks.items()
        if inner in names
        for name in list_folder(inner)
    )
