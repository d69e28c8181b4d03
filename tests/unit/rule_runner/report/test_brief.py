"""brief: the worst runs first, in 2 kB, and a stranger's words in quotes."""

import json
from typing import Any

import outcomes
import pytest
import reports

from rule_runner.report.brief import LIMIT, JudgedRun, brief
from rule_runner.results.schema import Evidence, TrialSummary


def trial(**more: Any) -> TrialSummary:
    facts = {"name": "t", "path": "/t", "steps": 4, "first_step": 0, "last_step": 3, "workers": []}
    return TrialSummary(**(facts | {"ended": True} | more))


def found(name: str, rule: str, words: str = "It is up.", **more: Any) -> Any:
    up = Evidence(3, "a", None, 9.0, 2.0, None, summary=words, advice="Mend.")
    return outcomes.met(name, rule=rule, evidence=[up], **more)


def test_a_broken_run_has_cause_evidence_advice_and_what_follows() -> None:
    rules = [
        found("loss", "LossNotDecreasing"),
        found("spike", "LossSpike"),
        found("t", "TreeDepth"),
    ]
    saved = trial(saved=["losses"], not_saved=["gradients", "weights"])
    assert brief([JudgedRun("mine", rules, saved, ["A"])], 10).splitlines() == [
        "exit code 10: an issue counts for --fail-on",
        '"mine": broken since step 3, judged by 3 of 4 rules',
        '  cause: "spike" (error)',
        '  evidence: "It is up. (step 3, measured 9, limit 2)"',
        '  advice: "Mend."',
        '  follows: "loss" at step 3',
        '  other causes: "t" at step 3',
        "  steps: 4, 0 to 3",
        "  seen: losses",
        "  not seen: gradients, weights",
    ]


def test_an_issue_without_a_sentence_is_told_by_its_numbers() -> None:
    (line,) = (
        line
        for line in brief([JudgedRun("x", [reports.fired()])], 0).splitlines()
        if "evid" in line
    )
    assert line == '  evidence: "step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7"'


def test_runs_that_cannot_be_judged_say_why() -> None:
    runs = [
        JudgedRun("gone", (), problem="It is gone."),
        JudgedRun("full", [reports.result("Fine")], problem="The disk is full."),
        JudgedRun("failed", [outcomes.failed("Mine")]),
        JudgedRun("grows", [reports.result("Fine")], trial(ended=False)),
    ]
    assert brief(runs, 1).splitlines()[1:] == [
        '"gone": cannot tell',
        '  problem: "It is gone."',
        '"full": cannot tell, judged by 1 of 1 rule',
        '  problem: "The disk is full."',
        '"failed": cannot tell, nothing was judged',
        """  problem: "Mine: Rule 'Rule' raised KeyError at step 3: 'x'.\"""",
        '"grows": looks healthy, judged by 1 of 1 rule (may still grow)',
        "  steps: 4, 0 to 3",
    ]


@pytest.mark.parametrize("count", [1, 3, 500])
def test_it_takes_2_kb_whatever_names_and_sentences_say(count: int) -> None:
    hostile = outcomes.HOSTILE + '"\\' * 200 + "\U0001f600" * 400
    rules = [found(hostile + str(number), "LossSpike", hostile) for number in range(9)]
    rules += [found(f"t{number}" + hostile, "TreeDepth", hostile) for number in range(9)]
    runs = [JudgedRun("ok", [reports.result("Fine")])]
    runs += [JudgedRun(hostile, rules, trial(not_saved=["losses"] * 5))] * count
    text = brief(runs, 0)
    assert len(text.encode()) <= LIMIT
    lines = text.splitlines()
    assert "broken" in lines[1]
    for line in lines[1:]:
        if line.startswith(("  evidence: ", "  advice: ")):
            json.loads(line.partition(": ")[2])
    if count == 500:
        assert lines[-1].startswith("and ")
        assert lines[-1].endswith(" broken, 1 looks healthy")


def test_the_worst_runs_come_first() -> None:
    runs = [JudgedRun("ok", [reports.result("Fine")]), JudgedRun("mild", [outcomes.mild()])]
    runs.append(JudgedRun("bad", [reports.fired()]))
    heads = [line for line in brief(runs, 0).splitlines() if line.startswith('"')]
    assert [line.partition(":")[0] for line in heads] == ['"bad"', '"mild"', '"ok"']
