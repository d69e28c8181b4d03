"""What trials, tensors and rules answer at the edges: as smdebug, or better where nobody minds."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import documented_trial as documented
import numpy as np
import pytest
from documented_trial import NAMES

from smdebug import modes
from smdebug.analysis.utils import no_refresh, refresh
from smdebug.core.collection import Collection
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import (
    InvalidWorker,
    MissingCollectionFiles,
    NoMoreData,
    RuleEvaluationConditionMet,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial

# -- create_trial ---------------------------------------------------------------------------------


def test_white_space_around_a_path_is_ignored(documented_path: Path) -> None:
    trial = create_trial(f"  {documented_path} ")
    assert (trial.path, trial.name) == (str(documented_path), "resnet")


def test_a_path_that_ends_in_a_slash_has_an_empty_name(documented_path: Path) -> None:
    assert create_trial(f"{documented_path}/").name == ""


@pytest.mark.parametrize("argument", ["check", "index_mode", "cache", "parallel"])
def test_arguments_without_effect(documented_path: Path, argument: str) -> None:
    arguments: dict[str, Any] = {argument: True}
    assert create_trial(str(documented_path), **arguments).steps() == list(range(12))


def test_unknown_arguments(documented_path: Path) -> None:
    arguments: dict[str, Any] = {"out_dir": "x"}
    with pytest.raises(TypeError):
        create_trial(str(documented_path), **arguments)


@pytest.mark.parametrize("range_steps", [(-1, 3), (5, 5), (6, 5), ("a", None), (1.5, 2)])
def test_ranges_that_are_none(documented_path: Path, range_steps: Any) -> None:
    with pytest.raises(ValueError, match="range_steps"):
        create_trial(str(documented_path), range_steps=range_steps)


def test_too_few_collections_at_the_end(tmp_path: Path) -> None:
    with TrialWriter(tmp_path, num_workers=1) as writer:
        writer.step(0, {"w": 1.0})
    collections = next((tmp_path / "collections").rglob("*.json"))
    collections.write_text(collections.read_text().replace('"num_workers":1', '"num_workers":2'))
    with pytest.raises(MissingCollectionFiles):
        create_trial(str(tmp_path))


def test_equality_is_of_name_and_path(documented_path: Path) -> None:
    first, second = create_trial(str(documented_path)), create_trial(str(documented_path))
    assert first == second
    assert hash(first) == hash(second)
    assert first != create_trial(str(documented_path), name="other")


# -- refreshing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [no_refresh, refresh])
@pytest.mark.parametrize("before", [True, False])
def test_what_held_before_a_block_holds_after_it(
    documented_path: Path, block: Callable[[Trial], Any], before: bool
) -> None:
    trial = create_trial(str(documented_path))
    trial.dynamic_refresh = before
    with block(trial):
        pass
    assert trial.dynamic_refresh is before
    with pytest.raises(KeyError), block(trial):
        raise KeyError
    assert trial.dynamic_refresh is before


def test_waiting_leaves_refreshing_on(documented_path: Path) -> None:
    trial = create_trial(str(documented_path))
    trial.wait_for_steps([3])
    assert trial.dynamic_refresh is True


# -- trials ---------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Callable[[Trial], object], object]] = {
    "names at an unknown step": (lambda trial: trial.tensor_names(step=99), []),
    "names of an unknown mode": (lambda trial: trial.tensor_names(mode=modes.PREDICT), []),
    "names at an unknown step of a mode": (
        lambda trial: trial.tensor_names(step=99, mode=modes.TRAIN),
        [],
    ),
    "names at a step of an unknown mode": (
        lambda trial: trial.tensor_names(step=0, mode=modes.PREDICT),
        [],
    ),
    "names that nothing matches": (lambda trial: trial.tensor_names(regex="zzz"), []),
    "names of an unknown collection": (lambda trial: trial.tensor_names(collection="zz"), []),
    "names by nested lists": (
        lambda trial: trial.tensor_names(regex=["relu", ["soft", ["^loss"]]]),
        ["loss", "relu_output", "softmax_output"],
    ),
    "names are searched": (lambda trial: trial.tensor_names(regex="_output$"), NAMES[2:4]),
    "names with the old first argument": (lambda trial: trial.tensor_names(True), NAMES),
    "names of all by keyword": (
        lambda trial: trial.tensor_names(show_prefixed_tensors=True),
        NAMES,
    ),
    "names with reductions only": (
        lambda trial: "weight" in trial.tensor_names(step=0),
        True,
    ),
    "mode of an unknown step": (lambda trial: trial.mode(99), None),
    "mode step of an unknown step": (lambda trial: trial.mode_step(99), None),
    "mode and mode step": (lambda trial: trial.mode_modestep(7), (modes.EVAL, 1)),
    "mode and mode step of none": (lambda trial: trial.mode_modestep(99), (None, None)),
    "global step is itself": (lambda trial: trial.global_step(modes.GLOBAL, 77), 77),
    "unknown mode step": (lambda trial: trial.global_step(modes.TRAIN, 77), None),
    "step of an unknown mode": (lambda trial: trial.global_step(modes.PREDICT, 0), None),
    "modes are a list": (lambda trial: trial.modes(), [modes.TRAIN, modes.EVAL]),
    "steps of an unknown mode": (lambda trial: trial.steps(modes.PREDICT), []),
    "incomplete steps": (lambda trial: trial.steps(show_incomplete_steps=True), [*range(12)]),
    "workers by name": (lambda trial: trial.worker_set, {"worker_0"}),
    "number of workers": (lambda trial: trial.num_workers, 1),
    "last complete step": (lambda trial: trial.last_complete_step, 11),
    "all was loaded": (lambda trial: trial.loaded_all_steps, True),
    "no range": (lambda trial: trial.range_steps, None),
    "an unknown collection is empty": (
        lambda trial: trial.collection("unknown").include_regex,
        [],
    ),
    "a collection is kept": (
        lambda trial: trial.collection("kept") is trial.collections()["kept"],
        True,
    ),
    "no predictions": (lambda trial: trial.predictions(0), []),
    "no labels": (lambda trial: trial.labels(0, modes.TRAIN), []),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_answer_of_a_trial(ended: Trial, question: str) -> None:
    ask, answer = ANSWERS[question]
    assert ask(ended) == answer


def test_a_collection_of_another_type(ended: Trial) -> None:
    wrong: Any = 3
    with pytest.raises(TypeError):
        ended.tensor_names(collection=wrong)


def test_a_bad_pattern(ended: Trial) -> None:
    with pytest.raises(re.error):
        ended.tensor_names(regex="(")


def test_changes_to_a_collection_count(documented_path: Path) -> None:
    trial = create_trial(str(documented_path))
    trial.collection("relu").include("^loss$")
    trial.collection("mine").add_tensor_name("weight")
    assert trial.tensor_names(collection="relu") == ["loss", "relu_output"]
    assert trial.tensor_names(collection="mine") == ["weight"]


@pytest.mark.parametrize("kind", ["labels", "predictions"])
def test_labels_and_predictions_of_a_mode(tmp_path: Path, kind: str) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"loss": 1.0}, mode=modes.TRAIN, mode_step=0)
        tensors = {f"{kind}_{number}": float(number) for number in (10, 2)}
        writer.step(1, tensors, mode=modes.EVAL, mode_step=0)
    trial = create_trial(str(tmp_path))
    result = getattr(trial, kind)(0, modes.EVAL)
    assert [value.item() for value in result] == [2.0, 10.0]


# -- completeness ---------------------------------------------------------------------------------

STATES = [
    (0, modes.GLOBAL, "AVAILABLE"),
    (2, modes.GLOBAL, "AVAILABLE"),
    (3, modes.GLOBAL, "NOT_YET_AVAILABLE"),
    (4, modes.GLOBAL, "NOT_YET_AVAILABLE"),
    (0, modes.TRAIN, "NOT_YET_AVAILABLE"),
]


@pytest.mark.parametrize(("step", "mode", "state"), STATES)
def test_state_of_a_step_of_a_running_trial(
    workers: Trial, step: int, mode: modes, state: str
) -> None:
    assert workers.has_passed_step(step, mode).name == state


@pytest.mark.parametrize("mode", [modes.GLOBAL, modes.TRAIN, modes.EVAL, modes.PREDICT])
def test_state_beyond_the_end(ended: Trial, mode: modes) -> None:
    assert ended.has_passed_step(50, mode).name == "UNAVAILABLE"


def test_steps_of_an_ended_trial_count_without_all_workers(tmp_path: Path) -> None:
    documented.write_workers(tmp_path)
    trial = create_trial(str(tmp_path))
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor("w").steps() == [0, 1, 2, 3]
    assert trial.has_passed_step(3).name == "AVAILABLE"


# -- tensors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "n", "steps"),
    [(3, None, [0, 1, 2, 3]), (3, 0, []), (100, 2, [10, 11]), (-1, 2, [])],
)
def test_prev_steps_at_the_edges(ended: Trial, step: int, n: int | None, steps: list[int]) -> None:
    assert ended.tensor("loss").prev_steps(step, n) == steps


def test_a_negative_number_of_prev_steps(ended: Trial) -> None:
    with pytest.raises(ValueError, match="-2"):
        ended.tensor("loss").prev_steps(3, -2)


FAULTS: dict[str, tuple[Callable[[Trial], object], type[Exception]]] = {
    "a worker that is none": (
        lambda trial: trial.tensor("loss").value(0, worker="x"),
        InvalidWorker,
    ),
    "values of a worker that is none": (
        lambda trial: trial.tensor("loss").values(worker="x"),
        InvalidWorker,
    ),
    "a step behind the end": (lambda trial: trial.tensor("loss").value(50), StepUnavailable),
    "a step of another mode": (
        lambda trial: trial.tensor("loss").value(50, mode=modes.EVAL),
        StepUnavailable,
    ),
    "a tensor not of this step": (
        lambda trial: trial.tensor("softmax_output").value(0),
        TensorUnavailableForStep,
    ),
    "the value of reductions": (
        lambda trial: trial.tensor("weight").value(0),
        TensorUnavailableForStep,
    ),
    "the shape of reductions": (
        lambda trial: trial.tensor("weight").shape(0),
        ShapeUnavailableForStep,
    ),
    "an unknown reduction": (
        lambda trial: trial.tensor("loss").reduction_value(0, "range"),
        SMDebugValueError,
    ),
    "workers at an unknown step": (
        lambda trial: trial.tensor("loss").workers(50),
        TensorUnavailableForStep,
    ),
    "step is gone": (lambda trial: trial.tensor("loss").step(0), SMDebugNotImplementedError),
    "an unknown tensor": (lambda trial: trial.tensor("x"), TensorUnavailable),
    "waiting behind the end": (lambda trial: trial.wait_for_steps([0, 12]), NoMoreData),
    "waiting behind the end of a mode": (
        lambda trial: trial.wait_for_steps([3], modes.EVAL),
        NoMoreData,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_of_a_trial(ended: Trial, fault: str) -> None:
    ask, error = FAULTS[fault]
    with pytest.raises(error) as caught:
        ask(ended)
    assert type(caught.value) is error


def test_a_step_that_may_come(workers: Trial) -> None:
    with pytest.raises(StepNotYetAvailable) as caught:
        workers.tensor("w").value(9, mode=modes.GLOBAL)
    assert (caught.value.step, caught.value.mode) == (9, modes.GLOBAL)


def test_the_error_names_tensor_and_step_and_hints_at_reductions(ended: Trial) -> None:
    with pytest.raises(TensorUnavailableForStep, match="eductions of it were saved") as caught:
        ended.tensor("weight").value(1, mode=modes.TRAIN)
    error = caught.value
    assert (error.tname, error.step, error.mode, error.has_reductions) == (
        "weight",
        1,
        modes.TRAIN,
        True,
    )


def test_the_first_worker_answers(workers: Trial) -> None:
    assert workers.tensor("w").value(1).tolist() == [10, 10]


def test_an_incomplete_step_can_be_read(workers: Trial) -> None:
    assert workers.tensor("w").value(3).tolist() == [30, 30]


def test_values_are_the_callers_own(ended: Trial) -> None:
    first = ended.tensor("loss").value(0)
    first += 100
    assert ended.tensor("loss").value(0)[0] == 1


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        ([[3.0, -4.0], [0.0, 0.0]], "l2", 5.0),
        ([[3.0, -4.0], [1.0, 0.0]], "l1", 8.0),
        ([[[1.0], [2.0]], [[3.0], [4.0]]], "l1", 10.0),
        (-7.0, "l2", 7.0),
        ([1.0, 2.0, 3.0, 4.0], "std", math.sqrt(1.25)),
        ([1.0, 2.0, 3.0, 4.0], "variance", 1.25),
        ([1.0, math.nan], "max", math.nan),
        ([1.0, 9.0, 2.0], "median", 2.0),
    ],
    ids=repr,
)
def test_reductions_are_over_all_elements(
    tmp_path: Path, values: Any, name: str, expected: float
) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"w": np.float64(values)})
    result = create_trial(str(tmp_path)).tensor("w").reduction_value(0, name)
    assert float(result) == pytest.approx(expected, nan_ok=True)


def test_stored_values_win_over_computed_ones(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"w": np.ones(3)}, reductions={"w": {("mean", False): np.float64(42)}})
    tensor = create_trial(str(tmp_path)).tensor("w")
    assert float(np.ravel(tensor.reduction_value(0, "mean"))[0]) == 42
    assert float(np.ravel(tensor.reduction_value(0, "mean", abs=True))[0]) == 1


# -- rules ----------------------------------------------------------------------------------------


class Quiet(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(step < 0)


def test_attributes_of_a_rule(ended: Trial) -> None:
    rule = Quiet(ended)
    assert (rule.base_trial, rule.other_trials, rule.trials) == (ended, None, [ended])
    assert rule.rule_name == "Quiet"
    assert rule.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 0,
        "RuleParameters": "",
    }
    rule.logger.info("It has a logger.")


def test_a_rule_is_abstract(ended: Trial) -> None:
    abstract: Any = Rule
    with pytest.raises(TypeError):
        abstract(ended)


def test_required_tensors(ended: Trial) -> None:
    required = Quiet(ended).req_tensors
    steps = [0]
    required.add("loss", steps)
    required.add("loss", [1])
    assert steps == [0]
    assert required.get_tensor_steps("loss") == [0, 1]
    required.add("_output$", [3], should_match_regex=True)
    required.add("nothing.*", [3], should_match_regex=True)
    assert sorted(required.get_names()) == ["loss", "relu_output", "softmax_output"]
    assert sorted(tensor.name for tensor in required.get()) == sorted(required.get_names())
    with pytest.raises(TensorUnavailable):
        required.add("nothing", [0])
    with pytest.raises(KeyError):
        required.get_tensor_steps("weight")
    with pytest.raises(KeyError):
        required.get(create_trial(ended.path, name="other"))
    required.clear()
    assert list(required.get_names()) == []


def test_a_required_tensor_may_be_reductions_only(ended: Trial) -> None:
    class Required(Quiet):
        def set_required_tensors(self, step: int) -> None:
            self.req_tensors.add("weight", [step])

        def invoke_at_step(self, step: int) -> bool:
            return step >= 0

    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(Required(ended), start_step=3, raise_eval_cond=True)
    assert met.value.step == 4


def test_the_end_of_a_rule_ends_its_loop(ended: Trial) -> None:
    class Ending(Quiet):
        def invoke_at_step(self, step: int) -> bool:
            raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)

    invoke_rule(Ending(ended))


@pytest.mark.parametrize("start", [None, 0])
def test_no_start_is_the_first_step(ended: Trial, start: int | None) -> None:
    invoke_rule(Quiet(ended), start_step=start, end_step=3)


def test_other_errors_of_a_rule_come_out(ended: Trial) -> None:
    class Broken(Quiet):
        def invoke_at_step(self, step: int) -> bool:
            return bool(step // 0)

    trial = ended.share()
    with pytest.raises(ZeroDivisionError):
        invoke_rule(Broken(trial))
    assert trial.dynamic_refresh is True


# -- collections ----------------------------------------------------------------------------------


def test_collections_are_compared_by_all_and_hashed_by_name() -> None:
    first, second = Collection("c", ["a"]), Collection("c", ["a"])
    assert first == second
    second.include(["b", ["c"]])
    assert first != second
    assert hash(first) == hash(second)
    assert second.include_regex == ["a", "b", "c"]
    first.add_tensor_name("t")
    assert first.has_tensor_name("t")
    first.remove_tensor_name("t")
    assert first.tensor_names == set()
