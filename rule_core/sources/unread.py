"""unread_files: why the files of a folder in which no format recognises a run are not read."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from rule_core.sources.format import HEAD_BYTES, Refused, SourceFolder
from rule_core.sources.rows.json_lines import decoded

FILES_NAMED: Final = 5  # of one folder
# Names of files that trainings write; the words count for texts, which hold anything.
_OUTPUTS: Final = re.compile(
    r"(?i).*\.(csv|tsv|jsonl|ndjson|log|out|err|ipynb|np[yz]|parquet|pkl|pickle|xlsx?|wandb|h5|hdf5"
    r"|pt|pth|ckpt|db)"
    r"|.*(log|hist|metric|loss|train|eval|progress|result|summary|monitor|score|stdout|stderr)"
    r"[^.]*(\.(json|txt|ya?ml))?"
)
_TABLES: Final = re.compile(r"(?i).*\.(csv|tsv|jsonl|ndjson|parquet|np[yz]|txt)")
_PICKLES: Final = re.compile(rb"\x80[\x02-\x05]")
_PICKLE_NAMES: Final = re.compile(r"(?i).*\.(pkl|pickle|pt|pth|ckpt)")
_SPREADSHEETS: Final = re.compile(r"(?i).*\.xls[xm]?")
# The first bytes of files, and why such a file is not read.
_HEADS: Final = (
    (b"version https://git-lfs.github.com/spec/", "it is a Git LFS pointer; fetch it by git lfs"),
    (b"\x89HDF\r\n", "it is an HDF5 file; save its series as CSV or JSON"),
    (b"SQLite format 3", "it is a SQLite database of no known schema"),
)
_PICKLE: Final = (
    "it is a pickle: opening it may run code; convert it, for example by "
    "json.dump(history.history, open('history.json', 'w')), or save weights as safetensors"
)
_SUMMARY: Final = "it holds one value of each name, as settings and summaries do, and no history"
_LIST_LENGTH: Final = 3  # of the longest list in a configuration, such as the betas of Adam


def unread_files(
    folder: SourceFolder, refused: Iterable[Refused] = (), *, every: bool = False
) -> list[Refused]:
    """Return the first files of a folder that look like outputs of a training, with reasons.

    Parameters
    ----------
    refused
        What formats refused; it comes first.
    every
        Whether to name all files, whatever their names.
    """
    known = {item.key: item for item in refused}
    others = (
        Refused(folder.key + name, _reason(folder, name))
        for name in folder.names
        if name[-1:] != "/" and folder.key + name not in known
        if every or _OUTPUTS.fullmatch(name)
    )
    return [*islice(known.values(), FILES_NAMED), *islice(others, max(0, FILES_NAMED - len(known)))]


def _reason(folder: SourceFolder, name: str) -> str:
    """Return why a file that no format recognises is not read."""
    head = folder.head(name)
    is_pickle = _PICKLES.match(head) or _PICKLE_NAMES.fullmatch(name)
    is_whole = len(head) < HEAD_BYTES
    reasons = (
        (not head, "it is empty, or a link, or cannot be read"),
        *((head.startswith(start), reason) for start, reason in _HEADS),
        (is_pickle, _PICKLE),
        (_SPREADSHEETS.fullmatch(name), "it is a spreadsheet; save it as CSV"),
        (is_whole and _is_summary(decoded(folder.head_text(name))), _SUMMARY),
        (_TABLES.fullmatch(name), "no loss or step column recognised; --step-column names one"),
    )
    return next((reason for applies, reason in reasons if applies), "no loss or metric recognised")


def _is_summary(content: object) -> bool:
    """Return whether a JSON document is an object without a series."""
    inner = [content]
    for item in inner:
        if isinstance(item, list) and len(item) > _LIST_LENGTH:
            return False
        inner += item.values() if isinstance(item, dict) else ()
    return isinstance(content, dict)
