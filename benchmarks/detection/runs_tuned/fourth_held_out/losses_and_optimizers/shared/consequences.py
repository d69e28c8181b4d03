"""Consequences: what other rules may say of a fault, and why."""

from typing import Final

# Weights or losses get out of hand, for a while or for good.
DAMAGED: Final = {
    "AllZero": "units are pushed below zero for good",
    "AttentionCollapse": "weights that have moved far sharpen attention",
    "ClassImbalance": "a damaged model takes classes for others",
    "Confusion": "a damaged model takes classes for others",
    "DeadRelu": "large updates push units below zero for good",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "a worse loss has larger gradients",
    "LossNotDecreasing": "the loss rises, or falls no more",
    "LossSpike": "the loss jumps",
    "NormGrowth": "large updates make weights large",
    "Overfit": "losses of training and validation are out of hand, and differ",
    "Overtraining": "the loss gets no better than it was",
    "PoorWeightInitialization": "the damage is there from the first steps on",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "what is saturated does not move",
    "TensorVariance": "weights have become large or small",
    "UnchangedTensor": "what is saturated does not move",
    "VanishingGradient": "what is saturated has no gradient",
    "WeightUpdateRatio": "updates are large beside the weights, or nothing",
}
# Little or nothing can be learnt.
UNTAUGHT: Final = {
    "AllZero": "inputs or gradients are zero",
    "AttentionCollapse": "attention is left as it was",
    "ClassImbalance": "one class is foreseen for all rows",
    "Confusion": "classes are taken for others",
    "DeadRelu": "units that see nothing stay silent",
    "LossNotDecreasing": "little is learnt: the loss is level",
    "Overfit": "what is learnt is chance",
    "Overtraining": "the loss is level",
    "PoorWeightInitialization": "gradients are small from the first steps on",
    "RepresentationCollapse": "what is written for all inputs is alike",
    "StalledParameters": "what has no gradient does not move",
    "TensorVariance": "weights stay as they are, or shrink",
    "UnchangedTensor": "what has no gradient does not move",
    "VanishingGradient": "hardly any gradient is left",
    "WeightUpdateRatio": "updates are tiny beside the weights",
}
# Workers that train models of their own.
APART: Final = DAMAGED
