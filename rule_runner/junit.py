"""JUnit: results as the XML that CI systems show, one test case for each rule."""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rule_runner.results import EvaluationResult, RuleResult
from rule_runner.show import coverage, evidence, printable, reason, verdict
from rule_runner.status import Outcome

_NO_CHARACTER: Final = re.compile("[\ufffe\uffff]")  # nor are those that `printable` escapes


def junit(result: EvaluationResult) -> str:
    """Return `result` as a JUnit report.

    IssuesFound is a failure, unless the rule is only observed: that is a success which tells the
    findings. Error is an error; whatever reached no verdict is skipped, with the reason.
    """
    cases = [_case(rule) for rule in result.rules]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    seconds = max((rule.duration_s for rule in result.rules), default=0.0)
    totals = {name: str(count) for name, count in counts.items()} | {"time": _time(seconds)}
    root = Element("testsuites", {"name": "rule-runner"} | totals)
    started = min((rule.started_at for rule in result.rules), default="")
    skipped = sum(case.find("skipped") is not None for case in cases)
    facts = {"name": _clean(result.trial.name), "skipped": str(skipped), "timestamp": started}
    suite = SubElement(root, "testsuite", facts | totals)
    suite.append(_properties(result))
    suite.extend(cases)
    indent(root)
    document: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def _properties(result: EvaluationResult) -> Element:
    """Return the facts of the trial and the coverage of each rule: cases can have no properties."""
    trial = result.trial
    facts: dict[str, object] = {
        "trial.path": trial.path,
        "trial.ended": str(trial.ended).lower(),
        "trial.steps": trial.steps,
        "trial.workers": ",".join(trial.workers),
    }
    for rule in result.rules:
        found = rule.coverage
        facts |= {
            f"{rule.configuration_name}.{name}": value
            for name, value in (
                ("mode", rule.mode),
                ("judged", found.judged),
                ("skipped", sum(found.skipped.values())),
                ("known", found.known),
                ("findings", rule.findings_count),
            )
        }
    element = Element("properties")
    for name, value in facts.items():
        SubElement(element, "property", {"name": _clean(name), "value": _clean(value)})
    return element


def _case(rule: RuleResult) -> Element:
    case = Element(
        "testcase",
        {
            "name": _clean(rule.configuration_name),
            "classname": _clean(rule.rule),
            "time": _time(rule.rule_time_s),
        },
    )
    findings = [evidence(one, rule.unit) for one in rule.evidence]
    if rule.findings_count > len(findings):
        findings.append(f"and {rule.findings_count - len(findings)} more findings")
    told = [coverage(rule), f"mode {rule.mode}"]
    match rule.outcome:
        case Outcome.NO_ISSUES_FOUND:
            told += findings
        case Outcome.ISSUES_FOUND if rule.mode == "observe":
            told += [verdict(rule), *findings]
        case Outcome.ISSUES_FOUND:
            _child(case, "failure", rule, verdict(rule)).text = _text(findings)
        case Outcome.ERROR:
            _child(case, "error", rule, reason(rule)).text = _text(findings)
        case _:
            _child(case, "skipped", rule, reason(rule))
            told += findings
    told += [f"note: {printable(note)}" for note in rule.notes]
    SubElement(case, "system-out").text = _text(told)
    return case


def _child(case: Element, tag: str, rule: RuleResult, message: str) -> Element:
    return SubElement(case, tag, {"type": _clean(rule.outcome), "message": _clean(message)})


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _text(lines: list[str]) -> str:
    return "\n".join(map(_clean, lines))


def _clean(text: object) -> str:
    """Return text without what XML cannot hold."""
    return _NO_CHARACTER.sub("\ufffd", printable(text))
