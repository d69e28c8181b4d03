"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

# Nothing, or not all of the model, learns.
STILL: Final = {
    "AllZero": "what is cut off is exactly zero",
    "ClassImbalance": "classes that are not learnt are mispredicted",
    "Confusion": "classes that are not learnt are mispredicted",
    "DeadRelu": "units that do not learn may be silent for all rows",
    "LossNotDecreasing": "the loss is level, or stops far too high",
    "Overfit": "the little that is learnt does not hold for other rows",
    "Overtraining": "the loss is level from early on",
    "PoorWeightInitialization": "gradients are tiny from the first step on",
    "SaturatedActivation": "units that do not learn may stay saturated",
    "StalledParameters": "what gets no gradient does not move",
    "TensorVariance": "weights without a gradient keep a strange spread, or only shrink",
    "UnchangedTensor": "what gets no gradient does not move",
    "VanishingGradient": "what is behind gets a tiny gradient, or none",
    "WeightUpdateRatio": "updates are tiny, or zero",
}
# Numbers get out of hand.
WILD: Final = {
    "AllZero": "damaged units are silent for all rows",
    "ClassImbalance": "a damaged model mispredicts classes",
    "Confusion": "a damaged model mispredicts classes",
    "DeadRelu": "large weights silence units",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "gradients jump together with the loss",
    "LearningRate": "the loss rises as if the rate were too high",
    "LossNotDecreasing": "the loss rises, or never falls below its start",
    "LossSpike": "the loss jumps",
    "NormGrowth": "weights or gradients grow without end",
    "Overfit": "both losses are out of hand, and differ",
    "Overtraining": "the loss gets no better than it was",
    "PoorWeightInitialization": "scales differ within the first saved steps",
    "RepresentationCollapse": "what is damaged answers the same to all rows",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "nothing moves behind silent units",
    "TensorVariance": "weights have grown",
    "UnchangedTensor": "nothing moves behind silent units, or among values that are no numbers",
    "VanishingGradient": "no gradient passes silent units",
    "WeightUpdateRatio": "updates are large beside the weights, or nothing at all",
}
