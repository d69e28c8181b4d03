"""JUnit: results as XML for CI systems; `rule_suite` has one test case for each rule."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rule_core.model.segments import ranges_text
from rule_core.severity import Severity
from rule_runner.escape import printable
from rule_runner.report.text import asides, coverage, evidence, reason, verdict
from rule_runner.results.issues.incidents import in_causal_order
from rule_runner.results.schema import EvaluationResult, RuleResult
from rule_runner.results.status import Outcome

_INVALID: Final = re.compile("[\ufffe\uffff]")  # XML excludes these; `printable` escapes the others
COUNTS: Final = {"tests": "testcase", "failures": "failure", "errors": "error"}


def junit(result: EvaluationResult, fail_on: Severity = Severity.WARNING) -> str:
    """Return `result` as a JUnit report.

    IssuesFound is a failure if it is at least as serious as `fail_on`. It is a success with
    findings if it is less serious, if the rule is only observed, or if all findings are muted or
    recovered. Error is an error. Rules without a verdict are skipped, with the reason.
    """
    suite = rule_suite(result, fail_on)
    return junit_report("rule-runner", [suite], totals(suite, "time"))


def junit_report(name: str, suites: Iterable[Element], facts: dict[str, str]) -> str:
    """Return a report with test suites."""
    pieces = report_pieces(name, (suite_text(suite).encode() for suite in suites), facts)
    return b"".join(pieces).decode("ascii").rstrip()


def report_pieces(name: str, suites: Iterable[bytes], facts: dict[str, str]) -> Iterator[bytes]:
    """Yield a report piece by piece, with suites as `suite_text` returns them."""
    root = Element("testsuites", {"name": name} | facts)
    root.text = "\n"
    document: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    head, end, tail = document.rpartition(b"</")
    yield head
    yield from suites
    yield end + tail + b"\n"


def suite_text(suite: Element) -> str:
    """Return a test suite as lines of a report."""
    indent(suite, level=1)
    text: bytes = tostring(suite, encoding="us-ascii")
    return f"  {text.decode('ascii').rstrip()}\n"


def new_suite(name: object, cases: Sequence[Element], facts: dict[str, str]) -> Element:
    """Return a test suite, with the numbers of its cases by outcome."""
    outcomes = Counter(child.tag for case in cases for child in case)
    counts = {key: str(outcomes[tag]) for key, tag in COUNTS.items()} | {"tests": str(len(cases))}
    skipped = {"skipped": str(outcomes["skipped"])}
    suite = Element("testsuite", {"name": clean(name)} | skipped | facts | counts)
    suite.extend(cases)
    return suite


def totals(suite: Element, *names: str) -> dict[str, str]:
    """Return the counts of a suite, and further attributes, as those of a report."""
    return {name: suite.attrib[name] for name in (*COUNTS, *names)}


def new_case(name: object, class_name: object, seconds: float | None = None) -> Element:
    """Return a test case that passed."""
    facts = {"name": clean(name), "classname": clean(class_name)}
    return Element("testcase", facts | ({} if seconds is None else {"time": f"{seconds:.3f}"}))


def add_outcome(
    case: Element, tag: str, kind: str, message: str, lines: Iterable[str] = ()
) -> None:
    """Add to a test case that it failed or was skipped.

    Parameters
    ----------
    tag
        ``failure``, ``error`` or ``skipped``.
    """
    child = SubElement(case, tag, {"type": clean(kind), "message": clean(message)})
    child.text = _text(lines)


def rule_suite(
    result: EvaluationResult, fail_on: Severity, more: Sequence[Element] = ()
) -> Element:
    """Return the test suite of one trial, with the cases of its rules and `more`.

    A finding that is less serious than `fail_on` is no failure.
    """
    seconds = max((rule.duration_s for rule in result.rules), default=0.0)
    started = min((rule.started_at for rule in result.rules), default="")
    facts = {"timestamp": started, "time": f"{seconds:.3f}"}
    roots = {id(rule): root for rule, root in in_causal_order(result.rules)}
    cases = [_case(rule, roots[id(rule)], fail_on) for rule in result.rules]
    suite = new_suite(result.trial.name, [*cases, *more], facts)
    suite.insert(0, _properties(result))
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


def _case(rule: RuleResult, root: RuleResult | None, fail_on: Severity) -> Element:
    """Return the test case of a rule; `root` is the issue that its own may follow from."""
    case = new_case(rule.configuration_name, rule.rule, rule.rule_time_s)
    findings = [evidence(finding, rule.unit) for finding in rule.findings]
    if rule.findings_count > len(findings):
        findings.append(f"and {rule.findings_count - len(findings)} more findings")
    output = [coverage(rule), f"mode {rule.mode}", *asides(rule, len(rule.asides))]
    match rule.outcome:
        case Outcome.NO_ISSUES_FOUND:
            output += findings
        case Outcome.ISSUES_FOUND if rule.mode == "observe" or not rule.has_issues(fail_on):
            output += [verdict(rule), *findings]
        case Outcome.ISSUES_FOUND:
            finding = rule.main_finding
            texts = (verdict(rule, root), printable(finding.sentences) if finding else "")
            add_outcome(case, "failure", rule.outcome, ": ".join(filter(None, texts)), findings)
        case Outcome.ERROR:
            add_outcome(case, "error", rule.outcome, reason(rule), findings)
        case _:
            add_outcome(case, "skipped", rule.outcome, reason(rule))
            output += findings
    output += [f"note: {printable(note)}" for note in rule.notes]
    SubElement(case, "system-out").text = _text(output)
    return case


def _text(lines: Iterable[str]) -> str:
    return "\n".join(map(clean, lines))


def clean(text: object) -> str:
    """Return text without characters that XML excludes."""
    return _INVALID.sub("\ufffd", printable(text))
