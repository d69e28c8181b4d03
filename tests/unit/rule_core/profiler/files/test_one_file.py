"""A path to one file."""

from pathlib import Path

import pytest

from rule_core.profiler.files.one_file import one_file
from rule_core.storage.uri import open_store


@pytest.mark.parametrize(
    ("path", "only"), [("a.json", "a.json"), ("a.txt", ""), ("folder.json", ""), ("none.json", "")]
)
def test_a_file_of_a_name_that_is_read(tmp_path: Path, path: str, only: str) -> None:
    for name in ("a.json", "a.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.json").mkdir()
    store, name = one_file(open_store(tmp_path / path), lambda name: name.endswith(".json"))
    assert (name, store.uri) == (only, str(tmp_path if only else tmp_path / path))


@pytest.mark.parametrize("path", ["a.json", "./a.json"])
def test_a_file_in_the_current_folder_is_not_looked_for_in_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "a.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    folder, name = one_file(open_store(path), lambda _: True)
    assert bytes(folder.read(name)) == b"{}"


def test_a_prefix_in_s3_is_a_file_if_it_ends_like_one() -> None:
    store, name = one_file(open_store("s3://bucket/runs/a.json"), lambda _: True)
    assert (store.uri, name) == ("s3://bucket/runs", "a.json")
    assert one_file(open_store("s3://bucket/runs/rank_0"), lambda _: True)[1] == ""
