"""All rules judge small real trainings, healthy ones and ones with a fault."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from known_deviations import KNOWN
from measuring import JUDGING, SHIPPED, Measured, measure
from scoring import healthy_pairs, macro_f1, scores, wrong
from tables import filled, runs_table
from training_runs import all_runs

for _package in ("torch", "xgboost", "sklearn", "keras"):
    if find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed.", allow_module_level=True)
RUNS = all_runs()
UNSURE = {run for _, run in KNOWN}
# The first run with each fault, and a few healthy ones.
SAMPLE = {
    *(
        next(n for n, run in RUNS.items() if rule in run.fires and n not in UNSURE)
        for rule in JUDGING
    ),
    *[run for run in RUNS if RUNS[run].healthy and run not in UNSURE][::6],
}
SUITES = {"sample": [run for run in RUNS if run in SAMPLE], "all": [*RUNS]}
# Another processor rounds otherwise, and a run at the edge of a rule may tip over.
TIPPED = {"sample": 1, "all": 4}
PAGE = Path(__file__).parents[3] / "docs" / "detection.md"


class Suite:
    """What rules say of some runs, as far as that is known by now."""

    def __init__(self, name: str, coming: Iterator[Measured]) -> None:
        self.tipped = TIPPED[name]
        self.runs = {run: RUNS[run] for run in SUITES[name]}
        self._coming = coming
        self._known: dict[str, Measured] = {}

    def of(self, run: str) -> Measured:
        while run not in self._known:
            found = next(self._coming)
            self._known[found.run] = found
        return self._known[run]

    def all(self) -> list[Measured]:
        return [self.of(run) for run in self.runs]


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Suite]]:
    """Return a factory that makes each suite once, unlike a parametrized fixture of wider scope."""
    with ExitStack() as stack:
        # Lines that trainings run through are covered by tests of their own, in half the time.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
            patch.delenv(name, raising=False)

        @cache
        def suite_of(name: str) -> Suite:
            measured = measure(tmp_path_factory.mktemp("runs"), SUITES[name], columns=[SHIPPED])
            return Suite(name, stack.enter_context(closing(measured)))

        yield suite_of


@pytest.fixture(params=["sample", pytest.param("all", marks=pytest.mark.nightly)])
def suite(request: pytest.FixtureRequest, suites: Callable[[str], Suite]) -> Suite:
    return suites(request.param)


@pytest.mark.parametrize(
    ("suite", "run"),
    [
        *(pytest.param("sample", run) for run in SUITES["sample"]),
        *(pytest.param("all", run, marks=pytest.mark.nightly) for run in RUNS),
    ],
    indirect=["suite"],
)
def test_run_can_be_trained_and_judged(run: str, suite: Suite) -> None:
    asked = [one.rule for one in suite.of(run).verdicts]
    assert set(asked) <= set(JUDGING)
    assert asked


def test_runs_get_the_verdicts_that_they_should(suite: Suite) -> None:
    found = {(one.rule, one.run): one for _, one in wrong(suite.runs, suite.all(), SHIPPED)}
    other = {pair for pair in KNOWN if pair[1] in suite.runs} ^ set(found)
    assert len(other) <= suite.tipped, [found.get(pair, pair) for pair in sorted(other)]


def test_macro_f1_as_shipped(suite: Suite) -> None:
    found = scores(suite.runs, suite.all(), SHIPPED)
    assert sorted(JUDGING) == list(found)
    assert macro_f1(found) >= 0.95


def test_findings_on_healthy_runs(suite: Suite) -> None:
    findings, judged = healthy_pairs(suite.runs, suite.all(), SHIPPED)
    assert len(findings) <= 0.01 * judged, findings


def test_there_are_enough_runs() -> None:
    kinds = Counter(run.healthy for run in RUNS.values())
    assert kinds[True] >= 25
    assert kinds[False] >= 45


@pytest.mark.parametrize("rule", JUDGING)
def test_rule_has_enough_faults_to_find(rule: str) -> None:
    assert sum(rule in run.fires for run in RUNS.values()) >= 5


def test_runs_name_rules_and_runs_that_there_are() -> None:
    for run in RUNS.values():
        assert {*run.fires, *run.may} <= set(JUDGING), run.name
        assert not run.fires & set(run.may), run.name
        assert not run.other or run.other in RUNS, run.name
        assert bool(run.fault) == bool(run.fires), run.name


def test_page_lists_the_runs_as_they_are() -> None:
    page = PAGE.read_text("utf-8")
    assert filled(page, {"runs": runs_table(RUNS)}) == page
