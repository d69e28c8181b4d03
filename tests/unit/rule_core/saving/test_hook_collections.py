"""Scalars and collections of a hook: where they end up, and when they are made known."""

import json
from pathlib import Path
from typing import Any

import hooked
import msgspec
import numpy as np
import pytest
from hooked import ONES, ToldOutput

from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig
from rule_core.saving.hook import Hook
from smdebug import modes

EVERY_THIRD = SaveConfig(save_interval=3)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


# -- scalars ----------------------------------------------------------------------------------


def test_scalars_wait_for_a_step_that_is_saved(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, save_config=EVERY_THIRD, include_regex="^w$") as hook:
        for step in range(5):
            hook.save_scalar("lr", step)
            hook.save_scalar(f"at_{step}", step)
            hook.save_tensor("w", ONES)
            hook.step()
    assert hooked.records(tmp_path) == {
        0: ["w", "scalar/lr", "scalar/at_0"],
        3: ["w", "scalar/lr", "scalar/at_1", "scalar/at_2", "scalar/at_3"],
        5: ["scalar/lr", "scalar/at_4"],
    }
    trial = hooked.opened(tmp_path)
    assert hooked.values(trial, "scalar/lr") == {0: [0], 3: [3], 5: [4]}


def test_scalars_with_known_names_have_collections(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for name in ("grad_norm", "learning_rate", "loss_scale", "train_runtime", "eval_loss"):
            hook.save_scalar(name, 1.5)
        hook.step()
    trial = hooked.opened(tmp_path)
    collections = {
        name: trial.tensor_names(collection=name)
        for name in ("gradient_norms", "learning_rates", "loss_scales", "metrics")
    }
    assert collections == {
        "gradient_norms": ["scalar/grad_norm"],
        "learning_rates": ["scalar/learning_rate"],
        "loss_scales": ["scalar/loss_scale"],
        "metrics": [],
    }


def test_scalars_alone_make_a_step_if_something_is_saved_at_it(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, save_config=EVERY_THIRD) as hook:
        for step in range(4):
            hook.save_scalar("lr", step)
            hook.step()
    assert hooked.values(hooked.opened(tmp_path), "scalar/lr") == {0: [0], 3: [3]}


def test_scalars_left_at_the_end_are_written_at_a_step_of_their_own(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.set_mode(modes.TRAIN)
        hook.save_tensor("w", ONES)
        hook.step()
        hook.set_mode(modes.EVAL)
        hook.save_scalar("accuracy", 0.9)
    trial = hooked.opened(tmp_path)
    assert hooked.values(trial, "scalar/accuracy") == {1: [0.9]}
    assert trial.mode_modestep(1) == (modes.EVAL, 0)


def test_scalars_of_a_step_that_was_not_ended_are_written(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, save_config=SaveConfig(save_steps=[9], start_step=99)) as hook:
        hook.save_tensor("w", ONES)
        hook.save_scalar("lr", 1.5)
    assert hooked.records(tmp_path) == {0: ["scalar/lr"]}


SCALARS: dict[str, Any] = {
    "python": 1.5,
    "integer": 2,
    "boolean": True,
    "numpy": np.float32(0.1),
    "0-D": np.array(3),
    "one element": np.array([[[4]]], np.int8),
    "nan": np.nan,
}


def test_scalars_of_every_kind(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for name, value in SCALARS.items():
            hook.save_scalar(name, value)
    trial = hooked.opened(tmp_path)
    for name, value in SCALARS.items():
        found = trial.tensor(f"scalar/{name}").value(0)
        expected = np.asarray(value).reshape(1)
        assert (found.shape, found.dtype) == ((1,), expected.dtype)
        assert found.tobytes() == expected.tobytes()


def test_metrics_become_members_of_their_collection(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_scalar("before", 1.0, sm_metric=True)
        hook.save_tensor("w", ONES)
        hook.step()
        hook.save_scalar("later", 1.0, True)
        hook.save_scalar("plain", 1.0)
    assert hooked.members(tmp_path) == {
        "default": ["w"],
        "sm_metrics": ["scalar/before", "scalar/later"],
    }
    trial = hooked.opened(tmp_path)
    assert trial.tensor_names(collection="sm_metrics") == ["scalar/before", "scalar/later"]


def test_a_scalar_carries_the_time_that_it_is_given(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_scalar("lr", 0.5, timestamp=1234.5)
    (path,) = tmp_path.glob("events/*/*.tfevents")
    assert np.frombuffer(path.read_bytes()[13:21], "<f8").tolist() == [1234.5]


# -- collections ------------------------------------------------------------------------------


def test_a_tensor_joins_all_collections_that_it_is_given_to(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("t", ONES, ["a", "b"])
        hook.save_tensor("u", ONES, "b")
        hook.step()
        hook.save_tensor("late", ONES, ("c", "a"))
        hook.step()
    expected = {"a": ["late", "t"], "b": ["t", "u"], "c": ["late"]}
    assert hooked.members(tmp_path) == expected
    assert hooked.records(tmp_path) == {0: ["t", "u"], 1: ["late"]}
    trial = hooked.opened(tmp_path)
    assert {name: trial.tensor_names(collection=name) for name in "abc"} == expected


def test_a_tensor_that_was_saved_before_joins_another_collection(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        for collection in ("default", "other", "default", "losses"):
            hook.save_tensor("t", ONES, collection)
            hook.save_tensor("u", ONES, "other")
            hook.step()
    assert hooked.members(tmp_path) == {"default": ["t"], "losses": ["t"], "other": ["t", "u"]}


def test_a_collection_made_late_is_saved_at_its_first_step(tmp_path: Path) -> None:
    reduced = ReductionConfig(reductions=["max"])
    with hooked.hook(tmp_path, save_config=EVERY_THIRD, reduction_config=reduced) as hook:
        for step in range(7):
            if step >= 2:
                hook.save_tensor("t", ONES, "late")
            hook.step()
    assert hooked.records(tmp_path) == {key: ["smdebug/reductions/max/t"] for key in (3, 6)}
    late = hooked.collections(tmp_path)["late"]
    assert late["reduction_config"]["reductions"] == "max"
    assert late["save_config"]["TRAIN"]["save_interval"] == 3
    assert late["tensor_names"] == ["t"]


def test_a_collection_added_between_steps_is_exported_with_its_patterns(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("w", ONES)
        hook.step()
        hook.add_collection(Collection("late", ["^z"], ["named"]))
        hook.add_collection("empty")
        hook.save_tensor("z1", ONES, ())
        hook.step()
    found = hooked.collections(tmp_path)
    assert (found["late"]["include_regex"], found["late"]["tensor_names"]) == (
        ["^z"],
        ["named", "z1"],
    )
    assert found["empty"]["include_regex"] == []
    assert hooked.records(tmp_path) == {0: ["w"], 1: ["z1"]}


def test_a_collection_replaced_between_steps_keeps_its_members(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, collections=[Collection("c", ["^a"])]) as hook:
        hook.add_collection("c")
        hook.save_tensor("a", ONES, ())
        hook.step()
        hook.add_collection(Collection("c", ["^b"]))
        for name in ("a", "b"):
            hook.save_tensor(name, ONES, ())
        hook.step()
    found = hooked.collections(tmp_path)["c"]
    assert (found["include_regex"], found["tensor_names"]) == (["^b", "^a"], ["a", "b"])
    assert hooked.records(tmp_path) == {0: ["a"], 1: ["b"]}


def test_members_are_known_before_the_index_file_that_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = ToldOutput()
    monkeypatch.setattr("rule_core.saving.hook.open_output", lambda _: output)
    seen: list[list[str]] = []
    publish = hooked.ToldDraft.publish

    def note(self: hooked.ToldDraft) -> None:
        publish(self)
        if self.key.startswith("index/"):
            (key,) = output.list_keys("collections/")
            document = msgspec.json.decode(output.content[key])["collections"]
            seen.append(document["c"]["tensor_names"])

    monkeypatch.setattr(hooked.ToldDraft, "publish", note)
    with hooked.hook(tmp_path) as hook:
        for name in ("a", "b", "b"):
            hook.save_tensor(name, ONES, "c")
            hook.step()
    assert seen == [["a"], ["a", "b"], ["a", "b"]]
    # And nothing is written again that has not changed.
    assert [key.partition("/")[0] for key in output.published] == [
        *("collections", "collections", "events", "index"),
        *("collections", "events", "index", "events", "index", "training_job_end.ts"),
    ]


@pytest.mark.parametrize("way", ["add", "get", "option", "json"])
def test_collection_without_a_pattern_is_filled_by_save_tensor(
    tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    root, file = tmp_path / "trial", tmp_path / "hook.json"
    match way:
        case "json":
            file.write_text(
                json.dumps(
                    {
                        "LocalPath": str(root),
                        "HookParameters": {"save_interval": "1"},
                        "CollectionConfigurations": [{"CollectionName": "mine"}],
                    }
                )
            )
            hook = Hook.create_from_json_file(file, on_error="raise")
        case "option":
            hook = hooked.hook(root, include_collections=["mine"])
        case _:
            hook = hooked.hook(root)
            {"add": hook.add_collection, "get": hook.get_collection}[way]("mine")
    hook.step()
    hook.save_tensor("x", ONES, "mine")
    hook.close()
    trial = hooked.opened(root)
    assert (trial.tensor_names(collection="mine"), trial.tensor("x").steps()) == (["x"], [1])
    assert "is empty" not in caplog.text


def test_collection_that_stays_empty_is_named_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = hooked.hook(tmp_path)
    hook.add_collection("mine")
    hook.save_scalar("x", 1.0)
    hook.close()
    assert hooked.opened(tmp_path).tensor_names() == ["scalar/x"]
    text = "Collection 'mine' is empty: it has no pattern, and no tensor was saved to it."
    assert caplog.messages == [text]


def test_what_the_hook_says_of_itself(tmp_path: Path) -> None:
    reductions = ReductionConfig(reductions=["min"])
    hook = hooked.hook(tmp_path, include_regex="x", reduction_config=reductions)
    hook.get_collection("mine").include("y")
    assert hook.include_collections == {"default", "losses"}
    hook.add_collection("mine")
    assert hook.include_collections == {"default", "losses", "mine"}
    assert (hook.save_config, hook.reduction_config) == (hooked.ALWAYS, reductions)
    assert list(hook.get_collections()) == [
        *("all", "default", "weights", "biases", "gradients", "losses", "mine")
    ]
    assert hook.collection_manager.get("mine").include_regex == ["y"]
    hook.close()
