"""Consequences: what other rules may say of a fault, and why."""

from typing import Final

# Weights, gradients or losses are out of hand, for a while or to the end.
BROKEN: Final = {
    "AllZero": "large updates push units below zero for good",
    "AttentionCollapse": "large weights sharpen attention",
    "ClassImbalance": "a broken model predicts few of the classes",
    "Confusion": "a broken model takes classes for others",
    "DeadRelu": "large updates push units below zero for good",
    "ExplodingTensor": "large numbers may run over",
    "GradientNormSpike": "the gradients of a worse loss are larger",
    "LossNotDecreasing": "the loss rises, or no longer falls",
    "LossSpike": "the loss jumps",
    "NormGrowth": "large updates make weights large",
    "Overfit": "what is validated differs from what is broken",
    "Overtraining": "the loss never comes back to its best",
    "PoorWeightInitialization": "what is broken is so from the first steps on",
    "RepresentationCollapse": "a broken model writes the same for all rows",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "what is saturated hardly moves",
    "TensorVariance": "weights become large or small",
    "UnchangedTensor": "what is saturated does not move",
    "VanishingGradient": "what is saturated has hardly a gradient",
    "WeightUpdateRatio": "updates are large beside the weights, or tiny beside large ones",
}
# Little or nothing is learnt.
IDLE: Final = {
    "AllZero": "what is not learnt from has no gradient",
    "AttentionCollapse": "attention stays as it began",
    "ClassImbalance": "one class is predicted for all rows",
    "Confusion": "classes are not told apart",
    "DeadRelu": "units that began silent stay so",
    "LossNotDecreasing": "the loss is level",
    "LossSpike": "the noise of a level loss is all there is",
    "Overfit": "only chance is learnt from the training rows",
    "Overtraining": "the loss is level",
    "PoorWeightInitialization": "gradients are small from the first steps on",
    "RepresentationCollapse": "all rows are given the same answer",
    "StalledParameters": "weights hardly move",
    "TensorVariance": "weights shrink, or stay as they began",
    "UnchangedTensor": "weights do not move",
    "VanishingGradient": "there is hardly a gradient",
    "WeightUpdateRatio": "updates are tiny beside the weights",
}
