"""What a hook saves of a training loop, at which steps, and under which names."""

from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
from hooked import ONES

from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.saving.hook import Hook
from smdebug import modes


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def train(hook: Hook, steps: int, *names: str) -> None:
    """Save tensors that hold the number of the step, for so many steps, and close."""
    with hook:
        for step in range(steps):
            for name in names:
                hook.save_tensor(name, np.float32([step]))
            hook.step()


# -- which steps ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SaveConfig(save_interval=3), [0, 3, 6, 9]),
        (SaveConfig(save_interval=3, start_step=2, end_step=7), [3, 6]),
        (SaveConfig(save_interval=100, save_steps=[2, 5]), [0, 2, 5]),
        (SaveConfigMode(save_interval=4), [0, 4, 8]),
        ({"GLOBAL": {"save_interval": 5}}, [0, 5]),
        (None, [0]),
    ],
    ids=str,
)
def test_steps_of_a_configuration(tmp_path: Path, config: Any, expected: list[int]) -> None:
    train(Hook(tmp_path, save_config=config), 10, "w")
    assert hooked.values(hooked.opened(tmp_path), "w") == {step: [step] for step in expected}


def test_an_empty_folder_name_is_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train(Hook(out_dir=""), 1, "w")
    assert hooked.values(hooked.opened(tmp_path), "w") == {0: [0]}


def test_a_tensor_of_no_collection_is_saved_where_others_are(tmp_path: Path) -> None:
    with Hook(tmp_path, save_config=SaveConfig(save_interval=2), on_error="raise") as hook:
        for step in range(3):
            hook.save_tensor("w", np.float32([step]))
            hook._write_raw_tensor_simple("tokens", np.array([step]))
            hook.step()
    trial = hooked.opened(tmp_path)
    assert hooked.values(trial, "tokens") == {0: [0], 2: [2]}
    assert trial.tensor_names(collection="default") == ["w"]


def test_each_mode_counts_its_own_steps(tmp_path: Path) -> None:
    config = {
        modes.TRAIN: SaveConfigMode(save_interval=2),
        modes.EVAL: SaveConfigMode(save_steps=[1], start_step=99),
    }
    hook = Hook(tmp_path, save_config=SaveConfig(config), on_error="raise")
    with hook:
        for _ in range(2):
            for mode, steps in ((modes.TRAIN, 3), (modes.EVAL, 2), (modes.PREDICT, 1)):
                hook.set_mode(mode)
                for _ in range(steps):
                    hook.save_tensor("w", ONES)
                    hook.step()
        assert hook.mode_steps == {modes.TRAIN: 5, modes.EVAL: 3, modes.PREDICT: 1}
        assert hook.global_step == 11
    trial = hooked.opened(tmp_path)
    assert [(step, *trial.mode_modestep(step)) for step in trial.steps()] == [
        (0, modes.TRAIN, 0),
        (2, modes.TRAIN, 2),
        (4, modes.EVAL, 1),
        (5, modes.PREDICT, 0),
        (7, modes.TRAIN, 4),
    ]


def test_a_step_belongs_to_the_mode_in_which_it_began(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.set_mode(modes.TRAIN)
        hook.save_tensor("w", ONES)
        hook.set_mode(modes.EVAL)
        hook.save_scalar("lr", 0.1)
        hook.step()
        hook.save_tensor("w", ONES)
    trial = hooked.opened(tmp_path)
    assert [trial.mode_modestep(step) for step in trial.steps()] == [
        (modes.TRAIN, 0),
        (modes.EVAL, 0),
    ]
    assert hooked.records(tmp_path) == {0: ["w", "scalar/lr"], 1: ["w"]}


def test_steps_without_tensors_count_and_are_not_written(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for _ in range(3):
            hook.step()
        hook.save_tensor("w", ONES)
        hook.step()
    assert hooked.records(tmp_path) == {3: ["w"]}


def test_collections_are_saved_at_steps_of_their_own(tmp_path: Path) -> None:
    often = Collection("often", ["^o"], save_config=SaveConfig(save_interval=2))
    hook = hooked.hook(tmp_path, save_config=SaveConfig(save_interval=3))
    hook.add_collection(often)
    hook.get_collection("default").save_config = SaveConfig(save_steps=[5], start_step=99)
    with hook:
        for _ in range(7):
            for name in ("o", "loss", "x"):
                hook.save_tensor(name, ONES, () if name != "x" else "default")
            hook.step()
    assert hooked.records(tmp_path) == {
        0: ["o", "loss"],
        2: ["o"],
        3: ["loss"],
        4: ["o"],
        5: ["x"],
        6: ["o", "loss"],
    }


def test_gradients_are_saved_in_training_only(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, include_collections=["gradients", "weights"]) as hook:
        for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT, modes.GLOBAL):
            hook.set_mode(mode)
            hook.save_tensor("gradient/weight", ONES, ())
            hook.save_tensor("weight", ONES, [])
            hook.step()
    both = ["gradient/weight", "weight"]
    assert hooked.records(tmp_path) == {0: both, 1: ["weight"], 2: ["weight"], 3: both}


NAMES = ("conv/weight", "conv/bias", "gradient/conv/weight", "my_Loss", "other")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["my_Loss"]),
        ({"include_collections": "weights"}, ["conv/weight", "my_Loss"]),
        ({"include_collections": ["biases", "gradients"]}, [*NAMES[1:3], "my_Loss"]),
        ({"include_regex": "^other$"}, ["my_Loss", "other"]),
        ({"include_collections": ["all"]}, list(NAMES[:4])),
        ({"save_all": True}, list(NAMES)),
    ],
    ids=str,
)
def test_default_patterns(tmp_path: Path, options: Any, expected: list[str]) -> None:
    with hooked.hook(tmp_path, **options) as hook:
        for name in NAMES:
            hook.save_tensor(name, ONES, ())
        hook.step()
    assert hooked.records(tmp_path) == {0: expected}


# -- what of a tensor -------------------------------------------------------------------------

REDUCED = np.float32([[3, -4], [0, 1]])
NUMBERS = {("min", False): -4.0, ("mean", True): 2.0, ("l2", False): float(np.sqrt(26))}
WANTED: dict[str, Any] = {"reductions": ["min"], "norms": ["l2"], "abs_reductions": ["mean"]}


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("shape", [True, False])
@pytest.mark.parametrize("wanted", [WANTED, {}], ids=["reduced", "not reduced"])
def test_what_is_saved_of_a_tensor(
    tmp_path: Path, raw: bool, shape: bool, wanted: dict[str, Any]
) -> None:
    config = ReductionConfig(**wanted, save_raw_tensor=raw, save_shape=shape)
    with hooked.hook(tmp_path, reduction_config=config) as hook:
        hook.save_tensor("w", REDUCED)
        hook.save_tensor("my_loss", REDUCED, ())
    index = hooked.indexes(tmp_path)[0]
    shapes = [(one["tensorname"], one["shape"]) for one in index["shape_payload"]]
    assert shapes == ([("w", [2, 2])] if shape and not raw else [])
    reductions = [f"smdebug/reductions/{one}/w" for one in ("min", "l2", "abs_mean")]
    expected = [*(reductions if wanted else []), *(["w"] if raw else []), "my_loss"]
    assert hooked.records(tmp_path) == {0: expected}
    trial = hooked.opened(tmp_path)
    assert trial.tensor("my_loss").value(0).tolist() == REDUCED.tolist()
    if wanted:
        found = trial.tensor("w").reduction_values(0)
        assert {one: value.tolist() for one, value in found.items()} == {
            one: [pytest.approx(value)] for one, value in NUMBERS.items()
        }
    if raw:
        assert trial.tensor("w").value(0).tolist() == REDUCED.tolist()


def test_collections_of_a_tensor_add_up(tmp_path: Path) -> None:
    named = [
        Collection("a", ["w"], reduction_config=ReductionConfig(reductions=["min", "max"])),
        Collection("b", ["w"], reduction_config=ReductionConfig(reductions=["max", "sum"])),
        Collection("c", ["w"], reduction_config=ReductionConfig(save_raw_tensor=True)),
    ]
    hook = hooked.hook(tmp_path, collections=named, include_collections=["a", "b"])
    train(hook, 1, "w")
    names = [f"smdebug/reductions/{one}/w" for one in ("min", "max", "sum")]
    assert hooked.records(tmp_path) == {0: [*names, "w"]}


def test_numbers_of_the_configuration_stand_in_the_trial(tmp_path: Path) -> None:
    config = ReductionConfig(**WANTED, save_shape=True)
    hook = hooked.hook(tmp_path, reduction_config=config, include_collections="weights")
    train(hook, 1, "weight")
    weights = hooked.collections(tmp_path)["weights"]
    assert weights["reduction_config"] == {
        "save_raw_tensor": False,
        "reductions": "min,l2_norm,abs_mean",
        "save_shape": True,
    }
    assert weights["save_config"]["EVAL"]["save_interval"] == 1
    assert hooked.collections(tmp_path)["losses"]["reduction_config"] == {
        "save_raw_tensor": True,
        "reductions": "",
        "save_shape": False,
    }
