"""Configures the hook of `train`: from options, a file, and the inputs of the rules."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import NamesParam, Param, PatternsParam, did_you_mean
from rule_core.saving.hook_config import load_hook_config
from rule_core.saving.presets import (
    EMBEDDINGS,
    FINGERPRINTS,
    FIRST_LOSSES,
    LOSS_INPUTS,
    MEASURED,
    MODEL,
    OF_LOSS,
    OF_OPTIMIZER,
    OPTIMIZER,
    SAVE_INTERVAL,
    TARGETS,
)
from rule_runner.config.model import RuleJobConfig
from rule_runner.errors import ClientError, UsageError, translated

# Small measurements are saved at all of these steps, as losses are.
FIRST_STEPS: Final = ",".join(map(str, FIRST_LOSSES))
LOSSES: Final = "losses"
# Numbers of each step, which hooks of PyTorch save without a preset as well.
OFTEN: Final = (LOSSES, "gradient_norms", "learning_rates", "loss_scales")
GRADIENTS: Final = "gradients"
# What rules read that costs a training next to nothing.
CHEAP: Final = frozenset(
    {
        *(*OFTEN, *OF_OPTIMIZER, *OF_LOSS, MODEL, FINGERPRINTS),
        *(GRADIENTS, LOSS_INPUTS, "feature_importance"),
    }
)
# Predictions are saved this many times: what is wrong with them is wrong from the first step on.
LOSS_INPUTS_SAVED: Final = 20
# Gradients may be gigabytes: these do for many rules.
REDUCTIONS: Final = "min,max,mean,std,abs_min,abs_max,abs_mean"
# Patterns of collections that not every framework's hook defines.
PATTERNS: Final[Mapping[str, str]] = {
    "weights": "^(?!gradient).*weight",
    "biases": "^(?!gradient).*bias",
    GRADIENTS: "^gradient",
}
KNOWN: Final = frozenset(
    {
        *("all", "default", LOSSES, "weights", "biases", GRADIENTS, "metrics", "sm_metrics"),
        *("inputs", "outputs", "layers", "optimizer_variables", "labels", "predictions"),
        *("input_image", "input_sequence", "hyperparameters", "feature_importance"),
        *("average_shap", "full_shap", "trees", LOSS_INPUTS, *MEASURED, *OF_LOSS),
        *(f"{kind}_{side}" for kind in ("relu", "tanh", "sigmoid") for side in ("input", "output")),
    }
)

Json = dict[str, Any]


def hook_document(
    file: Path | None,
    rules: Sequence[RuleJobConfig],
    collections: str | None,
    save_interval: int | None,
    preset: str | None = None,
    *,
    is_cheap: bool = False,
) -> Json:
    """Return the object of a hook's JSON file, without the path of the trial.

    Parameters
    ----------
    file
        The user's JSON file; options take precedence.
    rules
        Their inputs are saved if there is neither a file nor `collections`.
    collections
        Names, separated by commas.
    save_interval
        Steps from one saved step to the next; None: that of the file.
    preset
        A hook's preset; by default that of the file. Without a file and `collections`, the hook
        chooses one by the model.
    is_cheap
        Whether to save, of the inputs of the rules, only what costs next to nothing.

    Raises
    ------
    ClientError
        If the file cannot be used.
    UsageError
        If a collection is unknown.
    """
    document = {} if file is None else _read(file)
    hook = document.setdefault("HookParameters", {})
    hook.setdefault("include_workers", "all")
    if save_interval is not None:
        hook["save_interval"] = str(save_interval)
        for entry in document.get("CollectionConfigurations", ()):
            (entry.get("CollectionParameters") or {}).pop("save_interval", None)
    if preset is not None:
        hook["preset"] = preset
    elif file is None and collections is None:
        hook["preset"] = "auto"
    entries = document.setdefault("CollectionConfigurations", [])
    if collections is not None:
        configured = {entry["CollectionName"] for entry in entries}
        names = _known(collections.split(","), configured)
        entries += [_entry(name) for name in names if name not in configured]
    elif file is None:
        read = {name for rule in rules for name in _read_by(rule)} & (CHEAP if is_cheap else KNOWN)
        readers = [rule for rule in rules if GRADIENTS in _read_by(rule)]
        reduced = is_cheap or not any(rule.loaded.rule_class.NEEDS_VALUES for rule in readers)
        entries += [_entry(name, is_reduced=reduced) for name in [*OFTEN, *sorted(read - {*OFTEN})]]
        interval = int(hook.get("save_interval", SAVE_INTERVAL))
        for entry in entries:
            if entry["CollectionName"] == LOSS_INPUTS:
                entry["CollectionParameters"]["end_step"] = str(LOSS_INPUTS_SAVED * interval)
        patterns = list(_patterns(rules))
        if patterns:
            hook["include_regex"] = ",".join(patterns)
    return document


def _read(file: Path) -> Json:
    """Return a hook's JSON file that the hook can read, with objects where it may have null."""
    with translated(ClientError, OSError, SMDebugValueError):
        load_hook_config(file)
    document = json.loads(file.read_text("utf-8") or "{}") or {}
    document["HookParameters"] = document.get("HookParameters") or {}
    document["CollectionConfigurations"] = document.get("CollectionConfigurations") or []
    return dict(document)


def _known(texts: Iterable[str], configured: set[str]) -> list[str]:
    names = [text.strip() for text in texts if text.strip()]
    for name in names:
        if name not in KNOWN | configured:
            hint = did_you_mean(name, KNOWN)
            raise UsageError(
                f"No hook knows the collection {name!r}.{hint} Give its pattern: --hook-config."
            )
    return list(dict.fromkeys(names))


def _entry(name: str, *, is_reduced: bool = False) -> Json:
    """Return the configuration of one collection; of gradients, perhaps only reductions."""
    parameters = {"include_regex": PATTERNS[name]} if name in PATTERNS else {}
    if name in {*OFTEN, OPTIMIZER, MODEL, FINGERPRINTS, TARGETS, EMBEDDINGS}:
        parameters["save_steps"] = FIRST_STEPS
    if name == GRADIENTS and is_reduced:
        parameters |= {"reductions": REDUCTIONS, "save_shape": "true"}
    return {"CollectionName": name, "CollectionParameters": parameters}


def _read_by(rule: RuleJobConfig) -> Iterator[str]:
    """Yield the collections that a rule reads."""
    yield from rule.loaded.rule_class.SAVED
    for param in rule.loaded.rule_class.PARAMS:
        if isinstance(param, PatternsParam):
            if param.collection and param.name not in rule.parameters:
                yield param.collection
        elif isinstance(param, NamesParam) and param.name == "collection_names":
            yield from _value(param, rule)


def _patterns(rules: Sequence[RuleJobConfig]) -> Iterator[str]:
    """Yield the patterns of tensors that parameters select."""
    for rule in rules:
        for param in rule.loaded.rule_class.PARAMS:
            if isinstance(param, PatternsParam) and param.name in rule.parameters:
                yield from _value(param, rule)


def _value(param: Param, rule: RuleJobConfig) -> Sequence[str]:
    with translated(ClientError, SMDebugValueError):
        return param.parse(rule.parameters.get(param.name)) or ()
