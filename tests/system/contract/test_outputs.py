"""OutputContract: what every place that a trial is written to promises."""

import errno
import os
from abc import ABC, abstractmethod
from pathlib import Path

import pytest
import s3_objects
from clocks import PatientClock
from memory_store import MemoryOutput

from rule_core.storage.base import ObjectNotFoundError, TrialOutput
from rule_core.storage.local_output import BUFFER, LocalOutput
from rule_core.storage.publish import publish
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.output import S3Output
from rule_core.storage.uri import open_output
from smdebug.exceptions import SMDebugValueError

KEY = "index/000000000/000000000000_worker_0.json"


class OutputContract(ABC):
    """The tests; a subclass says how an empty output is made."""

    @abstractmethod
    def make(self, folder: Path) -> TrialOutput:
        """Return an output; `folder` is not there yet."""

    @pytest.fixture
    def output(self, tmp_path: Path) -> TrialOutput:
        return self.make(tmp_path / "root")

    def test_a_place_that_does_not_exist_is_an_empty_trial(self, output: TrialOutput) -> None:
        assert list(output.list_keys("")) == []
        assert list(output.list_keys("index/", start_after="index/a")) == []
        with pytest.raises(ObjectNotFoundError):
            output.read(KEY)
        output.remove(KEY)

    def test_a_draft_is_seen_when_it_is_published(self, output: TrialOutput) -> None:
        draft = output.open(KEY)
        draft.write(b"a", memoryview(b"bc"))
        draft.write()
        draft.write(b"", b"d")
        assert list(output.list_keys("")) == []
        with pytest.raises(ObjectNotFoundError):
            output.read(KEY)
        draft.publish()
        assert list(output.list_keys("")) == [KEY]
        assert bytes(output.read(KEY)) == b"abcd"

    def test_a_file_is_replaced_whole(self, output: TrialOutput) -> None:
        publish(output, KEY, b"a long one")
        draft = output.open(KEY)
        draft.write(b"new")
        assert bytes(output.read(KEY)) == b"a long one"
        draft.publish()
        assert bytes(output.read(KEY)) == b"new"

    def test_what_is_discarded_leaves_nothing(self, output: TrialOutput, tmp_path: Path) -> None:
        publish(output, KEY, b"before")
        for key in (KEY, "events/x"):
            draft = output.open(key)
            draft.write(b"after")
            draft.discard()
            draft.discard()
        assert list(output.list_keys("")) == [KEY]
        assert bytes(output.read(KEY)) == b"before"
        assert [path.name for path in tmp_path.rglob("*.tmp")] == []

    def test_a_file_that_cannot_be_written_leaves_nothing(self, output: TrialOutput) -> None:
        with pytest.raises(TypeError, match="str"):
            publish(output, KEY, b"a", "b")  # type: ignore[arg-type] # no bytes
        assert list(output.list_keys("")) == []

    def test_to_discard_what_is_published_changes_nothing(self, output: TrialOutput) -> None:
        draft = output.open(KEY)
        draft.write(b"a")
        draft.publish()
        draft.discard()
        assert bytes(output.read(KEY)) == b"a"

    def test_a_file_may_be_empty(self, output: TrialOutput) -> None:
        output.open("training_job_end.ts").publish()
        assert list(output.list_keys("training_job_end.ts")) == ["training_job_end.ts"]
        assert bytes(output.read("training_job_end.ts")) == b""

    def test_a_file_is_removed_once_or_twice(self, output: TrialOutput) -> None:
        publish(output, KEY, b"a")
        publish(output, "other", b"b")
        for _ in range(2):
            output.remove(KEY)
            assert list(output.list_keys("")) == ["other"]

    @pytest.mark.parametrize("size", [1, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER])
    def test_parts_of_every_size_keep_their_order(self, output: TrialOutput, size: int) -> None:
        parts = [bytes([number]) * (size if number % 3 else 7) for number in range(12)]
        draft = output.open(KEY)
        for number in range(0, 12, 2):
            draft.write(parts[number], memoryview(parts[number + 1]))
        draft.publish()
        assert bytes(output.read(KEY)) == b"".join(parts)

    @pytest.mark.parametrize("size", [5, 2 * BUFFER])
    def test_what_was_written_is_of_the_moment(self, output: TrialOutput, size: int) -> None:
        memory = bytearray(b"a" * size)
        draft = output.open(KEY)
        draft.write(memoryview(memory))
        memory[:] = b"b" * size
        draft.publish()
        assert bytes(output.read(KEY)) == b"a" * size

    def test_two_drafts_at_once(self, output: TrialOutput) -> None:
        first, second = output.open("a"), output.open("b")
        first.write(b"1")
        second.write(b"2")
        second.publish()
        assert list(output.list_keys("")) == ["b"]
        first.publish()
        assert [bytes(output.read(key)) for key in output.list_keys("")] == [b"1", b"2"]


class TestMemoryOutput(OutputContract):
    def make(self, folder: Path) -> TrialOutput:
        return MemoryOutput({}, str(folder))


class TestLocalOutput(OutputContract):
    def make(self, folder: Path) -> TrialOutput:
        return LocalOutput(folder)


class TestOpenedOutput(OutputContract):
    def make(self, folder: Path) -> TrialOutput:
        return open_output(f"file://{folder}/below")


class TestS3Output(OutputContract):
    @pytest.fixture(autouse=True)
    def _aws(self, aws_endpoint: str) -> None:
        self.client = s3_objects.make_bucket(aws_endpoint)

    def make(self, folder: Path) -> TrialOutput:
        bucket = Bucket(f"s3://{s3_objects.BUCKET}/{folder.name}", self.client)
        return S3Output(bucket, PatientClock())


class TestOpenedS3Output(TestS3Output):
    def make(self, folder: Path) -> TrialOutput:
        output = open_output(f"s3://{s3_objects.BUCKET}/{folder.name}")
        assert isinstance(output, S3Output)
        output._bucket._client = self.client  # to make another takes longer than the test
        return output


# -- local folders only -----------------------------------------------------------------------


def test_a_draft_lies_beside_its_place(tmp_path: Path) -> None:
    draft = LocalOutput(tmp_path).open(KEY)
    assert [path.name for path in (tmp_path / KEY).parent.iterdir()] == [
        "000000000000_worker_0.json.tmp"
    ]
    draft.discard()


def test_what_a_crash_left_of_a_draft_is_overwritten(tmp_path: Path) -> None:
    left = tmp_path / "file.tmp"
    left.write_bytes(b"much more than what is written now")
    draft = LocalOutput(tmp_path).open("file")
    draft.write(b"new")
    draft.publish()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not left.exists()


def test_what_the_system_takes_in_pieces_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = LocalOutput(tmp_path).open("file")

    class Piecemeal:
        """A file of which the system takes 100 bytes a call."""

        def __init__(self) -> None:
            self.taken = bytearray()

        def write(self, part: memoryview) -> int:
            self.taken += part[:100]
            return min(len(part), 100)

        def close(self) -> None:
            (tmp_path / "file.tmp").write_bytes(self.taken)

    draft._file.close()
    monkeypatch.setattr(draft, "_file", Piecemeal())
    draft.write(b"a" * 1234, b"b" * BUFFER)
    draft.publish()
    assert (tmp_path / "file").read_bytes() == b"a" * 1234 + b"b" * BUFFER


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("size", [10, BUFFER + 10])
def test_a_process_that_is_forked_off_writes_nothing_again(tmp_path: Path, size: int) -> None:
    draft = LocalOutput(tmp_path).open("file")
    draft.write(b"a" * size, b"b" * 10)
    child = os.fork()
    if child == 0:
        del draft  # and with it, what Python itself would hold back
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    draft.write(b"c" * 10)
    draft.publish()
    assert (tmp_path / "file").read_bytes() == b"a" * size + b"b" * 10 + b"c" * 10


def test_a_draft_of_a_full_disk_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = LocalOutput(tmp_path).open("file")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(draft, "_to_disk", full)
    draft.write(b"small")
    with pytest.raises(OSError, match="No space left"):
        draft.publish()
    draft.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(OSError, match="file"):
        LocalOutput(tmp_path / "file").open("index/x")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("uri", "root"), [("/a/b", "/a/b"), ("file:///a/b%20c", "/a/b c"), (Path("/p"), "/p")], ids=repr
)
def test_addresses(uri: str | Path, root: str) -> None:
    assert open_output(uri).uri == root


@pytest.mark.parametrize(
    ("uri", "match"),
    [
        ("", r"^The path of a trial must not be empty\.$"),
        ("gs://b/t", r"^Trials at gs:// addresses cannot be written yet, got 'gs://b/t'\. Copy"),
    ],
)
def test_addresses_that_cannot_be_written(uri: str, match: str) -> None:
    with pytest.raises(SMDebugValueError, match=match):
        open_output(uri)
