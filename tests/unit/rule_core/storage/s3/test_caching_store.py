"""What was read of S3 before: never stale, never damaged, never more than was allowed."""

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import FaultyS3, says

from rule_core.exceptions import SMDebugValueError
from rule_core.storage.base import ByteRange, ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.caching_store import FOLDER, CachedObject, CachingStore, DiskCache

CONTENT = bytes(range(256))
WANTED = [None, ByteRange(3, 100), ByteRange(250, 300)]


@pytest.fixture
def cached(faulty: FaultyS3, bucket: Bucket, aws_endpoint: str, tmp_path: Path) -> CachingStore:
    s3_objects.put(aws_endpoint, "t/", {"x": CONTENT})
    faulty.forget()
    return CachingStore(bucket, DiskCache(tmp_path, 1 << 20))


def files(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).iterdir())


@pytest.mark.parametrize("wanted", WANTED, ids=repr)
def test_bytes_come_once(faulty: FaultyS3, cached: CachingStore, wanted: ByteRange | None) -> None:
    expected = CONTENT[slice(*wanted)] if wanted else CONTENT
    for _ in range(3):
        result = cached.read("x", wanted)
        assert (bytes(result), result.readonly) == (expected, True)
    assert faulty.answered == [206 if wanted else 200, 304, 304]
    assert ["if-none-match" in headers for _, _, headers in faulty.asked] == [False, True, True]


@pytest.mark.parametrize("wanted", WANTED, ids=repr)
def test_an_object_that_was_replaced_is_never_served_stale(
    cached: CachingStore, aws_endpoint: str, wanted: ByteRange | None
) -> None:
    for turn in range(3):
        content = CONTENT[turn:] + CONTENT[:turn]
        s3_objects.put(aws_endpoint, "t/", {"x": content})
        expected = content[slice(*wanted)] if wanted else content
        assert bytes(cached.read("x", wanted)) == expected


def test_an_object_that_was_removed_or_forbidden_is_not_served(
    faulty: FaultyS3, cached: CachingStore, aws_endpoint: str
) -> None:
    cached.read("x")
    faulty.due = [says(403, "AccessDenied")]
    with pytest.raises(StorageUnavailableError, match="AccessDenied"):
        cached.read("x")
    s3_objects.client(aws_endpoint).delete_object(Bucket="bucket", Key="t/x")
    with pytest.raises(ObjectNotFoundError):
        cached.read("x")


def test_no_bytes_are_not_kept(cached: CachingStore, tmp_path: Path) -> None:
    cached.read("x", ByteRange(0, 0))
    cached.read("x", ByteRange(500, 600))
    assert files(tmp_path) == []


def test_trials_keep_their_own(faulty: FaultyS3, cached: CachingStore, aws_endpoint: str) -> None:
    s3_objects.put(aws_endpoint, "other/", {"x": b"other"})
    bucket = Bucket("s3://bucket/other", cached.bucket.client)
    other = CachingStore(bucket, cached.cache)
    for _ in range(2):
        assert (bytes(cached.read("x")), bytes(other.read("x"))) == (CONTENT, b"other")
    assert faulty.answered == [200, 200, 304, 304]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: content.replace(b"crc32", b"crc31"),
        lambda _: b"",
        lambda _: b"\n",
        lambda _: b"\xff" * 300,
    ],
    ids=["cut", "longer", "flipped", "head", "empty", "line", "noise"],
)
def test_damaged_files_are_removed(
    faulty: FaultyS3, cached: CachingStore, tmp_path: Path, damage: object
) -> None:
    cached.read("x")
    (kept,) = files(tmp_path)
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))  # type: ignore[operator] # a function
    assert cached.cache.get(kept.name) is None
    assert files(tmp_path) == []
    assert bytes(cached.read("x")) == CONTENT
    assert faulty.answered == [200, 200]
    assert kept.read_bytes() == whole


def test_patience_lies_around_it(faulty: FaultyS3, cached: CachingStore) -> None:
    store = RetryingStore(cached, PatientClock())
    faulty.due = [says(503, "SlowDown")]
    assert bytes(store.read("x")) == CONTENT
    assert (store.uri, store.costs) == ("s3://bucket/t", cached.costs)
    assert list(store.list_keys("")) == ["x"]


# -- the folder -------------------------------------------------------------------------------


def kept(size: int, byte: int = 0) -> CachedObject:
    return CachedObject("tag", memoryview(bytes([byte]) * size))


def total(folder: Path) -> int:
    return sum(path.stat().st_size for path in files(folder))


def test_the_folder_is_private(tmp_path: Path) -> None:
    DiskCache(tmp_path / "a" / "b", 1000).put("x", kept(1))
    folder = tmp_path / "a" / "b" / FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    DiskCache(tmp_path / "a" / "b", 1000)
    folder.chmod(0o755)
    with pytest.raises(SMDebugValueError, match=r"must belong to this user alone, got mode drwxr-"):
        DiskCache(tmp_path / "a" / "b", 1000)
    shutil.rmtree(folder)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SMDebugValueError, match=r"must belong to this user alone, got mode l"):
        DiskCache(tmp_path / "a" / "b", 1000)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        SMDebugValueError, match=r"^The cache folder '.*/file' cannot be created: Not"
    ):
        DiskCache(tmp_path / "file", 1000)


def test_it_stays_below_its_bound(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 16_000)
    for number in range(120):
        cache.put(f"{number}", kept(number * 9 % 950))
        assert total(tmp_path) <= 16_000
    assert total(tmp_path) > 12_000
    assert cache.get("119") is not None


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 16_000)
    for number in range(14):
        cache.put(f"{number}", kept(900))
        os.utime(tmp_path / FOLDER / f"{number}", (number, number))
    assert cache.get("0") == kept(900)
    for number in range(20, 24):
        cache.put(f"{number}", kept(900))
    there = {path.name for path in files(tmp_path)}
    assert {"0", "23"} <= there
    assert {"1", "2"}.isdisjoint(there)


def test_what_is_large_is_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 16_000)
    cache.put("x", kept(1000))
    assert files(tmp_path) == []
    cache.put("x", kept(900))
    assert len(files(tmp_path)) == 1


def test_a_cache_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 0)
    cache.put("x", kept(0))
    assert (files(tmp_path), cache.get("x")) == ([], None)


def test_drafts_that_a_crash_left_are_removed_in_their_turn(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1600)
    draft = tmp_path / FOLDER / "tmp123"
    draft.write_bytes(bytes(2000))
    os.utime(draft, (1, 1))
    cache.put("x", kept(9))
    assert [path.name for path in files(tmp_path)] == ["x"]


def test_a_disk_that_takes_nothing_costs_no_read(
    cached: CachingStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(tmp_path / FOLDER)
    for _ in range(3):
        assert bytes(cached.read("x")) == CONTENT
    said = [record.message for record in caplog.records if record.name == "smdebug.storage"]
    assert [text.partition(" [")[0] for text in said] == ["The cache is not written."]


def test_a_full_disk_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path, 16_000)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rule_core.storage.s3.caching_store.os.replace", full)
    cache.put("x", kept(9))
    assert files(tmp_path) == []


def test_several_at_once(tmp_path: Path) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        cache = DiskCache(tmp_path, 16_000)
        for turn in range(150):
            number = (seed * 31 + turn * 7) % 40
            cache.put(f"{number}", kept(800, number))
            found = cache.get(f"{(number + 7) % 40}")
            if found not in {None, kept(800, (number + 7) % 40)}:
                wrong.append(found)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert total(tmp_path) <= 16_000 + 3 * 1000
