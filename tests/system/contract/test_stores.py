"""StoreContract: what every store of a trial's files promises."""

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import aws_server as server
import pytest
import s3_objects
from clocks import PatientClock
from memory_store import MemoryStore

from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.local import LocalStore
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.caching_store import CachingStore, DiskCache
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import open_store
from smdebug.exceptions import SMDebugValueError

FILES = {
    "collections/000000000/worker_0_collections.json": b"{}",
    "index/000000000/000000000000_worker_0.json": b"zero",
    "index/000000000/000000000001_worker_0.json": b"one",
    "index/000000000/000000000001_worker_10.json": b"ten",
    "index/000000000-x": b"sorts before the folder's slash",
    "index/000000001/000000001000_worker_0.json": b"thousand",
    "index_old/000000000000_worker_0.json": b"old",
    "events/000000000000/x.tfevents": bytes(range(256)),
    "training_job_end.ts": b"",
    "training_job_end.ts.more": b"x",
}


class StoreContract(ABC):
    """The tests; a subclass says how a store with some files is made."""

    @abstractmethod
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        """Return a store that holds `files`."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> TrialStore:
        return self.make(tmp_path / "root", FILES)

    @pytest.mark.parametrize(
        "prefix",
        [
            *("", "index/", "index", "index/000000000/", "index/000000000", "events/", "no/"),
            *("training_job_end.ts", "collections/000000000/", "index/000000000/000000000001"),
        ],
    )
    def test_keys_under_a_prefix_in_order(self, store: TrialStore, prefix: str) -> None:
        expected = sorted(key for key in FILES if key.startswith(prefix))
        assert list(store.list_keys(prefix)) == expected

    @pytest.mark.parametrize("prefix", ["", "index/", "index/000000000/"])
    @pytest.mark.parametrize(
        "after",
        [
            *FILES,
            *("", "a", "index/", "index/000000000", "index/000000000/", "zzz"),
            *("index/000000000/000000000000", "index/000000000/000000000001_worker_0.json!"),
            "index/000000000/000000000001_worker_0.jso",
        ],
    )
    def test_keys_after_a_key_strictly(self, store: TrialStore, prefix: str, after: str) -> None:
        expected = sorted(key for key in FILES if key.startswith(prefix) and key > after)
        assert list(store.list_keys(prefix, start_after=after)) == expected

    @pytest.mark.parametrize("key", FILES)
    def test_whole_file(self, store: TrialStore, key: str) -> None:
        found = store.read(key)
        assert (bytes(found), found.readonly) == (FILES[key], True)

    @pytest.mark.parametrize(
        ("start", "stop"), [(0, 256), (0, 0), (3, 7), (250, 300), (256, 300), (400, 500), (7, 3)]
    )
    def test_range(self, store: TrialStore, start: int, stop: int) -> None:
        key = "events/000000000000/x.tfevents"
        assert bytes(store.read(key, ByteRange(start, stop))) == FILES[key][start:stop]

    @pytest.mark.parametrize("key", ["no", "index/no", "index/000000000/no", "no/no/no"])
    def test_file_that_does_not_exist(self, store: TrialStore, key: str) -> None:
        with pytest.raises(
            ObjectNotFoundError, match=rf"^File '{key}' does not exist\.$"
        ) as raised:
            store.read(key)
        assert raised.value.key == key
        with pytest.raises(ObjectNotFoundError):
            store.read(key, ByteRange(0, 0))

    def test_bytes_that_were_read_stay(self, store: TrialStore) -> None:
        first = store.read("index/000000000/000000000000_worker_0.json")
        second = store.read("index/000000000/000000000001_worker_0.json")
        assert (bytes(first), bytes(second)) == (b"zero", b"one")

    def test_name_for_messages(self, store: TrialStore) -> None:
        assert store.uri


class TestMemoryStore(StoreContract):
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        return MemoryStore(files, str(folder))


class TestLocalStore(StoreContract):
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        for key, content in files.items():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return LocalStore(folder)


class TestOpenedStore(TestLocalStore):
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        super().make(folder, files)
        return open_store(f"file://{folder}")


class TestS3Store(StoreContract):
    prefix = "runs/of mine/"
    endpoint = ""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _objects(cls, aws_server: str) -> None:
        """Put the files once: no test of the contract changes them."""
        cls.endpoint = aws_server
        server.reset(aws_server)
        s3_objects.make_bucket(aws_server)
        s3_objects.put(aws_server, cls.prefix, FILES)
        if cls.prefix:
            near = dict.fromkeys(("runs/of mine", "runs/of mine-2/x", "runs/other/x"), b"")
            s3_objects.put(aws_server, "", near)
            s3_objects.put(aws_server, cls.prefix, {"": b"", "index/": b""})

    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        del folder, files
        client = s3_objects.client(self.endpoint)
        return S3Store(Bucket(f"s3://{s3_objects.BUCKET}/{self.prefix}", client))


class TestS3StoreOfAWholeBucket(TestS3Store):
    prefix = ""


class TestRetriedS3Store(TestS3Store):
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        return RetryingStore(super().make(folder, files), PatientClock())


class TestCachedS3Store(TestS3Store):
    def make(self, folder: Path, files: Mapping[str, bytes]) -> TrialStore:
        store = super().make(folder, files)
        assert isinstance(store, S3Store)
        return CachingStore(store.bucket, DiskCache(folder, 1 << 20))

    @pytest.mark.parametrize("key", FILES)
    def test_whole_file(self, store: TrialStore, key: str) -> None:
        for _ in range(2):
            super().test_whole_file(store, key)

    @pytest.mark.parametrize(("start", "stop"), [(3, 7), (250, 300), (400, 500)])
    def test_range_again(self, store: TrialStore, start: int, stop: int) -> None:
        for _ in range(2):
            self.test_range(store, start, stop)


# -- local folders only ----------------------------------------------------------------------


def test_missing_root_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError, match="/no' does not exist"):
        list(LocalStore(tmp_path / "no").list_keys(""))
    with pytest.raises(ObjectNotFoundError):
        LocalStore(tmp_path / "no").read("x")


@pytest.mark.parametrize("key", ["link", "inside/x", "pipe", "socket", "folder", "dangling"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, key: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "x").write_bytes(b"x")
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "dangling").symlink_to(tmp_path / "no")
    (root / "inside").symlink_to(root / "folder")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
        with pytest.raises(StorageUnavailableError, match=rf"^Cannot read '{key}': .*\.$"):
            LocalStore(root).read(key)


def test_links_and_pipes_are_listed_and_linked_folders_not_entered(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_bytes(b"x")
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    assert list(LocalStore(tmp_path).list_keys("")) == ["folder/x", "link", "pipe"]


def test_folders_are_not_entered_for_ever(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 30)).mkdir(parents=True)
    (tmp_path / "/".join("d" * 30) / "x").write_bytes(b"x")
    assert list(LocalStore(tmp_path).list_keys("")) == []


@pytest.mark.parametrize("key", ["a\0b", "x" * 300])
def test_key_that_cannot_be_a_file(tmp_path: Path, key: str) -> None:
    with pytest.raises(StorageUnavailableError, match="Cannot read"):
        LocalStore(tmp_path).read(key)


def test_key_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageUnavailableError):
        LocalStore(tmp_path).read("file/x")
    with pytest.raises(StorageUnavailableError):
        list(LocalStore(tmp_path).list_keys("file/x"))


def test_file_that_is_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    reads: list[int] = []

    def preadv(fd: int, buffers: list[memoryview], offset: int) -> int:
        del fd
        reads.append(offset)
        if len(reads) > 1:
            return 0
        buffers[0][:4] = b"0123"
        return 4

    monkeypatch.setattr("rule_core.storage.local.os.preadv", preadv)
    assert bytes(LocalStore(tmp_path).read("file")) == b"0123"
    assert reads == [0, 4]


def test_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")

    def preadv(*_: object) -> int:
        raise OSError(5, "x")

    monkeypatch.setattr("rule_core.storage.local.os.preadv", preadv)
    with pytest.raises(StorageUnavailableError, match=r"'file': Input/output error\.$"):
        LocalStore(tmp_path).read("file")


def test_file_larger_than_memory(tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as file:
        try:
            file.truncate(2**62)
        except OSError:
            file.truncate(2**43)
    with pytest.raises(StorageUnavailableError, match="no memory for"):
        LocalStore(tmp_path).read("holes", ByteRange(0, 2**62))
    with pytest.raises(StorageUnavailableError, match="RULE_RUNNER_METADATA_BYTES"):
        LocalStore(tmp_path).read("holes")


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("/a/b", "/a/b"),
        (" /a/b ", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("FILE:///a", "/a"),
        ("a/x://b", "a/x:/b"),
        (Path("/p"), "/p"),
    ],
    ids=repr,
)
def test_addresses(uri: str | Path, root: str) -> None:
    found = open_store(uri)
    assert isinstance(found, LocalStore)
    assert str(found.root) == root


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert open_store("~/runs").uri == "/home/me/runs"


@pytest.mark.parametrize(
    ("uri", "match"),
    [
        ("", r"^The path of a trial must not be empty\.$"),
        ("  ", r"must not be empty"),
        ("gs://b/t", r"^Trials at gs:// addresses cannot be read yet, got 'gs://b/t'\. Copy"),
    ],
)
def test_addresses_that_cannot_be_read(uri: str, match: str) -> None:
    with pytest.raises(SMDebugValueError, match=match):
        open_store(uri)
