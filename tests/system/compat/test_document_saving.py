"""Each documented parameter of a collection, from its configuration to what a hook saves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rule_runner.debugger import CollectionConfig, DebuggerHookConfig
from smdebug import ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.core.hook import Hook
from smdebug.trials import Trial, create_trial

STEPS = 12
MODES = ("train", "eval", "predict", "global")
# Parameters of one mode, and the mode steps among the first twelve that they save.
WHEN: dict[str, tuple[dict[str, str], list[int]]] = {
    "save_interval": ({"save_interval": "5"}, [0, 5, 10]),
    "save_steps": ({"save_steps": "1,5,7"}, [1, 5, 7]),
    "save_steps and save_interval": (
        {"save_steps": "1,7,9", "save_interval": "100"},
        [0, 1, 7, 9],
    ),
    "start_step": ({"start_step": "4", "save_interval": "3"}, [6, 9]),
    "end_step": ({"end_step": "4", "save_interval": "3"}, [0, 3]),
}
REDUCTIONS = ("min", "max", "median", "mean", "std", "variance", "sum", "prod")


def train(hook: Hook, mode: modes) -> None:
    hook.set_mode(mode)
    for step in range(STEPS):
        hook.save_tensor("loss", np.float32([-1.0, 2.0, step]), "losses")
        hook.save_tensor("relu/0", np.ones(2), "mine")
        hook.step()


def save(path: Path, collection: CollectionConfig, mode: modes = modes.TRAIN) -> Trial:
    """Return the trial that a hook saves which was configured as SageMaker configures one."""
    request = DebuggerHookConfig("s3://unused", collection_configs=[collection])._to_request_dict()
    config = path / "debughookconfig.json"
    config.write_text(json.dumps(request | {"LocalPath": str(path / "trial")}))
    with Hook.create_from_json_file(str(config)) as hook:
        train(hook, mode)
    return create_trial(str(path / "trial"))


def prefixed(parameters: dict[str, str], mode: str) -> dict[str, str]:
    return {f"{mode}.{key}": value for key, value in parameters.items()}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", WHEN)
def test_when_of_one_mode(tmp_path: Path, key: str, mode: str) -> None:
    parameters, steps = WHEN[key]
    own = modes[mode.upper()]
    trial = save(tmp_path, CollectionConfig("losses", prefixed(parameters, mode)), own)
    assert trial.tensor("loss").steps(mode=own) == steps


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", WHEN)
def test_when_of_all_modes(tmp_path: Path, key: str, mode: str) -> None:
    parameters, steps = WHEN[key]
    own = modes[mode.upper()]
    trial = save(tmp_path, CollectionConfig("losses", parameters), own)
    assert trial.tensor("loss").steps(mode=own) == steps


def test_the_default_interval_is_500(tmp_path: Path) -> None:
    trial = save(tmp_path, CollectionConfig(name="losses"))
    assert trial.tensor("loss").steps() == [0]
    assert SaveConfig().get_save_config(modes.TRAIN) == SaveConfigMode(save_interval=500)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(tmp_path: Path, name: str) -> None:
    parameters = {"include_regex": "relu", "reductions": name, "save_interval": "6"}
    trial = save(tmp_path, CollectionConfig("mine", parameters))
    result = trial.tensor("relu/0").reduction_values(6)
    assert {key: float(value.item()) for key, value in result.items()} == {
        (name, False): 2.0 if name == "sum" else 0.0 if name in {"std", "variance"} else 1.0
    }


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_in_python(name: str) -> None:
    config = ReductionConfig(reductions=[name], abs_reductions=[name])
    assert (config.reductions, config.abs_reductions) == ([name], [name])
    assert ReductionConfig.from_json(config.to_json()) == config


def test_include_regex(tmp_path: Path) -> None:
    trial = save(tmp_path, CollectionConfig("mine", {"include_regex": "relu,tanh"}))
    assert trial.tensor_names(collection="mine") == ["relu/0"]
    assert trial.collection("mine").include_regex == ["relu", "tanh"]


@pytest.mark.parametrize("value", ["True", "False"])
def test_save_histogram(tmp_path: Path, value: str) -> None:
    trial = save(
        tmp_path, CollectionConfig("mine", {"include_regex": "relu", "save_histogram": value})
    )
    assert trial.collection("mine").save_histogram is (value == "True")


def test_the_example_of_two_intervals(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {"train.save_interval": "5", "eval.save_interval": "4"}
    trial = save(tmp_path, CollectionConfig("losses", parameters), modes.EVAL)
    assert trial.tensor("loss").steps(mode=modes.EVAL) == [0, 4, 8]
