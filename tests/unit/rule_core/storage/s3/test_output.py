"""Objects written to S3: in parts, whole or not at all, with patience, in little memory."""

import logging
from collections.abc import Iterator
from typing import Any

import aws_server as aws_server_
import faulty_s3
import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import SLOW_DOWN, Fault, FaultyS3, answers, loses, passes, resets, says, torn

from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.output import PART, S3Output, S3PendingFile

PARTS = 5 << 10
SIZE = 2 * PARTS + 7
CONTENT = bytes(range(256)) * (SIZE // 256 + 1)
CREATE, FIRST, SECOND, LAST, COMPLETE = range(5)
GONE = says(404, "NoSuchUpload", "The upload is not there.")


@pytest.fixture(scope="module")
def aws_server() -> Iterator[str]:
    """Return a server that takes small parts, as S3 itself would not."""
    with aws_server_.serving(S3_UPLOAD_PART_MIN_SIZE=str(PARTS)) as endpoint:
        yield endpoint


@pytest.fixture
def output(bucket: Bucket) -> S3Output:
    """Return an output with small parts."""
    return S3Output(bucket, PatientClock(), part=PARTS)


def written(output: S3Output, size: int = SIZE) -> None:
    draft = output.open("x")
    draft.write(memoryview(CONTENT)[: size // 2], memoryview(CONTENT)[size // 2 : size])
    draft.publish()


def lost_body(handler: faulty_s3.Handler) -> None:
    """Have S3 do what is asked, and lose the body of its answer."""
    torn(0)(handler)


@pytest.mark.parametrize(
    ("size", "requests"),
    [(0, 1), (1, 1), (PARTS, 1), (PARTS + 1, 4), (2 * PARTS, 4), (SIZE, 5)],
)
def test_what_is_larger_than_a_part_goes_in_parts(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str, size: int, requests: int
) -> None:
    written(output, size)
    assert len(faulty.asked) == requests
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:size]}
    assert s3_objects.uploads(aws_endpoint) == []


def test_nothing_is_visible_before_it_is_whole(output: S3Output, aws_endpoint: str) -> None:
    s3_objects.put(aws_endpoint, "t/", {"x": b"before"})
    draft = output.open("x")
    draft.write(CONTENT[:SIZE])
    assert s3_objects.content(aws_endpoint) == {"t/x": b"before"}
    draft.publish()
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:SIZE]}


@pytest.mark.parametrize(
    "fault", [SLOW_DOWN, resets, loses, lost_body], ids=["busy", "reset", "lost", "torn"]
)
@pytest.mark.parametrize("request_", [FIRST, LAST, COMPLETE])
def test_what_fails_for_a_moment_is_sent_again(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str, fault: Fault, request_: int
) -> None:
    faulty.due = [*[passes] * request_, fault]
    written(output)
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:SIZE]}
    assert s3_objects.uploads(aws_endpoint) == []


@pytest.mark.parametrize("fault", [SLOW_DOWN, resets, loses], ids=["busy", "reset", "lost"])
def test_a_small_object_is_sent_again(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str, fault: Fault
) -> None:
    faulty.due = [fault] * 3
    written(output, 9)
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:9]}
    faulty.due = [fault]
    output.remove("x")
    assert s3_objects.content(aws_endpoint) == {}


def test_an_upload_whose_beginning_was_not_heard_is_begun_again(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str
) -> None:
    faulty.due = [lost_body]
    written(output)
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:SIZE]}


@pytest.mark.parametrize("request_", [CREATE, FIRST, SECOND, LAST, COMPLETE])
def test_what_fails_for_good_leaves_no_parts(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str, request_: int
) -> None:
    faulty.due = [*[passes] * request_, *[SLOW_DOWN] * 99]
    draft = output.open("x")
    with pytest.raises(OSError, match="Cannot write") as raised:  # noqa: PT012 - whichever it is
        draft.write(CONTENT[:SIZE])
        draft.publish()
    assert str(raised.value) == (
        "Cannot write 's3://bucket/t/x': SlowDown: Please reduce your request rate "
        "(tried for 30 s)."
    )
    faulty.due.clear()
    draft.discard()
    draft.discard()
    assert s3_objects.content(aws_endpoint) == {}
    assert s3_objects.uploads(aws_endpoint) == []


def test_an_upload_that_is_gone_is_not_taken_for_an_older_object(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str
) -> None:
    s3_objects.put(aws_endpoint, "t/", {"x": CONTENT[:SIZE]})
    faulty.due = [*[passes] * COMPLETE, GONE]
    with pytest.raises(OSError, match=r"^Cannot write '.*/x': NoSuchUpload: The upload is not"):
        written(output)


def test_an_upload_that_is_gone_with_nothing_in_its_place(
    faulty: FaultyS3, output: S3Output
) -> None:
    faulty.due = [*[passes] * COMPLETE, GONE]
    with pytest.raises(OSError, match=r"^Cannot write '.*/x': NoSuchUpload: "):
        written(output)


def test_completion_that_fails_behind_an_answer_of_200(
    faulty: FaultyS3, output: S3Output, aws_endpoint: str
) -> None:
    late = answers(200, b"<Error><Code>InternalError</Code><Message>Late.</Message></Error>")
    faulty.due = [*[passes] * COMPLETE, late]
    written(output)
    assert s3_objects.content(aws_endpoint) == {"t/x": CONTENT[:SIZE]}


def test_parts_that_stay_are_reported(
    faulty: FaultyS3, output: S3Output, caplog: pytest.LogCaptureFixture
) -> None:
    draft = output.open("x")
    draft.write(CONTENT[:SIZE])
    faulty.due = [says(403, "AccessDenied")]
    draft.discard()
    (said,) = [record for record in caplog.records if record.name == "smdebug.storage"]
    assert said.levelno == logging.WARNING
    assert said.message == (
        "Parts of 'x' remain in the bucket. Cannot write 's3://bucket/t/x': AccessDenied. "
        "The role needs s3:AbortMultipartUpload on bucket/t/*."
    )


def test_the_checksums_of_the_parts_are_given_back(faulty: FaultyS3, output: S3Output) -> None:
    sent: list[bytes] = []

    def completes(handler: faulty_s3.Handler) -> None:
        sent.append(handler.body)
        passes(handler)

    faulty.due = [*[passes] * COMPLETE, completes]
    written(output)
    assert sent[0].count(b"<ChecksumCRC32>") == 3


# -- memory -----------------------------------------------------------------------------------


class Sent:
    """What a draft sends, without S3."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.verbs: list[str] = []

    def __call__(self, verb: str, key: str, **wanted: Any) -> dict[str, Any]:
        assert key == "x"
        self.verbs.append(verb)
        if "Body" in wanted:
            self.bodies.append(bytes(wanted["Body"]))
        return {"UploadId": "1", "ETag": "2"}


def pieces(sizes: list[int]) -> Iterator[bytes]:
    begun = 0
    for size in sizes:
        yield CONTENT[begun : begun + size]
        begun += size


@pytest.mark.parametrize("sizes", [[25], [1] * 25, [10, 10, 5], [9, 2, 14], [0, 20, 0], [3, 40]])
def test_never_more_than_a_part_is_held(sizes: list[int]) -> None:
    sent = Sent()
    draft = S3PendingFile(sent, "x", 10)
    for piece in pieces(sizes):
        draft.write(memoryview(piece))
        assert len(draft._buffer) <= 10
    draft.publish()
    assert b"".join(sent.bodies) == CONTENT[: sum(sizes)]
    assert [len(body) for body in sent.bodies[:-1]] == [10] * (len(sent.bodies) - 1)
    assert 1 <= len(sent.bodies[-1]) <= 10
    assert draft._buffer == b""


def test_the_parts_of_hooks_are_ones_that_s3_takes() -> None:
    assert 5 << 20 <= PART <= 16 << 20
