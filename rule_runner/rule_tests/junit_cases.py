"""junit_cases: the results of rule tests as JUnit XML."""

import re
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rule_runner.escape import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rule_runner.rule_tests.results import TableResult

_INVALID: Final = re.compile("[\ufffe\uffff]")  # XML excludes these


def junit_cases(results: "Sequence[TableResult]") -> str:
    """Return a JUnit report with a suite for each test file."""
    root = Element("testsuites", {"name": "rule-runner test"})
    for result in results:
        suite = SubElement(
            root,
            "testsuite",
            {
                "name": _clean(result.path),
                "tests": str(len(result.cases)),
                "failures": str(len(result.failed)),
            },
        )
        for case in result.cases:
            facts = {"name": _clean(case.name), "classname": _clean(result.path.name)}
            element = SubElement(suite, "testcase", facts | {"time": f"{case.seconds:.3f}"})
            if case.problems:
                message = {"type": "Difference", "message": _clean(case.problems[0])}
                failure = SubElement(element, "failure", message)
                failure.text = "\n".join(map(_clean, case.problems))
    indent(root)
    document: bytes = tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def _clean(text: object) -> str:
    return _INVALID.sub("\ufffd", printable(text))
