"""How the environment says that S3 is read and written."""

from pathlib import Path

import pytest
from faulty_s3 import FaultyS3

from rule_core.exceptions import SMDebugValueError
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.caching_store import CachingStore
from rule_core.storage.s3.output import S3Output
from rule_core.storage.s3.settings import S3Settings, open_s3_store
from rule_core.storage.s3.store import S3Store
from rule_core.storage.uri import open_output, open_store


def test_an_environment_that_says_nothing() -> None:
    assert S3Settings.from_environment({"RULE_RUNNER_CACHE": " "}) == S3Settings(
        30.0, requester_pays=False, cache=None, cache_bytes=10 * 2**30
    )


def test_an_environment_that_says_all() -> None:
    environment = {
        "RULE_RUNNER_S3_DEADLINE": " 2.5 ",
        "AWS_REQUEST_PAYER": "requester",
        "RULE_RUNNER_CACHE": "/var/cache/mine",
        "RULE_RUNNER_CACHE_BYTES": "500MB",
    }
    assert S3Settings.from_environment(environment) == S3Settings(
        2.5, requester_pays=True, cache=Path("/var/cache/mine"), cache_bytes=500_000_000
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("0", 0), ("7", 7), ("1k", 1000), ("1 KiB", 1024), ("2M", 2_000_000)),
        *(("10GiB", 10 * 2**30), ("3gb", 3 * 10**9), ("1TiB", 2**40)),
    ],
)
def test_sizes(text: str, size: int) -> None:
    result = S3Settings.from_environment({"RULE_RUNNER_CACHE_BYTES": text})
    assert result.cache_bytes == size


@pytest.mark.parametrize(
    ("name", "text", "rest"),
    [
        ("RULE_RUNNER_S3_DEADLINE", "-1", "be a number of seconds >= 0, got '-1'."),
        ("RULE_RUNNER_S3_DEADLINE", "inf", "be a number of seconds >= 0, got 'inf'."),
        ("RULE_RUNNER_S3_DEADLINE", "soon", "be a number of seconds >= 0, got 'soon'."),
        ("RULE_RUNNER_CACHE_BYTES", "much", "be a size such as 10GiB, got 'much'."),
        ("RULE_RUNNER_CACHE_BYTES", "-1", "be a size such as 10GiB, got '-1'."),
        ("RULE_RUNNER_CACHE_BYTES", "1.5GB", "be a size such as 10GiB, got '1.5GB'."),
        ("AWS_REQUEST_PAYER", "me", "be 'requester', got 'me'."),
    ],
)
def test_what_cannot_be_understood(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, rest: str
) -> None:
    monkeypatch.setenv(name, text)
    for opened in (open_store, open_output):
        with pytest.raises(SMDebugValueError) as raised:
            opened("s3://bucket/t")
        assert str(raised.value) == f"The environment's {name} must {rest}"


def test_stores_are_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "7")
    store, output = open_store("s3://bucket/t"), open_output("s3a://bucket/t")
    assert isinstance(store, RetryingStore)
    assert isinstance(output, S3Output)
    assert (store.deadline_s, output.deadline_s) == (7.0, 7.0)
    assert isinstance(store.store, S3Store)
    assert store.costs.parallel > 1


def test_a_cache_is_there_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_CACHE", str(tmp_path / "cache"))
    store = open_store("s3://bucket/t")
    assert isinstance(store, RetryingStore)
    assert isinstance(store.store, CachingStore)
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_s3_store("s3://bucket/t", S3Settings()).store, S3Store)


def test_who_pays_is_sent_with_each_call(faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    output = open_output("s3://bucket/t")
    draft = output.open("x")
    draft.write(b"1" * ((8 << 20) + 1))
    draft.publish()
    output.open("y").publish()
    list(output.list_keys(""))
    output.read("x")
    output.remove("x")
    assert len(faulty.asked) == 8
    assert {headers.get("x-amz-request-payer") for _, _, headers in faulty.asked} == {"requester"}
