"""Rule files in S3: fetched whole and alone, or refused in one sentence."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faulty_s3
import pytest
import s3_objects

from rule_runner.engine.invoker_factory import _make, _WorkerRequest
from rule_runner.errors import RuleSourceError
from rule_runner.loading.loader import load_from, load_source, rule_source
from rule_runner.loading.private_folders import remove_private_folders
from rule_runner.loading.s3_fetch import Fetched, fetch_rule_file
from rule_runner.results.schema import RuleSource

RULE = b"""
from smdebug.rules import Rule
class Mine(Rule):
    def invoke_at_step(self, step):
        return False
"""
URI = "s3://bucket/rules/mine.py"


@pytest.fixture
def bucket(aws_endpoint: str) -> Iterator[Any]:
    yield s3_objects.make_bucket(aws_endpoint)
    remove_private_folders()


@pytest.fixture
def faulty(
    bucket: Any, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[faulty_s3.FaultyS3]:
    """Return a server in front of S3 that spoils the answers it is told to, the rule file in it."""
    bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE)
    with faulty_s3.serving(aws_endpoint) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


def test_a_file_lies_alone_in_a_folder_of_ours_until_the_process_ends(bucket: Any) -> None:
    bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE)
    bucket.put_object(Bucket="bucket", Key="rules/helper.py", Body=b"")
    fetched = fetch_rule_file(f" {URI}")
    folder = fetched.path.parent
    assert (fetched.uri, fetched.path.read_bytes()) == (URI, RULE)
    assert [one.name for one in folder.iterdir()] == ["mine.py"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    remove_private_folders()
    assert not folder.exists()


def test_the_result_says_which_version_was_judged(bucket: Any) -> None:
    on = {"Status": "Enabled"}
    bucket.put_bucket_versioning(Bucket="bucket", VersioningConfiguration=on)
    old = bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=b"old")
    new = bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE)
    assert old["VersionId"] != new["VersionId"]
    loaded = load_from(URI)
    assert rule_source(loaded) == RuleSource(
        location=URI,
        sha256=loaded.source_sha256,
        version_id=new["VersionId"],
        etag=new["ETag"].strip('"'),
    )


def test_without_versions_there_is_none(bucket: Any) -> None:
    put = bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE)
    fetched = fetch_rule_file(URI)
    assert (fetched.version_id, fetched.etag) == (None, put["ETag"].strip('"'))


def test_a_file_of_this_machine_has_its_path_only(tmp_path: Path) -> None:
    path = tmp_path / "my mine.py"
    path.write_bytes(RULE)
    loaded = load_from(path.as_uri())
    assert (loaded.source, loaded.fetched) == (path, None)
    expected = RuleSource(location=str(path), sha256=loaded.source_sha256)
    assert rule_source(load_from(str(path))) == rule_source(loaded) == expected


def test_the_same_content_has_the_same_hash_wherever_it_lies(bucket: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(RULE)
    for key in ("a/mine.py", "b/mine.py"):
        bucket.put_object(Bucket="bucket", Key=key, Body=RULE)
    places = [str(tmp_path / "mine.py"), "s3://bucket/a/mine.py", "s3a://bucket/b/mine.py"]
    assert len({load_from(place).source_sha256 for place in places}) == 1


@pytest.mark.parametrize("name", ["mine", "ein name.py", ".py", "é" * 200, "a:b.py", "100%.py"])
def test_a_file_may_have_any_name(bucket: Any, name: str) -> None:
    bucket.put_object(Bucket="bucket", Key=name, Body=RULE)
    assert load_from(f"s3://bucket/{name}").name == "Mine"


def test_another_process_loads_the_same_file(bucket: Any) -> None:
    bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE)
    fetched = fetch_rule_file(URI)
    bucket.delete_object(Bucket="bucket", Key="rules/mine.py")
    request = _WorkerRequest("Nope", fetched, {}, (), "")
    with pytest.raises(RuleSourceError, match=rf"^No class 'Nope' in {URI}\. "):
        _make(request)


REFUSED = [
    ("", b"", r"Rule file s3://bucket/rules/mine\.py is empty\."),
    ("", b"x = = 1", r"Rule file s3://bucket/rules/mine\.py does not parse: line 1: "),
    ("", b"\xff\xfe", r"Rule file s3://bucket/rules/mine\.py is not UTF-8 text: byte 0xff "),
    ("", b"x = 1", r"No class in s3://bucket/rules/mine\.py derives from smdebug\.rules\.Rule\."),
    (
        "",
        b"import helper",
        r"No class in s3://bucket/rules/mine\.py derives from smdebug\.rules\.Rule\.",
    ),
    (
        "",
        b"import helper" + RULE,
        (
            r"Rule file s3://bucket/rules/mine\.py raised ModuleNotFoundError at line 1 while it "
            r"is loaded: No module named 'helper'\. "
            r"Only this file was fetched from S3, not its folder\.$"
        ),
    ),
    (
        "",
        b"#" * (1 << 20) + b"#",
        (
            r"Rule file s3://bucket/rules/mine\.py is too large: the limit is 1,048,576 "
            r"bytes, got 1,048,577\. Give the address of one Python file\.$"
        ),
    ),
    ("s3://bucket/rules/no.py", b"", r"Rule file s3://bucket/rules/no\.py does not exist\.$"),
    (
        "s3://bucket/rules/",
        b"",
        (
            r"Rule file address s3://bucket/rules/ names no file\. Give the address of one Python "
            r"file, such as s3://bucket/rules/my_rule\.py\.$"
        ),
    ),
    ("s3://bucket", b"", r"Rule file address s3://bucket names no file\."),
    ("s3://bucket/", b"", r"Rule file address s3://bucket/ names no file\."),
    (
        "s3://nowhere/mine.py",
        b"",
        r"Rule file s3://nowhere/mine\.py cannot be fetched: bucket 'nowhere' does not exist\.",
    ),
    ("s3://b/mine.py", b"", r"A bucket's name must be 3 to 255 letters, .*got 'b' in 's3://b'\."),
    (
        "https://bucket/mine.py",
        b"",
        (
            r"Rule files at https:// addresses cannot be fetched, got 'https://bucket/mine\.py'\. "
            r"Give a path, or an address in S3: s3://bucket/rules/my_rule\.py\.$"
        ),
    ),
]


@pytest.mark.parametrize(("place", "content", "sentence"), REFUSED)
def test_what_cannot_be_loaded_is_one_sentence(
    bucket: Any, place: str, content: bytes, sentence: str
) -> None:
    bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=content)
    with pytest.raises(RuleSourceError, match=f"^{sentence}"):
        load_from(place or URI)


def test_the_largest_file_is_fetched(bucket: Any) -> None:
    bucket.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE + b"#" * 900)
    fetched = fetch_rule_file(URI, limit=len(RULE) + 900)
    assert fetched.path.stat().st_size == len(RULE) + 900


def test_a_file_of_a_gigabyte_is_refused_before_it_is_read(faulty: faulty_s3.FaultyS3) -> None:
    def promises(handler: faulty_s3.Handler) -> None:
        handler.send(200, [("Content-Length", str(1 << 30))], b"")
        handler.close_connection = True

    faulty.due = [promises]
    sentence = r"is too large: the limit is 1,048,576 bytes, got 1,073,741,824\."
    with pytest.raises(RuleSourceError, match=sentence):
        fetch_rule_file(URI)


def test_a_server_that_says_no_size_is_read_to_the_limit_only(faulty: faulty_s3.FaultyS3) -> None:
    def pours(handler: faulty_s3.Handler) -> None:
        handler.send(200, [("Connection", "close")], b"#" * (1 << 17))
        handler.close_connection = True

    faulty.due = [pours]
    with pytest.raises(RuleSourceError, match=r"the limit is 1,000 bytes, got more\."):
        fetch_rule_file(URI, limit=1000)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faulty_s3.SLOW_DOWN, id="throttled"),
        pytest.param(faulty_s3.resets, id="reset"),
        pytest.param(faulty_s3.torn(10), id="torn"),
    ],
)
def test_what_passes_is_asked_for_again(
    faulty: faulty_s3.FaultyS3, fault: faulty_s3.Fault, clock: Any
) -> None:
    faulty.due = [fault, fault]
    fetched = fetch_rule_file(URI, clock=clock)
    assert (fetched.path.read_bytes(), len(faulty.asked), len(clock.sleeps)) == (RULE, 3, 2)


def test_what_does_not_pass_in_time_is_one_sentence(faulty: faulty_s3.FaultyS3, clock: Any) -> None:
    faulty.due = [faulty_s3.SLOW_DOWN] * 20
    sentence = r"mine\.py cannot be fetched: SlowDown: Please reduce your request rate\.$"
    with pytest.raises(RuleSourceError, match=sentence):
        fetch_rule_file(URI, deadline_s=3, clock=clock)
    assert sum(clock.sleeps) == pytest.approx(3)


def test_a_server_that_drips_is_given_up(faulty: faulty_s3.FaultyS3, clock: Any) -> None:
    assert faulty.due == []
    read = clock.monotonic

    def later() -> float:
        clock.now += 1
        return float(read())

    clock.monotonic = later
    with pytest.raises(RuleSourceError, match=r"only [0-9]+ bytes of it arrived in time\.$"):
        fetch_rule_file(URI, deadline_s=0.5, clock=clock)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "AccessDenied",
            (
                "AccessDenied. The role needs s3:GetObject on bucket/rules/*, and s3:ListBucket, "
                "without which an absent object is denied too."
            ),
        ),
        ("InvalidAccessKeyId", "InvalidAccessKeyId: the AWS access key is unknown. "),
    ],
)
def test_what_is_denied_is_not_asked_for_again(
    faulty: faulty_s3.FaultyS3, clock: Any, code: str, said: str
) -> None:
    faulty.due = [faulty_s3.says(403, code)]
    with pytest.raises(RuleSourceError, match=re.escape(f"{URI} cannot be fetched: {said}")):
        fetch_rule_file(URI, clock=clock)
    assert (len(faulty.asked), clock.sleeps) == (1, [])


def test_without_credentials_nobody_is_asked(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    del bucket
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(RuleSourceError, match=r"cannot be fetched: no AWS credentials were found"):
        fetch_rule_file(URI)


def test_the_requester_pays_if_asked(
    faulty: faulty_s3.FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    fetch_rule_file(URI)
    assert faulty.asked[0][2]["x-amz-request-payer"] == "requester"
    monkeypatch.setenv("AWS_REQUEST_PAYER", "me")
    with pytest.raises(RuleSourceError, match=r"AWS_REQUEST_PAYER must be 'requester', got 'me'\."):
        fetch_rule_file(URI)


def test_names_in_a_terminal_are_harmless(bucket: Any) -> None:
    del bucket
    with pytest.raises(RuleSourceError, match=r"^Rule file 's3://bucket/\\x1b\[31m\.py' does not"):
        fetch_rule_file("s3://bucket/\x1b[31m.py")


def test_a_fetched_file_needs_no_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "rule.py").write_bytes(RULE)
    fetched = Fetched("s3://b/x", tmp_path / "rule.py", None, None)
    assert (load_source(fetched).fetched, load_source(fetched).name) == (fetched, "Mine")
