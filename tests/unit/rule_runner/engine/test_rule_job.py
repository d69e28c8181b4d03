"""RuleJob: what a rule did becomes a status, findings and a file."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import evaluating
import pytest
from evaluating import WoundClock, json_lines, rule_job
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_runner.engine.invocation import InvocationOutcome, InvocationResult
from rule_runner.engine.rule_job import RuleJob
from rule_runner.loading.parameters import bind
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import RuleJobFacts, RuleResult
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import RuleStatus
from rule_runner.steps.tensor_steps import TensorSteps
from smdebug.rules import Rule
from smdebug.rules.extensions import Finding

NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Anything(Rule):
    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError


class Scripted:
    """A scripted invoker."""

    def __init__(self, *invocations: InvocationResult) -> None:
        self.invocations = list(invocations)
        self.asked: list[int] = []
        self.closed = False

    def judge(self, step: int) -> InvocationResult:
        self.asked.append(step)
        return self.invocations.pop(0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clock() -> WoundClock:
    return WoundClock()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[OutputFolder]:
    with OutputFolder(tmp_path / "out", {"Anything": "f"}) as folder:
        yield folder


def no_steps() -> TensorSteps:
    """Return the steps of an empty trial that has not ended."""
    return TensorSteps(NativeIndex(MemoryStore({})), [], WoundClock(), 1.0, 1.0)


def ended(one: RuleJob) -> None:
    """Let the trial of a rule job have ended."""
    assert isinstance(one.step_source, TensorSteps)
    one.step_source.base.finish()


def job(
    folder: OutputFolder,
    clock: WoundClock,
    *did: InvocationResult,
    keep_going: bool = False,
    **more: Any,
) -> RuleJob:
    evaluating.log_nothing()
    config = rule_job(Anything, **more)
    made = RuleJob(
        config,
        bind(config.loaded, {}),
        no_steps(),
        RuleJobState("Anything", "Anything", keep_going, NOW),
        RuleJobFacts({}, "/trial", "enforce", "f", {}),
        folder,
        clock,
        lambda: NOW,
    )
    made.invoker = Scripted(*did)
    return made


def recorded(one: RuleJob, *, final: bool = False) -> RuleResult:
    return one.result_to_record(final=final, caught_up=False)


def test_range_and_position_decide_what_is_wanted(folder: OutputFolder, clock: WoundClock) -> None:
    one = job(
        folder,
        clock,
        InvocationResult(InvocationOutcome.CLEAR),
        InvocationResult(InvocationOutcome.CLEAR),
        start_step=2,
        end_step=9,
    )
    assert [one.wants(step) for step in (0, 1, 2)] == [False, False, True]
    one.judge(3, [])
    assert [one.wants(step) for step in (2, 3, 4)] == [False, False, True]
    assert one.live
    assert one.wants(9) is False
    assert (one.live, one.wants(5)) == (False, False)


def test_waiting_rule_keeps_its_place(folder: OutputFolder, clock: WoundClock) -> None:
    one = job(
        folder,
        clock,
        InvocationResult(InvocationOutcome.WAITS, "soon"),
        InvocationResult(InvocationOutcome.WAITS, "soon"),
    )
    assert one.judge(5, ["w"]) is False
    assert (one.waits, one.position, one.wants(5)) == (True, -1, False)
    assert one.state.coverage.seen == 0
    one.waits = False
    ended(one)
    assert one.judge(5, ["w"]) is False
    assert (one.position, one.state.coverage.skipped) == (5, {"soon": 1})
    assert one.state.coverage.missing_workers == {"w": 1}


def test_hit_moves_the_status_and_is_written(folder: OutputFolder, clock: WoundClock) -> None:
    met = InvocationResult(
        InvocationOutcome.MET, findings=(Finding(4, "a"), Finding(4, "b")), seconds=1.5
    )
    one = job(folder, clock, met)
    assert one.judge(4, []) is True
    assert one.state.status is RuleStatus.ISSUES_FOUND
    assert (one.live, one.rule_time_s) == (False, 1.5)
    assert [found["tensor"] for found in json_lines(folder.path / "findings.jsonl")] == ["a", "b"]
    assert recorded(one).status == "IssuesFound"
    assert recorded(one).ended_at is None


def test_only_the_final_word_says_that_it_has_ended(
    folder: OutputFolder, clock: WoundClock
) -> None:
    one = job(folder, clock, InvocationResult(InvocationOutcome.FAILED, "It broke.", ends=True))
    one.judge(4, [])
    assert recorded(one).status_details == "ClientError: It broke."
    assert recorded(one).ended_at is None
    ended(one)
    assert recorded(one, final=True).ended_at == "2026-01-02T00:00:00.000Z"


def test_end_of_rule(folder: OutputFolder, clock: WoundClock) -> None:
    met = InvocationResult(InvocationOutcome.MET, findings=(Finding(4),), ends=True)
    one = job(folder, clock, met, keep_going=True)
    one.judge(4, [])
    assert not one.live


def test_rule_that_ends_without_a_word(folder: OutputFolder, clock: WoundClock) -> None:
    one = job(folder, clock, InvocationResult(InvocationOutcome.ENDED, ends=True))
    assert one.judge(4, []) is False
    assert (one.live, one.state.coverage.skipped) == (False, {"the rule ended": 1})


def test_rule_that_could_not_be_made_is_not_asked(folder: OutputFolder, clock: WoundClock) -> None:
    one = job(folder, clock)
    one.invoker = None
    ended(one)
    assert one.judge(4, []) is False
    one.close()


def test_closing_lets_go_of_the_rule(folder: OutputFolder, clock: WoundClock) -> None:
    one = job(folder, clock)
    invoker = one.invoker
    one.close()
    assert isinstance(invoker, Scripted)
    assert invoker.closed
