"""Consequences: what else rules may say of the faults of generative and reinforcement runs."""

from typing import Final

# A part of the model that gets no information, or whose task has a trivial answer.
UNINFORMED: Final = {
    "LossNotDecreasing": "what is left to learn is little: the loss may be level",
    "Overtraining": "a loss that is level does not get better",
    "VanishingGradient": "what is not used gets hardly any gradient",
    "AllZero": "what is not used gets no gradient",
    "StalledParameters": "what gets no gradient does not move",
    "UnchangedTensor": "what gets no gradient does not move",
    "WeightUpdateRatio": "weights that are not used decay or stand still",
    "TensorVariance": "weights that are not used shrink, those of constants may grow",
    "DeadRelu": "units whose outputs are not needed may die",
    "PoorWeightInitialization": "gradients are small from the first steps on",
}
# Weights, and with them outputs and gradients, that become too large.
TOO_LARGE: Final = {
    "LossNotDecreasing": "the loss may rise",
    "LossSpike": "large updates let the loss jump",
    "GradientNormSpike": "large weights have large gradients",
    "NormGrowth": "large updates make weights large",
    "WeightUpdateRatio": "updates are large beside the weights",
    "TensorVariance": "large weights have a large variance",
    "DeadRelu": "large updates push units below zero",
    "SaturatedActivation": "large weights drive units into saturation",
    "VanishingGradient": "behind dead or saturated units there is no gradient",
    "AllZero": "outputs and gradients of dead units",
    "UnchangedTensor": "weights behind dead units do not move",
    "StalledParameters": "weights behind dead units do not move",
    "ExplodingTensor": "numbers may run over",
    "PoorWeightInitialization": "gradients vanish within the first steps",
    "Overtraining": "the loss does not come down again",
}
