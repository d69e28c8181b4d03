"""SimilarAcrossRuns: which tensors differ from another run's, and how that run is given."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
from evaluating import configured, log_nothing, rule_job
from judging import Steps, judge, opened, save

from builtin_rules import SimilarAcrossRuns
from rule_core.sources.address import address_of
from rule_runner.config.model import EvaluationConfig
from rule_runner.engine.runner import Runner
from rule_runner.errors import ParameterError, TrialError
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import MissingCollectionFiles, SMDebugValueError
from smdebug.rules.extensions import Finding

NAME = "fc.weight"
SEVERITY = SimilarAcrossRuns.SEVERITY


def judged(folder: Path, base: Steps, other: Steps, **params: Any) -> Any:
    """Judge one trial beside another."""
    save(folder / "other", other)
    trial = opened(folder / "other")
    return judge(SimilarAcrossRuns, save(folder / "base", base), other_trials=trial, **params)


def series(values: list[Any]) -> Steps:
    return {
        at: {"x": np.ones(1)} if value is None else {NAME: np.asarray(value)}
        for at, value in enumerate(values)
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [
        pytest.param([1.0, 2.0], [1.0, 2.0], [], id="the-same"),
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.5, 3.0], [1], id="differs"),
        pytest.param([0.0, 1e-8], [0.0, 0.0], [], id="absolute-tolerance-is-closed"),
        pytest.param([np.nextafter(1e-8, 1)], [0.0], [0], id="just-beyond-it"),
        pytest.param([1e6 + 9], [1e6], [], id="relative-tolerance"),
        pytest.param([1e6 + 11], [1e6], [0], id="beyond-the-relative-one"),
        pytest.param([np.nan, np.inf], [np.nan, np.inf], [], id="nan-equals-nan"),
        pytest.param([np.nan, 1.0], [1.0, np.nan], [0, 1], id="nan-and-a-number"),
        pytest.param([np.inf], [-np.inf], [0], id="infinities"),
        pytest.param([[1.0, 2.0]], [[1.0, 2.5]], [0], id="one-element"),
        pytest.param([[1.0]], [[[1.0]]], [0], id="another-shape"),
        pytest.param([1.0, 2.0], [1.0], [], id="the-other-is-shorter"),
        pytest.param([1.0], [1.0, 9.0], [], id="the-other-is-longer"),
        pytest.param([1.0, None, 3.0], [1.0, 9.0, 4.0], [2], id="missing-here"),
        pytest.param([1.0, 9.0, 3.0], [1.0, None, 4.0], [2], id="missing-there"),
        pytest.param([3], [3.0], [], id="integers-and-floats"),
        pytest.param([True], [False], [0], id="booleans"),
    ],
)
def test_it_is_met_where_a_tensor_differs(
    ours: list[Any], theirs: list[Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, series(ours), series(theirs)).met == met


@pytest.mark.parametrize(
    ("params", "found"),
    [
        pytest.param({}, ["fc.weight", "loss", "x"], id="everything"),
        pytest.param({"collection_names": "losses"}, ["loss"], id="collection"),
        pytest.param({"tensor_regex": "^x"}, ["x"], id="pattern"),
        pytest.param(
            {"collection_names": "losses", "tensor_regex": "weight,none"},
            ["fc.weight", "loss"],
            id="both",
        ),
    ],
)
def test_selectors_choose_tensors(params: dict[str, Any], found: list[str], tmp_path: Path) -> None:
    ours = {0: dict.fromkeys(("x", "loss", NAME), 1.0)}
    theirs = {0: dict.fromkeys(("x", "loss", NAME), 2.0)}
    findings = judged(tmp_path, ours, theirs, **params).findings
    assert [one.tensor for one in findings] == found


def test_evidence_gives_the_difference_in_tolerances(tmp_path: Path) -> None:
    found = judged(tmp_path, series([4e-8]), series([0.0]))
    assert found.findings == [Finding(0, NAME, "worker_0", 4.0, 1.0, None, SEVERITY)]


def test_evidence_gives_both_shapes(tmp_path: Path) -> None:
    found = judged(tmp_path, series([[1.0, 2.0]]), series([[[1.0, 2.0]]]))
    note = "Its shape is (2,), but (1, 2) in the other run."
    assert found.findings == [Finding(0, NAME, "worker_0", None, None, note, SEVERITY)]


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.array(["a"]), np.array([1j])])
def test_what_holds_no_real_numbers_is_not_judged(value: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, series([value]), series([value]))
    assert found.skipped == {0: "no tensor with numbers in both runs"}


def test_steps_without_a_common_tensor_say_so(tmp_path: Path) -> None:
    found = judged(tmp_path, series([1.0, 2.0]), series([None]))
    expected = "no selected tensor at this step in both runs"
    assert found.skipped == dict.fromkeys((0, 1), expected)


def test_all_modes_are_judged_by_global_steps(tmp_path: Path) -> None:
    modes = {0: ModeKeys.TRAIN, 1: ModeKeys.EVAL, 2: ModeKeys.PREDICT}
    save(tmp_path / "other", series([1.0, 1.0, 1.0]))
    save(tmp_path / "base", series([2.0, 2.0, 2.0]), modes=modes)
    other = opened(tmp_path / "other")
    assert judge(SimilarAcrossRuns, tmp_path / "base", other_trials=[other]).met == [0, 1, 2]


def test_later_steps_of_the_other_run_are_not_read(tmp_path: Path) -> None:
    ours, theirs = series([1.0, 2.0, 3.0]), series([1.0, 2.0, 4.0])
    for last in range(3):
        begun = {at: values for at, values in theirs.items() if at <= last}
        found = judged(tmp_path / str(last), ours, begun)
        assert found.met == ([2] if last == 2 else [])


# -- workers -------------------------------------------------------------------------------------


def test_every_worker_is_compared_with_its_namesake(tmp_path: Path) -> None:
    for run, second in (("base", 3.0), ("other", 4.0)):
        save(tmp_path / run, series([1.0]), num_workers=2)
        save(tmp_path / run, series([second]), num_workers=2, worker="worker_1")
    found = judge(SimilarAcrossRuns, tmp_path / "base", other_trials=opened(tmp_path / "other"))
    assert [(one.tensor, one.worker) for one in found.findings] == [(NAME, "worker_1")]


@pytest.mark.parametrize(
    ("workers", "met"),
    [
        pytest.param(("algo-1",), [0], id="lone-workers"),
        pytest.param(("algo-1", "algo-2"), [], id="one-of-two"),
    ],
)
def test_lone_workers_are_compared_whatever_their_names(
    workers: tuple[str, ...], met: list[int], tmp_path: Path
) -> None:
    save(tmp_path / "base", series([1.0]))
    for worker in workers:
        save(tmp_path / "other", series([2.0]), worker=worker, num_workers=len(workers))
    found = judge(SimilarAcrossRuns, tmp_path / "base", other_trials=opened(tmp_path / "other"))
    assert found.met == met


# -- reductions only -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [
        pytest.param({("mean", False): 1.0}, {("mean", False): 1.0}, [], id="the-same"),
        pytest.param(
            {("mean", False): 1.0, ("l2", False): 3.0},
            {("l2", False): 4.0, ("mean", False): 1.0},
            [0],
            id="one-differs",
        ),
        pytest.param({("mean", False): 1.0}, {("mean", True): 2.0}, None, id="none-in-common"),
    ],
)
def test_saved_reductions_are_compared(
    ours: dict[Any, float], theirs: dict[Any, float], met: list[int] | None, tmp_path: Path
) -> None:
    save(tmp_path / "base", {}, reductions={0: {NAME: ours}})
    save(tmp_path / "other", {}, reductions={0: {NAME: theirs}})
    found = judge(SimilarAcrossRuns, tmp_path / "base", other_trials=opened(tmp_path / "other"))
    assert found.met == (met or [])
    assert list(found.skipped) == ([0] if met is None else [])
    assert {one.note for one in found.findings} <= {"Computed from saved reductions."}


# -- how the other run is given ------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder with the finished trials base and other; they differ at step 1."""
    log_nothing()
    for run, value in (("base", 2.0), ("other", 3.0)):
        writer = TrialWriter(tmp_path / run, collections={"losses": "loss"})
        writer.step(0, {"loss": np.array([1.0])})
        writer.step(1, {"loss": np.array([value])})
        writer.close()
    return tmp_path


def met_at(config: EvaluationConfig) -> tuple[str, int | None]:
    (rule,) = Runner(config).run().result.rules
    result = saved.result(config.output)
    evidence = result["evidence"]
    return str(rule.outcome), evidence[0]["step"] if evidence else None


@pytest.mark.parametrize("name", ["other_trials", "other_trial", "other_trial_0"])
def test_the_other_run_may_be_a_parameter(name: str, runs: Path) -> None:
    job = rule_job("SimilarAcrossRuns", parameters={name: str(runs / "other")})
    config = configured(runs / "out", [job], str(runs / "base"))
    assert config.others_of(config.rules[0]) == (address_of(str(runs / "other")),)
    assert met_at(config) == ("IssuesFound", 1)


def test_the_other_run_may_be_an_option(runs: Path) -> None:
    others = (str(runs / "other"),)
    job = rule_job("SimilarAcrossRuns", parameters={"other_trials": others[0]})
    for each, jobs in (("a", ["SimilarAcrossRuns"]), ("b", [job])):
        rules = [rule_job(one) if isinstance(one, str) else one for one in jobs]
        config = configured(runs / each, rules, str(runs / "base"), other_trials=others)
        assert config.other_trials == others
        assert met_at(config) == ("IssuesFound", 1)


def test_a_rule_in_a_process_of_its_own_sees_the_other_run(runs: Path) -> None:
    job = rule_job("SimilarAcrossRuns", parameters={"other_trials": str(runs / "other")})
    config = configured(runs / "out", [job], str(runs / "base"), rule_timeout=60.0)
    assert met_at(config) == ("IssuesFound", 1)


def test_without_another_run_the_sentence_names_the_option(runs: Path) -> None:
    sentence = (
        "Parameter 'other_trials' is required: "
        "the path of the run to compare with, as by --other-trial PATH."
    )
    with pytest.raises(SMDebugValueError, match=sentence):
        judge(SimilarAcrossRuns, runs / "base")
    config = configured(runs / "out", [rule_job("SimilarAcrossRuns")], str(runs / "base"))
    (rule,) = Runner(config).run().result.rules
    assert (rule.status, rule.status_details) == ("Error", f"ClientError: {sentence}")


def test_another_run_that_does_not_exist_is_reported(runs: Path) -> None:
    job = rule_job("SimilarAcrossRuns", parameters={"other_trials": str(runs / "none")})
    with pytest.raises(TrialError, match="none' does not exist"):
        Runner(configured(runs / "out", [job], str(runs / "base")))


def test_in_python_a_path_will_do(runs: Path) -> None:
    other = str(runs / "other")
    assert judge(SimilarAcrossRuns, runs / "base", other_trials=other).met == [1]
    with pytest.raises(MissingCollectionFiles, match="none"):
        judge(SimilarAcrossRuns, runs / "base", other_trials=str(runs / "none"))


def test_of_several_other_runs_the_first_counts(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others = [opened(runs / "base"), opened(runs / "other")]
    with caplog.at_level(logging.WARNING):
        found = judge(SimilarAcrossRuns, runs / "base", other_trials=others)
    assert found.met == []
    assert "the first of 2 other trials" in caplog.text


@pytest.mark.parametrize("params", [{"tensor_regex": "("}, {"collection_names": ["a", 1]}])
def test_bad_parameters_are_refused(params: dict[str, Any], runs: Path) -> None:
    with pytest.raises(SMDebugValueError, match=f"Parameter '{next(iter(params))}' must be"):
        judge(SimilarAcrossRuns, runs / "base", other_trials=str(runs / "other"), **params)


def test_a_misspelt_name_is_refused_with_the_right_one() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'other_trials'"):
        bind(load_builtin("SimilarAcrossRuns"), {"other_trails": "/runs/a"})
