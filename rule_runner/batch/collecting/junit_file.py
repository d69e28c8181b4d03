"""JUnit on many trials: a test suite for each."""

from collections import Counter
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.sinks import CollectedFile
from rule_runner.batch.collecting.streams import write_pieces
from rule_runner.report.junit import clean, suite_of

_COUNTS: Final = ("tests", "failures", "errors", "skipped")


class JunitFile(CollectedFile):
    """A JUnit report; a result that is missing or not final is an error of its trial's suite."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._counts: Counter[str] = Counter()

    def add(self, trial: CollectedTrial) -> None:
        """Add the suite of a trial."""
        suite = suite_of(trial.as_evaluation())
        suite.set("name", clean(trial.name))
        for problem in trial.problems:
            case = SubElement(suite, "testcase", {"name": "result", "classname": "rule-runner"})
            SubElement(case, "error", {"type": "Missing", "message": clean(problem)})
        for name in ("tests", "errors"):
            suite.set(name, str(int(suite.attrib[name]) + len(trial.problems)))
        self._counts.update({name: int(suite.attrib[name]) for name in _COUNTS})
        indent(suite, level=1)
        self.spool.append(f"  {tostring(suite, encoding='us-ascii').decode('ascii').rstrip()}\n")

    def write(self, exit_code: int) -> None:
        """Write the report."""
        del exit_code
        write_pieces(self.place, self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        counts = {name: str(self._counts[name]) for name in _COUNTS}
        root = Element("testsuites", {"name": "rule-runner"} | counts)
        root.text = "\n"
        head, end, tail = tostring(root, xml_declaration=True, encoding="us-ascii").rpartition(
            b"</"
        )
        yield head
        yield from self.spool.pieces()
        yield end + tail + b"\n"
