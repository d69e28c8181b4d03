"""Expectation: what a rule test expects, compared with what the rule did."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from rule_core.rules.params import did_you_mean
from rule_core.severity import Severity
from rule_runner.results.json_text import json_scalar
from rule_runner.results.schema import Evidence
from rule_runner.results.status import Outcome
from rule_runner.rule_tests.series import SeriesError, whole_numbers

STATUSES: Final = ("IssuesFound", "NoIssuesFound", "NotEvaluated", "Error")
OF_ISSUES: Final = ("status", "step", "severity", "tensors")  # that `--update` writes
FINDING_KEYS: Final = ("step", "tensor", "worker", "measured", "limit", "note", "severity")
_TOLERANCE: Final = 1e-6


class ExpectationError(ValueError):
    """An expectation is malformed: a sentence, and the key."""

    def __init__(self, sentence: str, key: str = "") -> None:
        super().__init__(sentence)
        self.key = key


def checked_key(name: str, keys: tuple[str, ...], what: str) -> str:
    """Return a key.

    Raises
    ------
    ExpectationError
        If it is none of `keys`; the error names the nearest one.
    """
    if name not in keys:
        hint = did_you_mean(name, keys) or f" Its keys: {', '.join(keys)}."
        raise ExpectationError(f"{what} has no key {name!r}.{hint}", name)
    return name


@dataclass(frozen=True, slots=True)
class Observation:
    """What a rule did in a case.

    Attributes
    ----------
    status
        The outcome, as in results.
    step
        The step at which the condition was first met.
    findings
        The first 100, with notes.
    severity
        The severity of findings that state none.
    not_judged
        The number of steps by reason.
    details
        The details of the status.
    """

    status: str
    step: int | None
    findings: tuple[Evidence, ...]
    severity: Severity
    judged: int
    not_judged: Mapping[str, int]
    details: str

    def value(self, key: str) -> Any:
        """Return the value of a key of an expectation."""
        return _VALUES[key](self)

    @property
    def verdict_severity(self) -> str | None:
        """The highest severity of the findings at the step of the verdict."""
        if self.step is None:
            return None
        severities = [finding.severity for finding in self.verdict_findings]
        return str(max(severities, key=lambda severity: severity.rank, default=self.severity))

    @property
    def steps(self) -> list[int]:
        """The steps at which the condition was met."""
        steps = {finding.step for finding in self.findings if _counts(finding)}
        return sorted(steps if self.step is None else {self.step, *steps})

    @property
    def verdict_findings(self) -> list[Evidence]:
        """The findings at the step at which the condition was first met."""
        return [
            finding for finding in self.findings if finding.step == self.step and _counts(finding)
        ]


def _counts(finding: Evidence) -> bool:
    return finding.severity is not Severity.NOTE


def _names(findings: Sequence[Evidence], attribute: str) -> list[str]:
    return sorted({str(getattr(finding, attribute) or "") for finding in findings} - {""})


_VALUES: Final[dict[str, Callable[[Observation], Any]]] = {
    "status": lambda did: did.status,
    "step": lambda did: did.step,
    "severity": lambda did: did.verdict_severity,
    "tensors": lambda did: _names(did.verdict_findings, "tensor"),
    "workers": lambda did: _names(did.verdict_findings, "worker"),
    "steps": lambda did: did.steps,
    "findings": lambda did: [_plain(finding) for finding in did.findings],
    "judged": lambda did: did.judged,
    "not_judged": lambda did: sorted(did.not_judged),
    "details": lambda did: did.details,
}
KEYS: Final = tuple(_VALUES)


def _plain(finding: Evidence) -> dict[str, Any]:
    """Return a finding as a test file has it, without what it lacks."""
    values = {key: json_scalar(getattr(finding, key)) for key in FINDING_KEYS}
    return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected values by key, of `KEYS`; other keys may have any value."""

    values: Mapping[str, Any]

    def differences(self, observation: Observation) -> Iterator[tuple[str, str]]:
        """Yield each key whose value differs, with a sentence."""
        for key, expected in self.values.items():
            actual = observation.value(key)
            if key == "findings":
                yield from ((key, text) for text in _finding_differences(expected, actual))
            elif key == "details":
                if expected not in actual:
                    yield key, f"expected a text with {expected!r}, got {actual!r}"
            elif expected != actual:
                yield key, f"expected {_text(expected)}, got {_text(actual)}"

    def updated(self, observation: Observation) -> "Expectation":
        """Return the expectation with the same keys that `observation` meets.

        Keys that have no meaning for the new status are dropped, and an expectation of another
        status than before gets the usual keys of its status.
        """
        issues = observation.status == Outcome.ISSUES_FOUND
        usual = OF_ISSUES if issues else ("status",)
        same = self.values.get("status") == observation.status
        keys = [key for key in self.values if issues or key not in (*OF_ISSUES[1:], "workers")]
        keys = ["status", *(key for key in keys if key != "status")]
        if not same:
            keys += [key for key in usual if key not in keys]
        return Expectation({key: observation.value(key) for key in keys})

    def to_yaml(self) -> str:
        """Return the expectation as a mapping of YAML on one line."""
        text: str = yaml.safe_dump(
            {key: str(value) if key == "status" else value for key, value in self.values.items()},
            default_flow_style=True,
            sort_keys=False,
            allow_unicode=True,
            width=math.inf,
        )
        return text.strip()


def _text(value: Any) -> str:
    return "none" if value is None or value == [] else str(value)


def _finding_differences(expected: list[Any], actual: list[Any]) -> Iterator[str]:
    """Compare findings one by one; keys that are not expected may have any value."""
    if len(expected) != len(actual):
        yield f"expected {len(expected)}, got {len(actual)}"
    for number, (wanted, finding) in enumerate(zip(expected, actual, strict=False), 1):
        for key, value in wanted.items():
            if not _equal(value, finding.get(key)):
                yield f"{key} of finding {number}: expected {value}, got {finding.get(key)}"


def _equal(expected: Any, actual: Any) -> bool:
    """Compare values of a finding: numbers nearly, and by value if one of them is a text."""
    try:
        first, second = float(expected), float(actual)
    except (TypeError, ValueError):
        return str(expected) == str(actual)
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    return math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=1e-12)


def parse_expectation(value: Any) -> Expectation:
    """Return an expectation from a mapping, or from the text of a status.

    A step or a severity without a status means that issues are expected.

    Raises
    ------
    ExpectationError
        If it has another form, or an unknown key.
    """
    if isinstance(value, str):
        value = {"status": value}
    if not isinstance(value, Mapping) or not value:
        raise ExpectationError(
            f"'expect' must be a status or a mapping that is not empty, got {value!r}"
        )
    values = {key: _parsed(checked_key(key, KEYS, "'expect'"), value[key]) for key in value}
    if "status" not in values and {"step", "severity", "tensors"} & values.keys():
        values = {"status": str(Outcome.ISSUES_FOUND)} | values
    return Expectation(values)


def _parsed(key: str, value: Any) -> Any:
    if key in {"step", "severity", "judged"} and value in (None, "none", "null", "~", ""):
        return None
    return _PARSERS[key](key, value)


def _names_of(_: str, value: Any) -> list[str]:
    return sorted(map(str, value)) if isinstance(value, list | tuple) else [str(value)]


def _steps(key: str, value: Any) -> list[int]:
    try:
        return whole_numbers(value)
    except SeriesError as err:
        raise ExpectationError(f"{key!r}: {err}", key) from err


def _findings(key: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list | tuple):
        return [_finding(item) for item in value]
    raise ExpectationError(f"'findings' must be a list, got {value!r}", key)


def _finding(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ExpectationError(f"a finding must be a mapping, got {value!r}", "findings")
    finding = {checked_key(key, FINDING_KEYS, "a finding"): value[key] for key in value}
    if "step" in finding:
        finding["step"] = _whole("step", finding["step"])
    if "severity" in finding:
        finding["severity"] = _choice("severity", finding["severity"], tuple(map(str, Severity)))
    return finding


def _choice(key: str, value: Any, choices: tuple[str, ...]) -> str:
    if value in choices:
        return str(value)
    hint = did_you_mean(str(value), choices)
    raise ExpectationError(
        f"{key!r} must be one of {', '.join(choices)}, got {value!r}.{hint}", key
    )


def _whole(key: str, value: Any) -> int:
    try:
        (number,) = whole_numbers(value)
    except (SeriesError, ValueError) as err:
        raise ExpectationError(f"{key!r} must be a whole number, got {value!r}", key) from err
    return number


_PARSERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "status": lambda key, value: _choice(key, value, STATUSES),
    "step": _whole,
    "severity": lambda key, value: _choice(key, value, ("error", "warning")),
    "tensors": _names_of,
    "workers": _names_of,
    "steps": _steps,
    "findings": _findings,
    "judged": _whole,
    "not_judged": _names_of,
    "details": lambda _, value: str(value),
}
