"""Why files that no format recognises are not read."""

import pickle

import pytest
from memory_store import MemoryStore

from rule_core.sources.format import Unreadable
from rule_core.sources.recognize import source_folder
from rule_core.sources.unread import FILES_NAMED, unread_files


def reasons(files: dict[str, bytes], *refused: Unreadable, every: bool = False) -> dict[str, str]:
    folder = source_folder(MemoryStore(files), "")
    return unread_files(folder, refused, every=every)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("history.pkl", b"(dp0\n.", "it is a pickle"),
        ("trainHistoryDict", pickle.dumps({"loss": [1.0, 2.0]}), "it is a pickle: opening it may"),
        ("model.pt", b"PK\x03\x04\0\0archive/data.pkl", "it is a pickle"),
        ("history.xlsx", b"PK\x03\x04\0\0[Content_Types].xml", "a spreadsheet; save it as CSV"),
        ("weights.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("run.csv", b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        ("runs.db", b"SQLite format 3\0", "a SQLite database"),
        ("empty.log", b"", "it is empty"),
        ("train.csv", b"id,text\n1,a\n", "no loss or step column recognised; --step-column"),
        ("train.log", b"GET /index.html\n", "no loss or metric recognised"),
        ("eval_list.json", b"[1, 2]", "no loss"),
        ("metrics.json", b'{"a":' * 5000, "no loss"),
    ],
)
def test_reason_follows_from_the_content(name: str, content: bytes, words: str) -> None:
    (reason,) = reasons({name: content}).values()
    assert words in reason


def test_only_names_of_outputs_are_told_unless_every_file_is_asked_for() -> None:
    files = dict.fromkeys(
        ["README.md", "setup.py", "package.json", "notes.txt", "train_log.txt", "below/a.csv"], b"x"
    )
    assert [*reasons(files)] == ["train_log.txt"]
    assert len(reasons(files, every=True)) == 5


def test_what_formats_refuse_comes_first_and_a_folder_names_few() -> None:
    files = {f"{number}.csv": b"a,b\n" for number in range(10)}
    found = reasons(files, Unreadable("7.csv", "rows are samples"))
    assert next(iter(found.items())) == ("7.csv", "rows are samples")
    assert [*found] == ["7.csv", "0.csv", "1.csv", "2.csv", "3.csv"]
    assert len(found) == FILES_NAMED
