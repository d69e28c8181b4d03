"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

# All or a part of a model gets no signal, or does not move.
SILENT: Final = {
    "AllZero": "what is silent gets gradients of zero, or answers with zeros",
    "AttentionCollapse": "scores that learn nothing stay even, or stay at one place",
    "ClassImbalance": "a model that learns little names few of the classes",
    "Confusion": "a model that learns little takes classes for each other",
    "DeadRelu": "units without a gradient stay silent",
    "LossNotDecreasing": "the loss stays high without what is silent",
    "Overfit": "what is left of the model learns single rows",
    "Overtraining": "the validation loss no longer falls",
    "PoorWeightInitialization": "gradients are zero or tiny from the first steps on",
    "RepresentationCollapse": "the output hardly depends on the row",
    "SaturatedActivation": "units without a gradient stay where they are",
    "StalledParameters": "parameters without a gradient stand still beside others",
    "TensorVariance": "weights without a gradient keep or lose their spread",
    "UnchangedTensor": "parameters without a gradient stand still, and so may the loss",
    "VanishingGradient": "gradients of what is silent are zero or tiny",
    "WeightUpdateRatio": "updates of what is silent are zero or tiny",
}
# Numbers are far too large somewhere.
HUGE: Final = {
    "AllZero": "large weights put whole layers to silence",
    "ClassImbalance": "a model out of bounds names few of the classes",
    "Confusion": "a model out of bounds takes classes for each other",
    "DeadRelu": "large updates push units below zero in all rows",
    "ExplodingTensor": "large numbers run over in the end",
    "GradientNormSpike": "gradients are as large and unsteady as the numbers they pass through",
    "LearningRate": "the loss is as unsteady as at too high a rate",
    "LossNotDecreasing": "the loss rises, or stays where it was",
    "LossSpike": "the loss jumps where the numbers do",
    "NormGrowth": "weights grow together with all else",
    "Overfit": "training and validation losses part",
    "Overtraining": "the validation loss gets worse again",
    "PoorWeightInitialization": "layers are of different scales within the first steps",
    "RepresentationCollapse": "the output hardly depends on the row",
    "SaturatedActivation": "large weights drive units to their bounds",
    "StalledParameters": "units at their bounds pass no gradient on; large weights hardly move",
    "TensorVariance": "the weights themselves are large",
    "UnchangedTensor": "what is no number, or silent, keeps parameters still",
    "VanishingGradient": "units at their bounds, or silent ones, pass no gradient on",
    "WeightUpdateRatio": "updates are large beside weights, or too small beside large ones",
}
# The fault begins in the middle of a training that went well.
BREAK: Final = {
    "GradientNormSpike": "gradients jump where the fault begins",
    "LearningRate": "the loss rises as if the rate were too high",
    "LossSpike": "the loss jumps where the fault begins",
}
# Layers begin too quietly and come to life later.
LATE: Final = {
    "GradientNormSpike": "gradients jump where layers come to life",
    "NormGrowth": "weights grow until the layers have come to life",
}
