"""unread_files: why the files of a folder in which no format recognises a run are not read."""

import re
from collections.abc import Iterable
from itertools import chain, islice
from typing import Final

from rule_core.sources.format import SourceFolder, Unreadable

FILES_NAMED: Final = 5  # of one folder
# Names of files that trainings write; the words count for texts, which hold anything.
_OUTPUTS: Final = re.compile(
    r"(?i).*\.(csv|tsv|jsonl|ndjson|log|out|err|ipynb|np[yz]|parquet|pkl|pickle|xlsx?|wandb|h5|hdf5"
    r"|pt|pth|ckpt|db)"
    r"|.*(log|hist|metric|loss|train|eval|progress|result|summary|monitor|score|stdout|stderr)"
    r"[^.]*(\.(json|txt|ya?ml))?"
)
# Of a name, a newline and the first bytes of such a file, and why it is not read.
_REASONS: Final = {
    rb".*\n$": "it is empty, or a link, or cannot be read",
    rb".*\nversion https://git-lfs\.github\.com/spec/": "it is a Git LFS pointer; fetch it by git "
    "lfs",
    rb".*\n\x89HDF\r\n": "it is an HDF5 file; save its series as CSV or JSON",
    rb".*\nSQLite format 3": "it is a SQLite database of no known schema",
    rb".*(\n\x80[\x02-\x05]|(?i:\.(pkl|pickle|pt|pth|ckpt)\n))": (
        "it is a pickle: opening it may run code; convert it, for example by "
        "json.dump(history.history, open('history.json', 'w')), or save weights as safetensors"
    ),
    rb"(?i).*\.xls[xm]?\n": "it is a spreadsheet; save it as CSV",
    rb"(?i).*\.(csv|tsv|jsonl|ndjson|parquet|np[yz]|txt)\n": "no loss or step column recognised; "
    "--step-column names one",
    rb"": "no loss or metric recognised",
}


def unread_files(
    folder: SourceFolder, refused: Iterable[Unreadable] = (), *, every: bool = False
) -> dict[str, str]:
    """Return why the first files that look like outputs of a training are not read, by key.

    Parameters
    ----------
    refused
        What formats refused; it comes first.
    every
        Whether to name all files, whatever their names.
    """
    reasons = {item.key: item.reason for item in refused}
    unrefused = (
        (folder.key + name, _reason(folder, name))
        for name in folder.names
        if name[-1:] != "/" and folder.key + name not in reasons
        if every or _OUTPUTS.fullmatch(name)
    )
    return dict(islice(chain(reasons.items(), unrefused), FILES_NAMED))


def _reason(folder: SourceFolder, name: str) -> str:
    """Return why a file that no format recognises is not read."""
    start = name.replace("\n", " ").encode(errors="replace") + b"\n" + folder.head(name)
    return next(reason for pattern, reason in _REASONS.items() if re.match(pattern, start))
