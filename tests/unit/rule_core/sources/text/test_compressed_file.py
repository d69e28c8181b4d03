"""CompressedFile: content of any compression, growing, damaged or hostile."""

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from memory_store import MemoryStore

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.text.compressed_file import CompressedFile, open_file, read_head
from rule_core.storage.growing_file import GrowingFile

CONTENT = b"".join(b"step %d loss %d\n" % (n, n * n) for n in range(2000))
METHODS = {"a.gz": gzip.compress, "a.bz2": bz2.compress, "a.XZ": lzma.compress}


def content_of(file: GrowingFile | CompressedFile, limit: int = 100) -> bytes:
    pieces = []
    while data := bytes(file.read(limit).data):
        assert len(data) <= limit
        pieces.append(data)
    return b"".join(pieces)


@pytest.mark.parametrize("limit", [1, 100, 1 << 20])
@pytest.mark.parametrize(("name", "compress"), METHODS.items())
def test_content_of_several_members(
    name: str, compress: Callable[[bytes], bytes], limit: int
) -> None:
    members = compress(CONTENT[:500]) + compress(b"") + b"\0" * 8 + compress(CONTENT[500:])
    assert content_of(open_file(MemoryStore({name: members}), name), limit) == CONTENT


@pytest.mark.parametrize(("name", "compress"), METHODS.items())
def test_a_file_that_grows_gives_each_byte_once(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    whole = compress(CONTENT) + compress(b"more")
    files: dict[str, bytes] = {}
    file = open_file(MemoryStore(files), name)
    content = b""
    for end in range(0, len(whole) + 97, 97):
        files[name] = whole[:end]
        content += content_of(file)
        assert CONTENT.startswith(content[: len(CONTENT)])
    assert content == CONTENT + b"more"


def test_zeros_that_fill_a_whole_disk_are_read_in_small_pieces() -> None:
    bomb = gzip.compress(b"0" * (50 << 20))
    file = open_file(MemoryStore({"a.gz": bomb}), "a.gz")
    sizes = [len(file.read(1 << 20).data) for _ in range(51)]
    assert sum(sizes) == 50 << 20
    assert max(sizes) == 1 << 20


def test_damage_ends_the_content_until_the_file_is_rewritten() -> None:
    files = {"a.gz": gzip.compress(b"one\n") + b"garbage" + gzip.compress(b"two\n")}
    file = open_file(MemoryStore(files), "a.gz")
    assert isinstance(file, CompressedFile)
    assert content_of(file) == b"one\n"
    assert file.problem.startswith("It is damaged: ")
    files["a.gz"] = gzip.compress(b"new\n")
    assert tuple(file.read()) == (b"new\n", True)
    assert (file.problem, content_of(file)) == ("", b"")


def test_heads_are_those_of_the_content() -> None:
    store = MemoryStore({"a.gz": gzip.compress(CONTENT[:9]) + gzip.compress(CONTENT), "b": CONTENT})
    assert read_head(store, "a.gz", 50) == (CONTENT[:9] + CONTENT)[:50]
    assert read_head(store, "b", 50) == CONTENT[:50]


def test_without_zstandard_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("compression", "backports"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SMDebugValueError, match=r"'a\.zst'.* install the package backports\.zstd"):
        open_file(MemoryStore({}), "a.zst")


def test_zstandard_is_read_with_the_backport(monkeypatch: pytest.MonkeyPatch) -> None:
    instead = SimpleNamespace(ZstdDecompressor=bz2.BZ2Decompressor, ZstdError=EOFError)
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "backports", SimpleNamespace(zstd=instead))
    store = MemoryStore({"a.zst": bz2.compress(CONTENT)})
    assert content_of(open_file(store, "a.zst")) == CONTENT
