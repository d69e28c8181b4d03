"""test: runs the unit tests of rules, and prints what differs from the expectations."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from rule_runner.config.defaults import Isolation
from rule_runner.errors import EXIT_CLIENT, ClientError, UsageError, counted, unwritable
from rule_runner.escape import print_lines
from rule_runner.rule_tests.expectation import Expectation, Observation
from rule_runner.rule_tests.rule_table import (
    RuleCase,
    RuleTable,
    TableError,
    find_tables,
    read_table,
)
from rule_runner.rule_tests.run_case import CaseResult, TableResult, run_case


def run_rule_tests(
    paths: Sequence[str], junit: str | None, isolate: Isolation, *, update: bool
) -> int:
    """Run the test files at and below some paths; return 1 if a case failed, else 0.

    Parameters
    ----------
    junit
        A file for the results as JUnit XML.
    update
        Whether to write what the rules did into the files as their expectations.

    Raises
    ------
    ClientError
        If there are no test files.
    OutputError
        If a file cannot be written.
    """
    tables = find_tables(paths)
    results = []
    for path in tables:
        with redirect_stdout(sys.stderr):  # what rules print
            result = _run_table(path, isolate, update=update)
        results.append(result)
        print_lines(_lines(result))
    cases = sum(len(result.cases) for result in results)
    failed = sum(len(result.failed) for result in results)
    print(f"{counted(cases, 'case')}: {cases - failed} passed, {failed} failed.")
    if junit is not None:
        _write(Path(junit), _junit(results))
    return EXIT_CLIENT if failed else 0


def _run_table(path: Path, isolate: Isolation, *, update: bool) -> TableResult:
    result = TableResult(path)
    try:
        table = read_table(path)
    except TableError as err:
        result.cases.append(CaseResult(path.name, 0.0, (str(err),)))
        return result
    update = update and bool(table.text)  # a Python file cannot be updated
    result.cases += [_run_case(table, case, isolate, update=update) for case in table.cases]
    updates = {number: case.update for number, case in enumerate(result.cases) if case.update}
    if updates:
        try:
            _write(path, _updated_text(table, updates))
        except TableError as err:
            result.cases.append(CaseResult(path.name, 0.0, (str(err),)))
    return result


def _run_case(
    table: RuleTable, case: RuleCase | str, isolate: Isolation, *, update: bool
) -> CaseResult:
    """Run a case; with `update`, differences become the update."""
    if isinstance(case, str):
        return CaseResult(case.partition(": ")[0], 0.0, (case,))
    started = time.perf_counter()
    try:
        observation = run_case(case, table.path.parent, isolate)
    except (ClientError, UsageError) as err:
        problem = f"{table.where(*case.place)}: {err}"
        return CaseResult(case.name, time.perf_counter() - started, (problem,))
    seconds = time.perf_counter() - started
    problems = tuple(_problems(table, case, observation))
    if update and problems:
        expected = case.expectation or Expectation({})
        return CaseResult(case.name, seconds, update=expected.updated(observation))
    return CaseResult(case.name, seconds, problems)


def _problems(table: RuleTable, case: RuleCase, observation: Observation) -> Iterator[str]:
    """Yield a line for each difference, and then what the rule did."""
    if case.expectation is None:
        yield f"{table.where(*case.place)}: The case has no 'expect'. Use --update to write it."
        return
    differences = [*case.expectation.differences(observation)]
    for key, sentence in differences:
        yield f"{table.where(*case.place, 'expect', key)}: {key}: {sentence}"
    if differences:
        yield from _what_it_did(observation)


def _what_it_did(observation: Observation) -> Iterator[str]:
    """Yield the first findings, the reasons not to judge, and an error."""
    shown = 3
    for finding in observation.findings[:shown]:
        values = ", ".join(
            f"{name} {value}"
            for name in ("tensor", "worker", "measured", "limit", "note")
            if (value := getattr(finding, name)) is not None
        )
        yield f"  found at step {finding.step} ({finding.severity}): {values}"
    if len(observation.findings) > shown:
        yield f"  and {len(observation.findings) - shown} more findings"
    for reason, count in observation.not_judged.items():
        yield f"  not judged at {counted(count, 'step')}: {reason}"
    if observation.status == "Error":
        yield f"  {observation.details}"


def _lines(result: TableResult) -> Iterator[str]:
    """Yield the lines to print for a test file."""
    passed = len(result.cases) - len(result.failed)
    updated = sum(case.update is not None for case in result.cases)
    note = f", {updated} updated" if updated else ""
    yield f"{result.path}: {passed} of {len(result.cases)} passed{note}"
    for case in result.failed:
        yield f"  FAILED {case.name}"
        for problem in case.problems:
            yield f"    {problem}"


def _junit(results: Sequence[TableResult]) -> str:
    """Return a JUnit report with a suite for each test file."""
    from rule_runner.report.junit import add_outcome, junit_report, new_case, new_suite

    suites = []
    for result in results:
        cases = [new_case(case.name, result.path.name, case.seconds) for case in result.cases]
        for case, element in zip(result.cases, cases, strict=True):
            if case.problems:
                add_outcome(element, "failure", "Difference", case.problems[0], case.problems)
        suites.append(new_suite(result.path, cases, {}))
    return junit_report("rule-runner test", suites, {})


def _write(path: Path, text: str) -> None:
    with unwritable(f"File {str(path)!r}"):
        path.write_text(text, encoding="utf-8")


def _updated_text(table: RuleTable, expectations: Mapping[int, Expectation]) -> str:
    """Return the text of a YAML test file with new expectations; all else stays as it is.

    Parameters
    ----------
    expectations
        By the number of the case.

    Raises
    ------
    TableError
        If an expectation is an alias, or a case that shares its values with another one.
    """
    edits = [_edit(table, number, expected) for number, expected in expectations.items()]
    text = table.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edit(table: RuleTable, number: int, expected: Expectation) -> tuple[int, int, str]:
    """Return the part of the text to replace, and the new text."""
    spans = table.document.values
    case_path, path = ("cases", number), ("cases", number, "expect")
    case, key = spans[case_path], table.document.keys.get(path)
    new = f"expect: {expected.to_yaml()}"
    if case.is_alias or (key is not None and spans[path].is_alias):
        raise TableError(
            f"{table.where(*path)}: An alias cannot be updated: write the expectation out."
        )
    if key is not None:
        return key.start, spans[path].end, new
    if case.is_flow:
        inner = case.end - 1
        while table.text[inner - 1] in " \t\n,":
            inner -= 1
        return inner, inner, f", {new}"
    line_end = table.text.find("\n", case.end)
    line_end = len(table.text) if line_end < 0 else line_end
    return line_end, line_end, "\n" + " " * case.column + new
