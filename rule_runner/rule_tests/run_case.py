"""run_case: evaluates a rule over the trial of a case; CaseResult and TableResult."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rule_runner.config.defaults import Isolation
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.evaluate import evaluate
from rule_runner.errors import ClientError
from rule_runner.rule_tests.expectation import Expectation, Observation
from rule_runner.rule_tests.rule_table import RuleCase


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case.

    Attributes
    ----------
    problems
        A line for each difference, with its place; empty if the case passed.
    update
        The expectation that the rule meets, if it can be written into the file.
    """

    name: str
    seconds: float
    problems: Sequence[str] = ()
    update: Expectation | None = None


@dataclass(slots=True)
class TableResult:
    """The results of one test file, in its order."""

    path: Path
    cases: list[CaseResult] = field(default_factory=list)

    @property
    def failed(self) -> list[CaseResult]:
        """The cases that did not pass."""
        return [case for case in self.cases if case.problems]


def run_case(case: RuleCase, folder: Path, isolate: Isolation) -> Observation:
    """Judge every step of a case, and return what the rule did.

    Parameters
    ----------
    folder
        That of the test file: a rule file is relative to it.

    Raises
    ------
    ClientError
        If the rule cannot be loaded, rejects its parameters, or judges profiler data.
    """
    with TemporaryDirectory(prefix="rule-test-") as temporary:
        trial = Path(temporary, "trial")
        case.saved.write_trial(trial, case.collections)
        request = EvaluationRequest(
            trial=str(trial),
            profiler_trial=str(trial),  # so that a rule over profiler data is placed, and named
            rules=(_rule(case.rule, folder),),
            parameters=tuple(f"{name}={value}" for name, value in case.parameters.items()),
            output=str(Path(temporary, "output")),
            wait=False,
            keep_going=True,
            end_grace=0.0,
            isolate=isolate,
            report=False,
            dry_run=True,
        )
        config = resolve(request)
        if config.rules[0].profiler:
            raise ClientError(
                f"Rule {case.rule!r} judges profiler data, which a test file cannot hold."
            )
        (result,) = evaluate(replace(config, profiler_trial=None)).result.rules
        return Observation(
            result.outcome,
            result.step,
            tuple(result.evidence),
            config.rules[0].loaded.rule_class.SEVERITY,
            result.coverage.judged,
            dict(result.coverage.skipped),
            result.status_details or "",
        )


def _rule(text: str, folder: Path) -> RuleRequest:
    """Return the rule that a test file names: ``NAME``, ``FILE.py`` or ``FILE.py::NAME``."""
    source, separator, name = text.partition("::")
    if not separator and not source.endswith(".py"):
        return RuleRequest(name=text)
    if "://" not in source:
        source = str(folder / source)
    return RuleRequest(name=name or None, source=source)
