import re
from pathlib import Path

import pytest
from hook_answers import load, of, steps

from rule_core.exceptions import SMDebugValueError
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig
from rule_core.modes import ModeKeys
from rule_core.saving.hook_config import HookConfig, load_hook_config


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "TENSORBOARD_CONFIG_FILE_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Input data was truncated"),
        ("[1]", "The file must be an object, got [1]"),
        ({"LocalPath": 5}, "LocalPath must be a string, got 5"),
        ({"HookParameters": [1]}, "HookParameters must be an object, got [1]"),
        (
            {"CollectionConfigurations": {"a": 1}},
            "CollectionConfigurations must be a list, got {'a': 1}",
        ),
        ({"CollectionConfigurations": [5]}, "CollectionConfigurations[0] must be an object, got 5"),
        (
            {"CollectionConfigurations": [{"CollectionParameters": {}}]},
            "CollectionName of CollectionConfigurations[0] must be a name, got None",
        ),
        (
            of({"save_interval": 0}),
            "save_interval of HookParameters must be an integer other than 0, got 0",
        ),
        (of({"eval.end_step": "x"}), "eval.end_step of HookParameters must be an integer, got 'x'"),
        (of({"save_steps": "1,x"}), "save_steps of HookParameters must be an integer, got 'x'"),
        (of({"save_steps": ""}), "save_steps of HookParameters must be an integer, got ''"),
        (of({"save_steps": 5}), "save_steps of HookParameters must be a list of integers, got 5"),
        (
            of({"save_all": "maybe"}),
            "save_all of HookParameters must be true or false, got 'maybe'",
        ),
        (of({"include_regex": 5}), "include_regex of HookParameters must be a string, got 5"),
        (
            of({}, ("m", {"reductions": "max_norm"})),
            "collection 'm': norms must be among l1, l2, got 'max'",
        ),
        (
            of({}, ("m", {"start_step": "x"})),
            "start_step of collection 'm' must be an integer, got 'x'",
        ),
        (
            of({}, ("m", {"save_histogram": 2})),
            "save_histogram of collection 'm' must be true or false, got 2",
        ),
        (
            of({"export_tensorboard": "x"}),
            "export_tensorboard of HookParameters must be true or false, got 'x'",
        ),
        (of({"tensorboard_dir": 5}), "tensorboard_dir must be a string, got 5"),
    ],
    ids=str,
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, content: object, reason: str) -> None:
    message = f"Hook configuration '{tmp_path}/hook.json' cannot be used: {reason}."
    with pytest.raises(SMDebugValueError, match=f"^{re.escape(message)}$"):
        load(tmp_path, content)


def test_a_missing_hook_file_raises_an_oserror_that_names_it(tmp_path: Path) -> None:
    file = str(tmp_path / "no.json")
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{file}'"):
        load_hook_config(file)


def test_the_path_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path, {"LocalPath": "/there"})
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "hook.json"))
    assert load_hook_config().out_dir == "/there"
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert load_hook_config(str(other)).out_dir == "/opt/ml/output/tensors"
    monkeypatch.delenv("SMDEBUG_CONFIG_FILE_PATH")
    with pytest.raises(FileNotFoundError, match=r"'/opt/ml/input/config/debughookconfig\.json'"):
        load_hook_config()


def test_a_hooks_own_interval_does_not_reach_listed_collections(tmp_path: Path) -> None:
    config = load(tmp_path, of({"train.start_step": 3}, ("weights", {})), save_interval=10)
    assert steps(config.save_config.to_json_dict()) == {
        "TRAIN": (10, [], 3, None),
        "EVAL": (10, [], 0, None),
        "PREDICT": (10, [], 0, None),
        "GLOBAL": (10, [], 0, None),
    }
    (weights,) = config.collections
    assert weights.save_config is not None
    interval = weights.save_config.get_save_config(ModeKeys.EVAL)
    assert interval.save_interval == 500


def test_what_a_file_leaves_open_is_left_open(tmp_path: Path) -> None:
    assert load(tmp_path, {}) == HookConfig(
        out_dir="/opt/ml/output/tensors",
        tensorboard_dir=None,
        export_tensorboard=False,
        dry_run=False,
        save_all=False,
        include_workers="one",
        include_regex=None,
        include_collections=None,
        save_config=SaveConfig(),
        reduction_config=None,
        collections=(),
    )
    listed = load(tmp_path, of({"reductions": "min"}, ("a", {}), ("b", {}), ("a", {})))
    assert listed.include_collections == ["a", "b"]
    assert listed.reduction_config == ReductionConfig("min")
    assert [one.reduction_config for one in listed.collections] == [None, None, None]


def test_on_sagemaker_tensorboard_has_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = of({"export_tensorboard": "true", "tensorboard_dir": "/ignored"})
    file = tmp_path / "tensorboard.json"
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(file))
    found = []
    for content in (None, "{}", '{"LocalPath": "/own"}'):
        if content:
            file.write_text(content)
        config = load(tmp_path, hook)
        found.append((config.tensorboard_dir, config.export_tensorboard))
    assert found == [(None, False), ("/opt/ml/output/tensorboard", True), ("/own", True)]


def test_what_has_no_effect_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hook = {"save_intervall": 5, "dry_run": True, "save_shape": True}
    content = of(hook, ("losses", {"tain.save_steps": "1"}))
    content |= {"localPath": "x", "S3OutputPath": "y"}
    load(tmp_path, content)
    file = f"Hook configuration '{tmp_path}/hook.json': "
    assert sorted(one.getMessage().removeprefix(file) for one in caplog.records) == [
        "'dry_run' of HookParameters is not known and has no effect.",
        "'localPath' of the file is not known and has no effect. Did you mean 'LocalPath'?",
        (
            "'save_intervall' of HookParameters is not known and has no effect. "
            "Did you mean 'save_interval'?"
        ),
        (
            "'tain.save_steps' of collection 'losses' is not known and has no effect. "
            "Did you mean 'train.save_steps'?"
        ),
        "save_shape of HookParameters has no effect without reductions.",
    ]
    assert {one.levelname for one in caplog.records} == {"WARNING"}


def test_known_keys_are_not_spoken_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load(tmp_path, of({"global.save_steps": "1", "reductions": "min", "save_shape": True}))
    assert caplog.records == []
