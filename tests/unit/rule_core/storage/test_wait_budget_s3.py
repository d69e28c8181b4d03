"""S3 read over networks that tear, hang and refuse, through boto3 and HTTP."""

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import (
    SLOW_DOWN,
    Fault,
    FaultyS3,
    answers,
    flips_a_bit,
    hangs,
    loses,
    pages_of,
    passes,
    resets,
    says,
    shortened,
    torn,
)

from rule_core.storage import aws as aws_clients
from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store

CONTENT = bytes(range(200)) * 50
PASSING = [
    pytest.param(SLOW_DOWN, id="throttled"),
    pytest.param(says(500, "InternalError"), id="internal"),
    pytest.param(says(400, "RequestTimeout"), id="timeout"),
    pytest.param(says(429, "Whatever"), id="too-many"),
    pytest.param(answers(502, b"<html>Bad gateway</html>"), id="gateway"),
    pytest.param(answers(503, b""), id="nothing"),
    pytest.param(resets, id="reset"),
    pytest.param(loses, id="lost"),
    pytest.param(torn(0), id="torn-at-once"),
    pytest.param(torn(50), id="torn"),
]


@pytest.fixture(autouse=True)
def _content(faulty: FaultyS3, aws_endpoint: str) -> None:
    s3_objects.put(aws_endpoint, "t/", {"x": CONTENT})
    faulty.forget()


@pytest.mark.parametrize("byte_range", [None, ByteRange(10, 5000)], ids=["whole", "range"])
@pytest.mark.parametrize("fault", PASSING)
def test_a_read_is_whole_or_made_again(
    faulty: FaultyS3, store: RetryingStore, fault: Fault, byte_range: ByteRange | None
) -> None:
    faulty.due = [fault, fault]
    expected = CONTENT[slice(*byte_range)] if byte_range else CONTENT
    assert bytes(store.read("x", byte_range)) == expected
    assert faulty.verbs() == ["GET /bucket/t/x"] * 3


def test_fewer_bytes_than_the_range_has_are_not_taken_for_it(
    faulty: FaultyS3, store: RetryingStore
) -> None:
    faulty.due = [shortened(70)]
    assert bytes(store.read("x", ByteRange(10, 500))) == CONTENT[10:500]
    assert len(faulty.asked) == 2


def test_a_body_that_does_not_fit_its_checksum_is_read_again(
    faulty: FaultyS3, store: RetryingStore
) -> None:
    faulty.due = [flips_a_bit]
    assert bytes(store.read("x")) == CONTENT
    assert len(faulty.asked) == 2


def test_a_server_that_knows_no_ranges(faulty: FaultyS3, store: RetryingStore) -> None:
    for wanted in (ByteRange(10, 500), ByteRange(9990, 20000), ByteRange(20000, 20001)):
        faulty.due = [answers(200, CONTENT)]
        assert bytes(store.read("x", wanted)) == CONTENT[slice(*wanted)]
    assert len(faulty.asked) == 3


def test_a_range_that_is_none(faulty: FaultyS3, store: RetryingStore) -> None:
    faulty.due = [answers(206, b"abc", Content_Range="bytes 0-2/*")]
    with pytest.raises(StorageUnavailableError, match=r"an invalid range, got 'bytes 0-2/\*'"):
        store.read("x", ByteRange(0, 3))


def test_an_object_that_is_replaced_between_two_tries_is_of_one_piece(
    faulty: FaultyS3, store: RetryingStore, aws_endpoint: str
) -> None:
    def replaced(handler: object) -> None:
        torn(5000)(handler)  # type: ignore[arg-type] # as it is called
        s3_objects.put(aws_endpoint, "t/", {"x": b"new" * 1000})

    faulty.due = [replaced]
    assert bytes(store.read("x")) == b"new" * 1000


def test_an_object_that_grows_is_read_as_far_as_it_was_asked_for(
    store: RetryingStore, aws_endpoint: str
) -> None:
    assert bytes(store.read("x", ByteRange(9990, 20000))) == CONTENT[9990:]
    s3_objects.put(aws_endpoint, "t/", {"x": CONTENT * 2})
    assert bytes(store.read("x", ByteRange(9990, 20000))) == (CONTENT * 2)[9990:20000]


def test_a_server_that_hangs(faulty: FaultyS3) -> None:
    client = aws_clients.client("s3", read_timeout=0.3)
    store = RetryingStore(S3Store(Bucket("s3://bucket/t", client)), PatientClock())
    faulty.due = [hangs]
    assert bytes(store.read("x")) == CONTENT
    store = RetryingStore(store.store, PatientClock(), 0)
    faulty.due = [hangs]
    host = faulty.endpoint.removeprefix("http://")
    with pytest.raises(StorageUnavailableError) as raised:
        list(store.list_keys(""))
    assert raised.value.reason == f"endpoint '{host}' did not respond in time"


def test_what_stays_busy_is_reported_in_the_end(faulty: FaultyS3, store: RetryingStore) -> None:
    faulty.due = [SLOW_DOWN] * 99
    with pytest.raises(StorageUnavailableError) as raised:
        store.read("x")
    assert str(raised.value) == (
        "Cannot read 'x': SlowDown: Please reduce your request rate (tried for 30 s)."
    )
    assert 8 <= len(faulty.asked) <= 25


@pytest.mark.parametrize("fault", PASSING)
def test_a_listing_gives_each_key_once_and_goes_on_after_the_last(
    faulty: FaultyS3, store: RetryingStore, aws_endpoint: str, fault: Fault
) -> None:
    s3_objects.put(aws_endpoint, "t/index/", dict.fromkeys("abcde", b""))
    faulty.forget()
    faulty.due = [pages_of(2), fault, fault, pages_of(2), passes]
    keys = store.list_keys("index/")
    first = next(keys)
    s3_objects.put(aws_endpoint, "t/index/", {"a-late": b"", "f": b""})
    assert [first, *keys] == [f"index/{name}" for name in "abcdef"]
    after = [path.partition("start-after=")[2] for _, path, _ in faulty.asked]
    assert [bool(one) for one in after] == [False, False, True, True, True]
    assert {one.partition("&")[0] for one in after[2:]} == {"t%2Findex%2Fb"}


def test_reading_only_gets(faulty: FaultyS3, store: RetryingStore) -> None:
    list(store.list_keys(""))
    store.read("x", ByteRange(0, 0))
    store.read("x")
    assert [one[0] for one in faulty.asked] == ["GET"] * 3
