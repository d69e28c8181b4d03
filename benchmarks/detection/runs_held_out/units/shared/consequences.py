"""Consequences: what other rules may say of a fault of these trainings, and why."""

from typing import Final

# A part of the model, or all of it, is cut off from what it should learn.
CUT_OFF: Final = {
    "AllZero": "what is cut off gets gradients of zero, or answers with zeros",
    "AttentionCollapse": "attention that learns nothing stays as it was drawn",
    "ClassImbalance": "a model that learns little names few of the classes",
    "Confusion": "a model that learns little takes classes for each other",
    "DeadRelu": "units that are cut off stay silent",
    "LossNotDecreasing": "the loss stays up without what is cut off",
    "Overfit": "what is left of the model learns single rows",
    "Overtraining": "the losses are level",
    "PoorWeightInitialization": "gradients are zero or tiny from the first steps on",
    "RepresentationCollapse": "what is made of all rows is alike",
    "SaturatedActivation": "units without a gradient stay where they are",
    "StalledParameters": "what has no gradient, or no update, stands still beside others",
    "TensorVariance": "weights that are not taught keep or lose their spread",
    "UnchangedTensor": "what has no gradient, or no update, does not change",
    "VanishingGradient": "what is cut off has tiny gradients, or none",
    "WeightUpdateRatio": "what has no gradient, or no update, hardly moves",
}
# Numbers are much too large in a part of the model, or in all of it.
OVERSIZED: Final = {
    "AllZero": "large numbers silence whole layers",
    "AttentionCollapse": "large scores choose a single key",
    "ClassImbalance": "a model that is thrown about names few of the classes",
    "Confusion": "a model that is thrown about takes classes for each other",
    "DeadRelu": "large numbers push units below zero in all rows",
    "ExplodingTensor": "large numbers run over in the end",
    "GradientNormSpike": "gradients are as large as what they pass through",
    "LearningRate": "the steps are as large as with too high a rate",
    "LossNotDecreasing": "the loss rises, or falls no further",
    "LossSpike": "the loss jumps about with the numbers",
    "NormGrowth": "large steps make weights large",
    "Overfit": "the losses of training and validation part",
    "Overtraining": "the losses get no better than they were",
    "PoorWeightInitialization": "layers are of different scales from the first steps on",
    "RepresentationCollapse": "units at their bounds make all rows alike",
    "SaturatedActivation": "large numbers drive units to their bounds",
    "StalledParameters": "large weights hardly move beside their size, units at bounds not at all",
    "TensorVariance": "the weights themselves become large",
    "UnchangedTensor": "units at their bounds, or silent ones, get no update",
    "VanishingGradient": "units at their bounds, or silent ones, pass no gradient on",
    "WeightUpdateRatio": "steps are large beside small weights, or small beside large ones",
}
# The fault begins in a training that went well until then.
TURN: Final = {
    "GradientNormSpike": "gradients jump where the fault begins",
    "LossSpike": "the loss jumps where the fault begins",
    "LossNotDecreasing": "what was learnt is lost where the fault begins",
    "Overtraining": "nothing gets better from there on",
}
