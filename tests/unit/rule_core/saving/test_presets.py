"""The steps of callbacks, which save often; hooks keep the interval that documents promise."""

import json
from pathlib import Path

from rule_core.model.collection import Collection
from rule_core.model.save_config import SaveConfig
from rule_core.modes import ModeKeys
from rule_core.saving.hook import Hook
from rule_core.saving.presets import with_frequent_steps

MOST: int = 1500
EVERY_500 = [0, 500, 1000]


def steps_of(hook: Hook, collection: str) -> list[int]:
    """Return the steps at which a hook saves a collection."""
    hook._policy.prepare()
    return [step for step in range(MOST) if collection in hook._policy.saving(ModeKeys.TRAIN, step)]


def frequent(root: Path, **options: object) -> Hook:
    return Hook(**with_frequent_steps({"out_dir": root, "dry_run": True, **options}))


def test_callbacks_save_every_tenth_step_and_the_first_losses(tmp_path: Path) -> None:
    hook = frequent(tmp_path, include_collections=["gradients"])
    assert steps_of(hook, "losses") == [*range(100), *range(100, MOST, 10)]
    assert steps_of(hook, "gradients") == [*range(0, MOST, 10)]


def test_what_the_user_configures_precedes(tmp_path: Path) -> None:
    hook = frequent(tmp_path, save_config=SaveConfig(save_interval=400))
    assert steps_of(hook, "losses") == [0, 400, 800, 1200]
    own = Collection("losses", save_config=SaveConfig(save_interval=700))
    assert steps_of(frequent(tmp_path, collections=[own]), "losses") == [0, 700, 1400]
    assert steps_of(frequent(tmp_path, save_config=None), "losses")[:3] == [0, 1, 2]


def test_hooks_keep_the_documented_interval(tmp_path: Path) -> None:
    assert steps_of(Hook(tmp_path / "a", dry_run=True), "losses") == EVERY_500
    file = tmp_path / "hook.json"
    document = {"LocalPath": str(tmp_path / "b"), "HookParameters": {}}
    file.write_text(json.dumps(document))
    assert steps_of(Hook.create_from_json_file(file), "losses") == EVERY_500
    document |= {"CollectionConfigurations": [{"CollectionName": "gradients"}]}
    for collection in ("gradients", "losses"):
        file.write_text(json.dumps(document | {"LocalPath": str(tmp_path / collection)}))
        assert steps_of(Hook.create_from_json_file(file), collection) == EVERY_500


def test_a_requested_hook_keeps_the_documented_interval(tmp_path: Path) -> None:
    from rule_runner.debugger import CollectionConfig, DebuggerHookConfig

    config = DebuggerHookConfig(
        s3_output_path="s3://b/x", collection_configs=[CollectionConfig(name="gradients")]
    )
    request = config._to_request_dict()
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({**request, "LocalPath": str(tmp_path / "c")}))
    assert steps_of(Hook.create_from_json_file(file), "gradients") == EVERY_500
