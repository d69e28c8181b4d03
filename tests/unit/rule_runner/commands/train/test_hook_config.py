import json
from pathlib import Path
from typing import Any

import pytest

from builtin_rules import RULES
from rule_core.saving.hook_config import load_hook_config
from rule_runner.commands.train.hook_config import (
    FIRST_STEPS,
    KNOWN,
    OFTEN,
    hook_document,
)
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import rule_jobs
from rule_runner.errors import ClientError, UsageError

REDUCED = {
    "include_regex": "^gradient",
    "reductions": "min,max,mean,std,abs_min,abs_max,abs_mean",
    "save_shape": "true",
}


def jobs(*rules: str, params: tuple[str, ...] = ()) -> tuple[RuleJobConfig, ...]:
    requests = tuple(RuleRequest(name=rule) for rule in rules)
    return rule_jobs(EvaluationRequest(rules=requests, parameters=params))


def written(tmp_path: Path, document: dict[str, Any]) -> Path:
    file = tmp_path / "hook.json"
    file.write_text(json.dumps(document))
    return file


def entries(document: dict[str, Any]) -> dict[str, Any]:
    found = document["CollectionConfigurations"]
    return {one["CollectionName"]: one["CollectionParameters"] for one in found}


@pytest.mark.parametrize(
    ("rules", "params", "expected"),
    [
        pytest.param(["LossNotDecreasing"], [], ["losses"], id="losses-always"),
        pytest.param(["VanishingGradient"], [], ["losses", "gradients"], id="fixed"),
        pytest.param(["DeadRelu"], [], ["losses", "relu_output"], id="declared-default"),
        pytest.param(["DeadRelu"], ["tensor_regex=act"], ["losses"], id="own-pattern"),
        pytest.param(
            ["AllZero"],
            ["collection_names=weights,mine"],
            ["losses", "weights"],
            id="what-no-hook-knows-is-left-out",
        ),
        pytest.param(
            ["DeadRelu", "VanishingGradient"],
            [],
            ["losses", "gradients", "relu_output"],
            id="union",
        ),
    ],
)
def test_what_rules_read_is_saved(rules: list[str], params: list[str], expected: list[str]) -> None:
    document = hook_document(None, jobs(*rules, params=tuple(params)), None, 10)
    assert list(entries(document)) == [*OFTEN, *expected[1:]]


def test_patterns_of_parameters_are_saved() -> None:
    chosen = jobs("AllZero", params=("tensor_regex=conv.*,fc",))
    parameters = hook_document(None, chosen, None, 5)["HookParameters"]
    assert parameters == {
        "include_workers": "all",
        "save_interval": "5",
        "include_regex": "conv.*,fc",
        "preset": "auto",
    }


def test_numbers_about_gradients_do_for_rules_that_need_no_more() -> None:
    few = entries(hook_document(None, jobs("ExplodingTensor", "VanishingGradient"), None, 10))
    assert few["gradients"] == REDUCED
    chosen = jobs("AllZero", "VanishingGradient", params=("AllZero.collection_names=gradients",))
    assert entries(hook_document(None, chosen, None, 10))["gradients"] == {
        "include_regex": "^gradient"
    }


def test_each_of_the_first_losses_is_saved() -> None:
    found = entries(hook_document(None, jobs("LossNotDecreasing"), None, 10))
    assert found["losses"] == {"save_steps": FIRST_STEPS}
    assert FIRST_STEPS.startswith("0,1,2,")


def test_predictions_are_saved_at_the_first_steps() -> None:
    found = entries(hook_document(None, jobs("ProbabilitiesAsLogits"), None, 5))
    assert found["loss_inputs"] == {"end_step": "100"}


def test_collections_that_are_given_take_the_place_of_what_rules_read() -> None:
    document = hook_document(None, jobs("VanishingGradient"), "losses, weights,losses", 3)
    assert list(entries(document)) == ["losses", "weights"]


def test_misspelt_collection_is_an_error() -> None:
    text = "No hook knows the collection 'gradeints'. Did you mean 'gradients'?"
    with pytest.raises(UsageError, match=text.replace("?", r"\?")):
        hook_document(None, jobs("VanishingGradient"), "gradeints", 10)


def test_file_says_it_all(tmp_path: Path) -> None:
    given = {
        "LocalPath": "/somewhere",
        "HookParameters": {"save_interval": "7", "include_workers": "one"},
        "CollectionConfigurations": [{"CollectionName": "weights"}],
    }
    file = written(tmp_path, given)
    assert hook_document(file, jobs("VanishingGradient"), None, None) == given


def test_options_say_more_than_the_file(tmp_path: Path) -> None:
    mine = {
        "CollectionName": "mine",
        "CollectionParameters": {"include_regex": "x", "save_interval": "2"},
    }
    file = written(tmp_path, {"HookParameters": None, "CollectionConfigurations": [mine]})
    document = hook_document(file, jobs("VanishingGradient"), "mine,biases", 4)
    assert document["HookParameters"] == {"include_workers": "all", "save_interval": "4"}
    assert entries(document) == {
        "mine": {"include_regex": "x"},
        "biases": {"include_regex": "^(?!gradient).*bias"},
    }


def test_file_that_no_hook_can_read_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path, {"HookParameters": {"save_interval": "x"}})
    with pytest.raises(ClientError, match="save_interval of HookParameters must be an integer"):
        hook_document(file, jobs("VanishingGradient"), None, None)


def test_wrong_parameter_is_an_error() -> None:
    with pytest.raises(
        ClientError, match="Parameter 'tensor_regex' must be comma-separated regular expressions"
    ):
        hook_document(None, jobs("AllZero", params=("tensor_regex=(",)), None, 10)


def test_the_hook_understands_the_document(tmp_path: Path) -> None:
    document = hook_document(None, jobs("VanishingGradient"), None, 10)
    config = load_hook_config(written(tmp_path, document))
    losses, *_, gradients = config.collections
    assert [one.name for one in config.collections] == [*OFTEN, "gradients"]
    assert config.preset == "auto"
    assert losses.save_config is not None
    assert gradients.reduction_config is not None
    assert (config.include_workers, gradients.reduction_config.save_shape) == ("all", True)


@pytest.mark.parametrize("rule", RULES)
def test_rules_name_collections_that_hooks_know(rule: str) -> None:
    assert {*RULES[rule].SAVED} - KNOWN == set()


def test_of_all_rules_only_cheap_inputs_are_saved() -> None:
    chosen = jobs("UnchangedTensor", "DeadRelu", "RepeatedBatches", "ValidationInTrainingMode")
    found = entries(hook_document(None, chosen, None, 10, is_cheap=True))
    assert list(found) == [*OFTEN, "fingerprints", "gradients", "model"]
    assert found["gradients"] == REDUCED
    assert found["model"] == {"save_steps": FIRST_STEPS}


def test_a_preset_is_chosen_by_the_model_unless_an_option_says_what_to_save(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, {"HookParameters": {"preset": "llm"}})
    for arguments, preset in (
        ((None, (), None, None), "auto"),
        ((None, (), None, None, "none"), "none"),
        ((None, (), "losses", None), None),
        ((None, (), "losses", None, "llm"), "llm"),
        ((file, (), None, None), "llm"),
        ((file, (), None, None, "none"), "none"),
    ):
        assert hook_document(*arguments)["HookParameters"].get("preset") == preset
