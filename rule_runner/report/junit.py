"""JUnit: results as XML for CI systems, one test case for each rule."""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rule_core.model.segments import ranges_text
from rule_runner.escape import printable
from rule_runner.report.text import asides, coverage, evidence, reason, verdict
from rule_runner.results.schema import EvaluationResult, RuleResult
from rule_runner.results.status import Outcome

_INVALID: Final = re.compile("[\ufffe\uffff]")  # XML excludes these; `printable` escapes the others


TOTALS: Final = ("tests", "failures", "errors", "time")


def junit(result: EvaluationResult) -> str:
    """Return `result` as a JUnit report.

    IssuesFound is a failure, or a success with findings if the rule is only observed, or all are
    muted. Error is an error. Rules without a verdict are skipped, with the reason.
    """
    suite = suite_of(result)
    totals = {name: suite.attrib[name] for name in TOTALS}
    root = Element("testsuites", {"name": "rule-runner"} | totals)
    root.append(suite)
    indent(root)
    document: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def suite_of(result: EvaluationResult) -> Element:
    """Return the element of a JUnit report on one trial."""
    cases = [_case(rule) for rule in result.rules]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    seconds = max((rule.duration_s for rule in result.rules), default=0.0)
    totals = {name: str(count) for name, count in counts.items()} | {"time": _time(seconds)}
    started = min((rule.started_at for rule in result.rules), default="")
    skipped = sum(case.find("skipped") is not None for case in cases)
    facts = {"name": clean(result.trial.name), "skipped": str(skipped), "timestamp": started}
    suite = Element("testsuite", facts | totals)
    suite.append(_properties(result))
    suite.extend(cases)
    return suite


def _properties(result: EvaluationResult) -> Element:
    """Return properties of the trial and of each rule: test cases cannot have properties."""
    trial = result.trial
    facts: dict[str, object] = {
        "trial.path": trial.path,
        "trial.ended": str(trial.ended).lower(),
        "trial.steps": trial.steps,
        "trial.workers": ",".join(trial.workers),
    }
    if trial.segments:
        facts["trial.segments"] = ranges_text([(part.first, part.last) for part in trial.segments])
    for rule in result.rules:
        steps = rule.coverage
        facts |= {
            f"{rule.configuration_name}.{name}": value
            for name, value in (
                ("outcome", rule.outcome),
                ("status", rule.status),
                ("mode", rule.mode),
                ("judged", steps.judged),
                ("skipped", sum(steps.skipped.values())),
                ("known", steps.known),
                ("severity", rule.severity or "none"),
                ("findings", rule.findings_count),
                ("notes", rule.notes_count),
                ("muted", rule.muted_count),
            )
        }
    element = Element("properties")
    for name, value in facts.items():
        SubElement(element, "property", {"name": clean(name), "value": clean(value)})
    return element


def _case(rule: RuleResult) -> Element:
    case = Element(
        "testcase",
        {
            "name": clean(rule.configuration_name),
            "classname": clean(rule.rule),
            "time": _time(rule.rule_time_s),
        },
    )
    findings = [evidence(finding, rule.unit) for finding in rule.findings]
    if rule.findings_count > len(findings):
        findings.append(f"and {rule.findings_count - len(findings)} more findings")
    output = [coverage(rule), f"mode {rule.mode}", *asides(rule, len(rule.asides))]
    match rule.outcome:
        case Outcome.NO_ISSUES_FOUND:
            output += findings
        case Outcome.ISSUES_FOUND if rule.mode == "observe" or rule.is_muted:
            output += [verdict(rule), *findings]
        case Outcome.ISSUES_FOUND:
            _child(case, "failure", rule, verdict(rule)).text = _text(findings)
        case Outcome.ERROR:
            _child(case, "error", rule, reason(rule)).text = _text(findings)
        case _:
            _child(case, "skipped", rule, reason(rule))
            output += findings
    output += [f"note: {printable(note)}" for note in rule.notes]
    SubElement(case, "system-out").text = _text(output)
    return case


def _child(case: Element, tag: str, rule: RuleResult, message: str) -> Element:
    return SubElement(case, tag, {"type": clean(rule.outcome), "message": clean(message)})


def _time(seconds: float) -> str:
    return f"{seconds:.3f}"


def _text(lines: list[str]) -> str:
    return "\n".join(map(clean, lines))


def clean(text: object) -> str:
    """Return text without characters that XML excludes."""
    return _INVALID.sub("\ufffd", printable(text))
