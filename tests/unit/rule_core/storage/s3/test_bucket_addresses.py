"""What addresses and keys S3 can have, and what is said of others."""

import pytest
import s3_objects

from rule_core.exceptions import SMDebugValueError
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.s3.bucket import Bucket, parse_s3
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import is_s3, open_output, open_store


@pytest.mark.parametrize(
    ("uri", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://bucket/a/b", "bucket", "a/b/"),
        (" S3://bucket/a/ ", "bucket", "a/"),
        ("s3a://bucket/a", "bucket", "a/"),
        ("s3n://bucket/a", "bucket", "a/"),
        ("s3://bucket//a//b/", "bucket", "/a//b/"),
        ("s3://Bucket_Name/a", "Bucket_Name", "a/"),
        ("s3://my.bucket-2/a b/ü%20+&?x#y", "my.bucket-2", "a b/ü%20+&?x#y/"),
        ("s3://bucket/a...b/.c", "bucket", "a...b/.c/"),
    ],
)
def test_addresses(uri: str, bucket: str, prefix: str) -> None:
    assert is_s3(uri)
    assert parse_s3(uri) == (bucket, prefix)


@pytest.mark.parametrize("uri", ["/s3/x", "s3:/x", "s3x://bucket", "file://s3://x", "s3"])
def test_what_is_no_address_of_s3(uri: str) -> None:
    assert not is_s3(uri)


@pytest.mark.parametrize(
    ("uri", "match"),
    [
        ("s3://", r"^An S3 address must be s3://bucket/prefix, got 's3://'\.$"),
        ("s3:///x", r"^An S3 address must be s3://bucket/prefix, got 's3:///x'\.$"),
        ("s3://b/t", r"^A bucket's name must be 3 to 255 letters.*, got 'b' in 's3://b/t'\.$"),
        ("s3://bücket/t", r"^A bucket's name must be .*, got 'bücket' in"),
        ("s3://arn:aws:s3:::x/t", r"^A bucket's name must be .*, got 'arn:aws:s3:::x' in"),
        ("s3://user:key@bucket/t", r"^A bucket's name must be "),
        ("s3://bucket/a/../b", r"^An S3 address must be Unicode without '\.' and '\.\.' as parts"),
        ("s3://bucket/./b", r"^An S3 address must be Unicode without"),
        ("s3://bucket/\udcff", r"^An S3 address must be Unicode without .* got 's3://bucket/\\udc"),
    ],
)
def test_addresses_that_s3_cannot_have(uri: str, match: str) -> None:
    for opened in (open_store, open_output):
        with pytest.raises(SMDebugValueError, match=match):
            opened(uri)


@pytest.mark.parametrize("key", ["../x", "a/./x", "a\udcff"])
def test_keys_that_s3_cannot_have(key: str) -> None:
    with pytest.raises(
        StorageUnavailableError, match=r"^Cannot read .*: S3 does not support this key"
    ):
        open_store("s3://bucket/t").read(key)
    with pytest.raises(
        OSError, match=r"^Cannot write 's3://bucket/t/.*: S3 does not support this key"
    ):
        open_output("s3://bucket/t").open(key).publish()


@pytest.mark.parametrize("prefix", ["", "/a//b/", "a b/ü%20+&?x#y=", "*[!]'()~"])
def test_prefixes_and_keys_of_every_kind_are_found_as_they_are(
    aws_endpoint: str, prefix: str
) -> None:
    client = s3_objects.make_bucket(aws_endpoint)
    uri = f"s3://bucket/{prefix}"
    store = S3Store(Bucket(uri, client))
    root = store.bucket.prefix
    files = {f"index/{name}": name.encode() for name in ("%2F+x", "a b", "z?", "ü#", "\U0001f600")}
    s3_objects.put(aws_endpoint, root, files)
    assert store.uri == uri.strip()
    assert {key: bytes(store.read(key)) for key in store.list_keys("index/")} == files
    assert list(store.list_keys("", start_after="index/a b")) == sorted(files)[2:]


def test_a_forked_process_gets_connections_of_its_own(
    aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket("s3://bucket/t")
    assert bucket.endpoint == aws_endpoint
    ours = bucket.client
    assert bucket.client is ours
    monkeypatch.setattr("rule_core.storage.s3.bucket.os.getpid", lambda: 1)
    theirs = bucket.client
    assert (theirs is ours, bucket.client is theirs) == (False, True)
