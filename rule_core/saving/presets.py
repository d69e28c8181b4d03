"""Presets: the collections of measurements that a hook saves under one name."""

from collections.abc import Mapping
from typing import Final, Literal

from rule_core.model.collection import CollectionKeys

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
