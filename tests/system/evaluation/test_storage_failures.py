"""Evaluations over stores that refuse, go away and come back; and what one costs over HTTP."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluating
import faulty_s3
import numpy as np
import pytest
import rawtrial
import s3_objects
from evaluating import END, Script, WoundClock, configured, rule_job
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore

from rule_core.sources.address import address_of
from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_runner.engine.invocation import InvocationOutcome
from rule_runner.engine.invoker_factory import _make, _WorkerRequest
from rule_runner.engine.observer import Observer
from rule_runner.engine.outcome import exit_code
from rule_runner.engine.runner import Runner
from rule_runner.loading.trials import is_there, open_trial
from rule_runner.results.schema import RuleResult
from smdebug.rules import Rule

SLOW = StorageUnavailableError("index/", "SlowDown (tried for 30 s)", transient=True)
DENIED = StorageUnavailableError("index/", "AccessDenied")
PATTERNS = {"losses": ["loss"], "gradients": ["^gradient"]}


class Reads(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


class Store(CountingStore):
    """Raises what a test sets, of listings, and of the first reads of some keys."""

    error: StorageUnavailableError | None = None
    failing: dict[str, int] = {}

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        left = self.failing.get(key, 0)
        if left:
            self.failing = {**self.failing, key: left - 1}
            raise StorageUnavailableError(key, "SlowDown", transient=True)
        return super().read(key, byte_range)

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        if self.error is not None:
            raise self.error
        return super().list_keys(prefix, start_after=start_after)


class Hears(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def waiting(self, text: str, seconds: float) -> None:
        del seconds
        self.heard.append(text)


def losses(*steps: int, ended: bool = True) -> dict[str, bytes]:
    values = {step: {"loss": np.full(1, 1, "f4")} for step in steps}
    return evaluating.trial(values, {"losses": ["loss"]}, ended=ended)


class Evaluated:
    """An evaluation of one rule over remote trials that break and are mended."""

    def __init__(self, folder: Path, *others: str, **more: Any) -> None:
        self.files = losses(0, 1, 2, ended=False)
        self.store = Store(MemoryStore(self.files, "s3://bucket/t"), REMOTE)
        self.other = Store(MemoryStore(losses(0, 1, 2, 3), "s3://bucket/o"), REMOTE)
        self.clock = WoundClock()
        self.script = Script(self.clock)
        self.hears = Hears()
        config = configured(folder / "out", [Reads], "/t", other_trials=others, **more)
        stores = {"/t": self.store, "/o": self.other}
        self.runner = evaluating.runner(config, stores, self.script, observer=self.hears)

    def run(self) -> tuple[RuleResult, int]:
        evaluated = self.runner.run()
        (result,) = evaluated.result.rules
        return result, exit_code(evaluated, fail_on=None)


def test_store_that_refuses_in_the_middle_is_the_end_at_once(tmp_path: Path) -> None:
    one = Evaluated(tmp_path)

    def refuse() -> None:
        one.store.error = DENIED

    one.script.steps = [*[int] * 20, refuse]
    result, code = one.run()
    assert (result.status, code, result.coverage.judged) == ("Error", 1, 3)
    assert result.status_details == "ClientError: Cannot read 'index/': AccessDenied."
    assert sum(one.script.waits) <= 60


@pytest.mark.parametrize("wait", [True, False])
def test_other_trial_that_refuses_is_the_end_at_once(tmp_path: Path, wait: bool) -> None:
    one = Evaluated(tmp_path, "/o", wait=wait)
    one.other.error = DENIED
    result, code = one.run()
    assert (result.status_details, code) == ("ClientError: Cannot read 'index/': AccessDenied.", 1)
    assert one.script.waits == []


def test_store_that_goes_away_for_minutes_costs_nothing(tmp_path: Path) -> None:
    one = Evaluated(tmp_path)

    def leave() -> None:
        one.store.error = SLOW

    def come_back() -> None:
        one.store.error = None
        one.files.update(losses(3, 4))

    one.script.steps = [*[int] * 20, leave, *[int] * 1000, come_back]
    result, code = one.run()
    assert (result.outcome, result.coverage.judged, code) == ("NoIssuesFound", 5, 0)
    assert result.notes == []
    text = "the storage of trial 's3://bucket/t': Cannot read 'index/': SlowDown (tried for 30 s)."
    assert text in one.hears.heard


def test_store_that_stays_away_is_waited_for_as_long_as_for_news(tmp_path: Path) -> None:
    one = Evaluated(tmp_path, idle_timeout=300.0)

    def leave() -> None:
        one.store.error = SLOW

    one.script.steps = [*[int] * 20, leave]
    result, code = one.run()
    assert (result.status, code) == ("Stopped", 124)
    assert "--idle-timeout" in (result.status_details or "")
    assert "Cannot read 'index/': SlowDown (tried for 30 s)." in result.notes


def test_trial_whose_store_refuses_from_the_beginning_is_no_evaluation(tmp_path: Path) -> None:
    store = Store(MemoryStore({}, "s3://bucket/t"), REMOTE)
    store.error = DENIED
    with pytest.raises(Exception, match=r"^Trial '/t' cannot be read: AccessDenied\.$"):
        evaluating.runner(configured(tmp_path / "out", [Reads], "/t"), {"/t": store})


def test_trial_of_which_there_is_nothing_is_missing(tmp_path: Path) -> None:
    store = Store(MemoryStore({}, "s3://bucket/t"), REMOTE)
    with pytest.raises(Exception, match=r"^Trial '/t' does not exist\.$"):
        evaluating.runner(configured(tmp_path / "out", [Reads], "/t"), {"/t": store})


# -- rules in processes of their own -------------------------------------------------------------


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Store, dict[str, bytes]]:
    """Return what judges in the other process, and its store."""
    files = losses(0, 1, ended=False)
    store = Store(MemoryStore(files, "s3://bucket/t"), REMOTE)
    monkeypatch.setattr("rule_runner.loading.trials.open_store", lambda _: store)
    request = _WorkerRequest("ExplodingTensor", None, {}, (("s3://bucket/t", "t"),), "")
    return _make(request), store, files


def test_rule_of_another_process_waits_for_a_store_that_may_come_back(
    following: tuple[Any, Store, dict[str, bytes]],
) -> None:
    made, store, files = following
    assert made.judge(0).did is InvocationOutcome.CLEAR
    files |= losses(2)
    store.error = SLOW
    found = made.judge(2)
    assert (found.did, found.reason, found.notes) == (
        InvocationOutcome.WAITS,
        "unreadable",
        (str(SLOW),),
    )
    assert made.wait(2) is None
    store.error = None
    assert made.judge(2).did is InvocationOutcome.CLEAR


def test_rule_of_another_process_ends_with_a_store_that_refuses(
    following: tuple[Any, Store, dict[str, bytes]],
) -> None:
    made, store, _ = following
    store.error = DENIED
    found = made.judge(0)
    assert (found.did, found.reason, found.ends) == (InvocationOutcome.FAILED, str(DENIED), True)


def test_rule_of_another_process_tries_once_more_what_it_could_not_read(
    following: tuple[Any, Store, dict[str, bytes]],
) -> None:
    made, store, _ = following
    store.failing = {rawtrial.index_key(1): 4}
    assert [made.judge(step).did for step in (0, 1)] == [
        InvocationOutcome.CLEAR,
        InvocationOutcome.CLEAR,
    ]


def test_rule_of_another_process_says_once_which_step_is_unreadable(
    following: tuple[Any, Store, dict[str, bytes]],
) -> None:
    made, _, files = following
    del files[rawtrial.event_key(1)]
    assert made.judge(0).notes == ()
    found = made.judge(1)
    assert (found.did, found.reason) == (InvocationOutcome.SKIPPED, "unreadable")
    assert [note.partition(".")[0] for note in found.notes] == [
        "Step 1 of worker 'worker_0' is unreadable"
    ]
    assert made.judge(1).notes == ()


# -- over HTTP -----------------------------------------------------------------------------------


@pytest.fixture
def server(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[faulty_s3.FaultyS3]:
    """Return a server in front of S3, which remembers what it is asked."""
    s3_objects.make_bucket(aws_endpoint)
    with faulty_s3.serving(aws_endpoint) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.endpoint)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", found.endpoint)
        yield found


@pytest.mark.parametrize("rules", [1, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_each_file_is_asked_for_once(
    server: faulty_s3.FaultyS3, aws_endpoint: str, tmp_path: Path, rules: int, workers: int
) -> None:
    files = {END: b""}
    for worker in [f"worker_{number}" for number in range(workers)]:
        files[rawtrial.collections_key(worker)] = rawtrial.collections(PATTERNS, workers)
        for step in range(20):
            values = {name: np.ones((2, 2), "f4") for name in ("loss", "gradient/a", "weight/a")}
            files |= rawtrial.step_files(step, values, worker=worker)
    s3_objects.put(aws_endpoint, "runs/a/", files)
    names = ["VanishingGradient", "ExplodingTensor", "UnchangedTensor"][:rules]
    parameters = {"UnchangedTensor": {"tensor_regex": "weight"}}
    jobs = [rule_job(name, parameters=parameters.get(name, {})) for name in names]
    config = configured(tmp_path / "out", jobs, "s3://bucket/runs/a", keep_going=True)
    found = Runner(config).run().result
    assert {one.coverage.known for one in found.rules} == {20}
    asked = Counter(server.verbs())
    once = {key for key in files if key.startswith(("index/", "events/"))}
    assert {key: asked[f"GET /bucket/runs/a/{key}"] for key in once} == dict.fromkeys(once, 1)
    assert asked["HEAD /bucket"] == 0
    listings = sum("list-type=2" in path for _, path, _ in server.asked)
    assert listings <= 11


def test_trial_that_is_denied_is_one_sentence(server: faulty_s3.FaultyS3) -> None:
    server.always["list-type=2"] = faulty_s3.says(403, "AccessDenied")
    with pytest.raises(Exception, match=r"^Trial 's3://bucket/x' cannot be read: AccessDenied"):
        is_there(open_trial("s3://bucket/x"))


def test_address_is_known_however_it_is_written() -> None:
    spellings = ["s3://bucket/a/b", " s3://bucket/a/b/", "S3A://bucket/a/b/"]
    assert {address_of(one).canonical for one in spellings} == {"s3://bucket/a/b"}
    assert address_of("s3://bucket").canonical == "s3://bucket"
