"""Whole documents: their limit, compressed ones, and what is no JSON."""

import gzip
from pathlib import Path

import pytest

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.files.whole_text import decoded, whole_text
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.local import LocalStore


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_may_be_compressed_and_have_a_mark(tmp_path: Path, pack: type[bytes]) -> None:
    (tmp_path / "a.json").write_bytes(pack(b"\xef\xbb\xbf[1, 2]"))
    text = whole_text(LocalStore(tmp_path), "a.json")
    assert decoded("a.json", text, list[int], "numbers") == [1, 2]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_beyond_the_limit_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: type[bytes]
) -> None:
    (tmp_path / "a.json").write_bytes(pack(b" " * (3 << 20)))
    monkeypatch.setenv("RULE_RUNNER_METADATA_BYTES", "2M")
    with pytest.raises(StorageUnavailableError, match="Raise RULE_RUNNER_METADATA_BYTES if this"):
        whole_text(LocalStore(tmp_path), "a.json")


def test_damaged_gzip_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(gzip.compress(b"[1]" * 999)[:-9])
    with pytest.raises(CorruptFileError, match="expected JSON, got a file that is truncated gzip"):
        whole_text(LocalStore(tmp_path), "a.json")


@pytest.mark.parametrize("text", [b"", b"[1, 2", b"[NaN]", b"[1e999]", b'["1"]', b"[" * 100_000])
def test_what_is_not_the_document_is_one_error(text: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"'a\.json' is corrupt: expected numbers, got "):
        decoded("a.json", text, list[int], "numbers")
