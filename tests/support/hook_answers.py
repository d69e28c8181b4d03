"""What a hook makes of a configuration file, in the form of the recorded answers, and in short."""

import json
from pathlib import Path
from typing import Any

from rule_core.saving.hook_config import HookConfig, load_hook_config
from rule_core.saving.save_policy import SavePolicy

Json = dict[str, Any]
Steps = tuple[int, list[int], int, int | None]
# The collections of the hook whose answers were recorded.
DEFAULTS = {
    "all": (),
    "default": (),
    "weights": ("^(?!gradient).*kernel",),
    "biases": ("^(?!gradient).*bias",),
    "gradients": ("^gradient",),
    "losses": ("[Ll]oss_(?!input).*output",),
}


def load(folder: Path, content: object, **options: int) -> HookConfig:
    path = folder / "hook.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return load_hook_config(path, **options)


def decisions(config: HookConfig) -> SavePolicy:
    """Return what a hook makes of its configuration at its first step."""
    policy = SavePolicy(
        DEFAULTS,
        ["losses"],
        save_config=config.save_config,
        reduction_config=config.reduction_config,
        include_regex=config.include_regex,
        include_collections=config.include_collections,
        save_all=config.save_all,
        collections=config.collections,
    )
    policy.prepare()
    return policy


def answer(folder: Path, content: object) -> Json:
    """Return what was recorded of the old library's hook with this file."""
    config = load(folder, content)
    policy = decisions(config)
    collections = policy.manager.get_collections()
    included = {"losses", *(config.include_collections or ())}
    included |= {"default"} if config.include_regex else set()
    return {
        "out_dir": config.out_dir,
        "tensorboard_dir": config.tensorboard_dir,
        "dry_run": config.dry_run,
        "save_all": config.save_all,
        "save_all_workers": config.include_workers == "all",
        "include_regex": config.include_regex,
        "include_collections": sorted(included | ({"all"} if config.save_all else set())),
        "save_config": policy.save_config.to_json_dict(),
        "reduction_config": policy.reduction_config.to_json_dict(),
        "collections_to_save": sorted(policy.included),
        "collections_after_prepare": {
            name: collection.to_json_dict()
            for name, collection in collections.items()
            if name not in {"biases", "gradients"}
        },
    }


def brief(out: Json) -> Json:
    """Return an answer in short: what differs from that to an empty file."""
    differences = {
        "save": steps(out["save_config"]),
        "reduce": out["reduction_config"],
        "regex": out["include_regex"],
        "saved": " ".join(out["collections_to_save"]),
        "save_all": bool(out["save_all"]),
        "all_workers": out["save_all_workers"],
        "tensorboard": out["tensorboard_dir"],
    }
    for name, collection in out["collections_after_prepare"].items():
        differences[f"{name}.regex"] = collection["include_regex"]
        differences[f"{name}.histogram"] = collection["save_histogram"]
        differences[f"{name}.save"] = collection["save_config"] != out["save_config"] and steps(
            collection["save_config"]
        )
        differences[f"{name}.reduce"] = (
            collection["reduction_config"] != out["reduction_config"]
            and collection["reduction_config"]
        )
    return {key: value for key, value in differences.items() if EMPTY.get(key, MISSING) != value}


def steps(config: Json) -> object:
    """Return interval, listed steps, start and end; by mode where modes differ."""
    modes = {name: tuple(one.values()) for name, one in config.items()}
    return modes if len({str(one) for one in modes.values()}) > 1 else modes["TRAIN"]


MISSING = object()
RAW = {"save_raw_tensor": True, "reductions": "", "save_shape": False}
EMPTY: Json = {
    "save": (500, [], 0, None),
    "reduce": RAW,
    "regex": None,
    "saved": "losses",
    "save_all": False,
    "all_workers": False,
    "tensorboard": None,
}
EMPTY |= {f"{name}.regex": list(regex) for name, regex in DEFAULTS.items()}
EMPTY |= {f"{name}.histogram": True for name in (*DEFAULTS, "m", "mine")}
EMPTY["losses.histogram"] = False
EMPTY |= {
    f"{name}.{part}": False for name in (*DEFAULTS, "m", "mine") for part in ("save", "reduce")
}


def of(hook: Json, *collections: tuple[str, Json]) -> Json:
    """Return the content of a file: parameters of the hook, and of collections by name."""
    listed = [
        {"CollectionName": name, "CollectionParameters": given} for name, given in collections
    ]
    return {"HookParameters": hook, "CollectionConfigurations": listed}


def reduce(names: str, *, raw: bool = False, shape: bool = False) -> Json:
    return {"save_raw_tensor": raw, "reductions": names, "save_shape": shape}


def modes(train: Steps, evaluation: Steps, predict: Steps, rest: Steps) -> dict[str, Steps]:
    return {"TRAIN": train, "EVAL": evaluation, "PREDICT": predict, "GLOBAL": rest}
