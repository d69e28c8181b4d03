"""Runner: evaluations of runs that were resumed, live and afterwards."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evaluating
import jsonschema  # type: ignore[import-untyped] # it comes without types
import pytest
import saved
from evaluating import Script, WoundClock, configured, json_lines, rule_job
from list_source import ListSource, Row, opened, source_index
from msgspec import UNSET

from rule_core.model.segments import global_step
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.runner import Runner
from rule_runner.report import text
from rule_runner.results.schema import RULE_SCHEMA
from smdebug.rules import Rule

FIRST: list[Row] = [(step, {"loss": 1.0 if step == 4 else 0.0}) for step in range(6)]
SECOND: list[Row] = [(step, {"loss": 1.0 if step == 7 else 0.0}) for step in range(3, 9)]
WHOLE = "2 segments: 0 to 5, 3 to 8"


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Spikes(Rule):
    """Met when the loss is 1; counts the steps that it has judged."""

    made: int = 0
    ends: tuple[int, ...] = ()

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        type(self).made += 1
        self.judged: list[int] = []

    def invoke_at_step(self, step: int) -> bool:
        self.judged.append(step)
        assert self.base_trial.steps()[-len(self.judged) :] == self.judged
        assert self.base_trial.segment(self.judged[0]) == self.base_trial.segment(step)
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        return self.measured(step, "spikes", loss, 0.5, met=loss > 0.5, tensor="loss")

    def invoke_at_end(self, step: int) -> bool:
        type(self).ends = (*self.ends, step)
        return False


@pytest.fixture
def rule() -> type[Spikes]:
    return type("Spikes", (Spikes,), {"made": 0, "ends": ()})


def evaluated(
    output: Path,
    rule: type[Rule] | RuleJobConfig,
    source: ListSource,
    *later: Callable[[], object],
    **more: Any,
) -> EvaluationOutcome:
    """Return the outcome of an evaluation; each of `later` happens at a wait."""
    config = configured(output, [rule], keep_going=True, **more)
    script = Script(WoundClock(), later)
    with opened(source_index(source)):
        runner = Runner(config, clock=script.clock, waiter=script)
    return runner.run()


def growing() -> tuple[ListSource, Iterator[Callable[[], object]]]:
    """Return a source, and what adds a row at a time and ends it."""
    source = ListSource(ended=False)

    def row(number: int) -> Callable[[], object]:
        return lambda: source.rows.append([*FIRST, *SECOND][number])

    def end() -> None:
        source.ended = True

    return source, iter([*map(row, range(len(FIRST) + len(SECOND))), end])


def test_each_segment_is_judged_by_a_fresh_rule(tmp_path: Path, rule: type[Spikes]) -> None:
    result = evaluated(tmp_path, rule, ListSource(*FIRST, *SECOND, ended=True)).result
    assert rule.made == 2
    assert rule.ends == (global_step(1, 8),)
    (job,) = result.rules
    assert (job.outcome, job.step, job.segment, job.resumed_from) == ("IssuesFound", 4, UNSET, 3)
    assert job.status_details is not None
    assert "at step 4 resulted" in job.status_details
    assert [(found.step, found.segment, found.resumed_from) for found in job.evidence] == [
        (4, UNSET, 3),
        (7, 1, UNSET),
    ]
    assert (job.coverage.judged, job.coverage.known) == (12, 12)
    assert (job.coverage.first, job.coverage.last) == (0, 8)
    assert (result.trial.first_step, result.trial.last_step, result.trial.steps) == (0, 8, 12)
    lines = list(text.lines(result))
    assert lines[0] == (
        "Spikes: IssuesFound at step 4, in a part of the run that was resumed from step 3 "
        "afterwards"
    )
    assert lines[1] == f"  judged 12 of 12 steps ({WHOLE})"
    met, numbers = "  The condition is met for loss at step", "measured 1, limit 0.5"
    assert lines[2] == f"{met} 4. (abandoned, {numbers})"
    assert lines[3] == f"{met} 7 of segment 2. ({numbers})"


def test_live_evaluation_is_the_same(tmp_path: Path, rule: type[Spikes]) -> None:
    source, later = growing()
    live = evaluated(tmp_path / "live", rule, source, *later)
    after = evaluated(tmp_path / "after", rule, ListSource(*FIRST, *SECOND, ended=True))
    assert rule.made == 4
    assert comparable(live) == comparable(after)
    assert findings(tmp_path / "live") == findings(tmp_path / "after") == [(4, None), (7, 1)]


def comparable(outcome: EvaluationOutcome) -> dict[str, Any]:
    (job,) = outcome.result.rules
    return {
        name: getattr(job, name)
        for name in ("outcome", "step", "segment", "resumed_from", "evidence", "coverage")
    } | {"trial": outcome.result.trial}


def findings(folder: Path) -> list[tuple[int, int | None]]:
    return [
        (finding["step"], finding.get("segment"))
        for finding in json_lines(folder / "findings.jsonl")
    ]


def test_a_rule_may_be_told_of_segments_instead(tmp_path: Path, rule: type[Spikes]) -> None:
    told: list[int] = []

    def segment_begins(self: Spikes, segment: int) -> None:
        told.append(segment)
        self.judged.clear()

    rule.segment_begins = segment_begins  # type: ignore[method-assign]
    result = evaluated(tmp_path, rule, ListSource(*FIRST, *SECOND, ended=True)).result
    assert (rule.made, told) == (1, [1])
    assert result.rules[0].findings_count == 2


def test_a_rule_that_fails_at_a_segment_ends_with_an_error(
    tmp_path: Path, rule: type[Spikes]
) -> None:
    def segment_begins(self: Spikes, segment: int) -> None:
        raise ValueError(self.made, segment)

    rule.segment_begins = segment_begins  # type: ignore[method-assign]
    source = ListSource(*[(step, {"loss": 0.0}) for step in range(3)], *SECOND[:1], ended=True)
    source.rows.append((0, {"loss": 0.0}))
    (job,) = evaluated(tmp_path, rule, source).result.rules
    assert job.outcome == "Error"
    assert job.status_details == (
        "ClientError: Rule 'Spikes' raised ValueError at step 0 of segment 2: (1, 1)."
    )


def test_a_rule_that_cannot_be_constructed_again_ends_with_an_error(
    tmp_path: Path, rule: type[Spikes]
) -> None:
    def construct(self: Spikes, base_trial: Any) -> None:
        Spikes.__init__(self, base_trial)
        if self.made > 1:
            raise ValueError(self.made)

    rule.__init__ = construct  # type: ignore[method-assign]
    rows: list[Row] = [(0, {"loss": 0.0}), (1, {"loss": 0.0}), (0, {"loss": 0.0})]
    (job,) = evaluated(tmp_path, rule, ListSource(*rows, ended=True)).result.rules
    assert job.outcome == "Error"
    assert "while it was constructed" in str(job.status_details)


def test_ranges_are_of_the_steps_within_a_segment(tmp_path: Path, rule: type[Spikes]) -> None:
    source, later = growing()
    config = rule_job(rule, start_step=2, end_step=5)
    (job,) = evaluated(tmp_path, config, source, *later).result.rules
    assert (job.coverage.judged, job.coverage.known) == (5, 5)
    assert text.judged_steps(job.coverage) == "2 segments: 2 to 4, 3 to 4"
    assert rule.ends == (global_step(1, 4),)


def test_an_evaluation_is_resumed_across_segments(tmp_path: Path, rule: type[Spikes]) -> None:
    rows = [*FIRST, *SECOND]
    stopped = evaluated(tmp_path, rule, ListSource(*rows[:9], ended=False), wait=False).result
    assert [job.outcome for job in stopped.rules] == ["IssuesFound"]
    evaluated(tmp_path, rule, ListSource(*rows, ended=True))
    assert findings(tmp_path) == [(4, None), (7, 1)]
    result = saved.result(tmp_path)
    jsonschema.validate(result, json.loads(RULE_SCHEMA.read_text()))
    assert (result["step"], result["resumed_from"]) == (4, 3)
    assert "segment" not in result
    assert result["evidence"][1]["segment"] == 1
    assert result["coverage"]["segments"] == [
        {"segment": 0, "first": 0, "last": 5},
        {"segment": 1, "first": 3, "last": 8},
    ]


def test_findings_at_one_step_of_two_segments_have_two_ids(
    tmp_path: Path, rule: type[Spikes]
) -> None:
    rows: list[Row] = [(step, {"loss": 1.0}) for step in (4, 5, 4, 5)]
    evaluated(tmp_path, rule, ListSource(*rows, ended=True))
    ids = {finding["id"] for finding in json_lines(tmp_path / "findings.jsonl")}
    assert len(ids) == 4
