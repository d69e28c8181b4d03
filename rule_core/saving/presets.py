"""Presets: measurements that a hook saves under one name, and the steps that callbacks save."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from rule_core.model.collection import Collection, CollectionKeys
from rule_core.model.save_config import SaveConfig

Preset = Literal["none", "llm", "auto"]

OPTIMIZER: Final = "optimizer"
PARAMETERS: Final = "parameters"
MODEL: Final = "model"
ATTENTION: Final = "attention"
ROUTER: Final = "router"
ACTIVATION_STATISTICS: Final = "activation_statistics"
FINGERPRINTS: Final = "fingerprints"
# Of automatic hooks: the classes that a loss compares, how its targets relate to the inputs, and
# the spread of embeddings.
CLASSES: Final = "classes"
TARGETS: Final = "targets"
EMBEDDINGS: Final = "embeddings"
# The predictions given to loss modules, which automatic hooks save if they are small.
LOSS_INPUTS: Final = "loss_inputs"

# The outputs of layers that compute the means of a variational code, in any preset.
LATENT_MEANS: Final = "latent_means"

# What is measured of an optimizer; a few numbers in a step, except for the update norms.
OF_OPTIMIZER: Final = (
    CollectionKeys.LEARNING_RATES,
    CollectionKeys.GRADIENT_NORMS,
    CollectionKeys.LOSS_SCALES,
    OPTIMIZER,
)
# What needs callbacks at the modules of a model.
OF_MODULES: Final = (ACTIVATION_STATISTICS, ATTENTION, ROUTER)
MEASURED: Final = (*OF_OPTIMIZER, *OF_MODULES, PARAMETERS, MODEL, FINGERPRINTS)
OF_LOSS: Final = (CLASSES, TARGETS, EMBEDDINGS)
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "auto": (),
    "llm": (*MEASURED, LATENT_MEANS),
}

SAVE_INTERVAL: Final = 10
# The steps of losses at the start: rules must know the noise before they can compare losses that
# are ten steps apart.
FIRST_LOSSES: Final = range(100)


def with_frequent_steps(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a callback's hook, which saves often without a `save_config`."""
    if options.get("save_config") is not None:
        return {**options}
    often = SaveConfig(save_interval=SAVE_INTERVAL, save_steps=FIRST_LOSSES)
    losses = Collection(CollectionKeys.LOSSES, save_config=often)
    return {
        **options,
        "save_config": SaveConfig(save_interval=SAVE_INTERVAL),
        "collections": [losses, *options.get("collections", ())],
    }
