"""All rules judge small real trainings, healthy ones and ones with a fault."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from known_deviations import KNOWN
from measuring import JUDGING, PARAMETERS, Measured, judge, measure, train
from scoring import healthy_findings, macro_f1, scores, wrong
from tables import RESULTS, runs_table
from training_runs import KINDS, PARTS, SAMPLE, all_runs

for _package in ("torch", "xgboost", "sklearn", "keras", "transformers", "lightning"):
    if find_spec(_package) is None:
        pytest.skip(f"{_package} is not installed.", allow_module_level=True)
RUNS = all_runs()
SUITES = {"sample": SAMPLE, "all": tuple(RUNS)}
# Another processor rounds differently, which may change the verdict on a run at a rule's limit.
TIPPED = {"sample": 0, "all": 4}


class Suite:
    """The verdicts on some runs, judged as they are asked for."""

    def __init__(self, name: str, coming: Iterator[Measured]) -> None:
        self.tipped = TIPPED[name]
        self.runs = {run: RUNS[run] for run in SUITES[name]}
        self._coming = coming
        self._judged: dict[str, Measured] = {}

    def of(self, run: str) -> Measured:
        while run not in self._judged:
            measured = next(self._coming)
            self._judged[measured.run] = measured
        return self._judged[run]

    def all(self) -> list[Measured]:
        return [self.of(run) for run in self.runs]


def here(folder: Path) -> Iterator[Measured]:
    """Measure the sample in this process: others would import the frameworks for longer."""
    for run in SAMPLE:
        onset = train(run, folder)
        yield Measured(run, onset, judge(run, onset, folder))


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
            folder = tmp_path_factory.mktemp("runs")
            measured = here(folder) if name == "sample" else measure(folder, SUITES[name])
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
    rules = [verdict.rule for verdict in suite.of(run).verdicts]
    assert set(rules) <= set(JUDGING)
    assert rules


def test_verdicts_are_right_except_for_known_deviations(suite: Suite) -> None:
    verdicts = {
        (verdict.rule, verdict.run): verdict for _, verdict in wrong(suite.runs, suite.all())
    }
    changed = {pair for pair in KNOWN if pair[1] in suite.runs} ^ set(verdicts)
    assert len(changed) <= suite.tipped, [verdicts.get(pair, pair) for pair in sorted(changed)]


@pytest.mark.nightly
def test_macro_f1(suites: Callable[[str], Suite]) -> None:
    suite = suites("all")
    rule_scores = scores(suite.runs, suite.all())
    assert sorted(JUDGING) == list(rule_scores)
    assert macro_f1(rule_scores) >= 0.95


@pytest.mark.nightly
def test_healthy_runs_with_an_error_or_warning(suites: Callable[[str], Suite]) -> None:
    suite = suites("all")
    findings = healthy_findings(suite.runs, suite.all())
    accused = {run: verdicts for run, verdicts in findings.items() if verdicts}
    assert len(accused) <= 0.04 * len(findings), accused


def test_there_are_enough_runs() -> None:
    kinds = Counter(run.healthy for run in RUNS.values())
    assert kinds[True] >= 130
    assert kinds[False] >= 190


@pytest.mark.parametrize("rule", JUDGING)
def test_rule_has_enough_faults_to_find(rule: str) -> None:
    faults = sum(rule in run.fires for run in RUNS.values())
    assert faults >= 5


def test_runs_name_existing_rules_runs_and_kinds() -> None:
    for run in RUNS.values():
        assert {*run.fires, *run.may} <= set(JUDGING), run.name
        assert not run.fires & {*run.may, *run.unsuited}, run.name
        assert {*run.unsuited} <= set(PARAMETERS), run.name
        assert not run.other or run.other in RUNS, run.name
        assert bool(run.fault) == bool(run.fires), run.name
        assert run.kind in KINDS, run.name
        assert run.part in PARTS, run.name


def test_the_results_list_the_runs_as_they_are() -> None:
    assert (RESULTS / "runs.csv").read_text("utf-8") == runs_table(RUNS).csv()
