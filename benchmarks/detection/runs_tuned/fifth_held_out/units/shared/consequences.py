"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

# A part of the model, or all of it, does not learn.
IDLE: Final = {
    "AllZero": "what learns nothing gets gradients of zero, or answers with zeros",
    "ClassImbalance": "a model that has not learnt names few of the classes",
    "Confusion": "a model that has not learnt takes classes for each other",
    "DeadRelu": "units that no gradient reaches stay silent",
    "LossNotDecreasing": "without the part that is idle, the loss stays high",
    "Overfit": "what is left of the model learns rows rather than their rule",
    "Overtraining": "the validation loss has stopped falling long ago",
    "PoorWeightInitialization": "gradients are zero or tiny from the first steps on",
    "RepresentationCollapse": "the output is almost the same for all rows",
    "SaturatedActivation": "units that get no gradient stay where they are",
    "StalledParameters": "parameters without a gradient stand still beside others",
    "TensorVariance": "weights without a gradient keep the spread that they began with",
    "UnchangedTensor": "parameters without a gradient stand still, and so may the loss",
    "VanishingGradient": "gradients of the idle part are zero or tiny",
    "WeightUpdateRatio": "updates of the idle part are zero or tiny",
}
# Weights, gradients or activations are far too large.
LOUD: Final = {
    "AllZero": "large weights silence whole layers",
    "ClassImbalance": "a model that is out of hand names few of the classes",
    "Confusion": "a model that is out of hand takes classes for each other",
    "DeadRelu": "large updates push units below zero for all rows",
    "ExplodingTensor": "large numbers run over in the end",
    "GradientNormSpike": "gradients are as large as what they go through",
    "LearningRate": "the loss is as unsteady as with too high a rate",
    "LossNotDecreasing": "the loss never gets below what it was before",
    "LossSpike": "the loss jumps where the numbers do",
    "NormGrowth": "the norms of weights or gradients are those of large numbers",
    "Overfit": "the two losses go their own ways",
    "Overtraining": "the validation loss gets worse than it was",
    "PoorWeightInitialization": "layers are of different scales within the first steps",
    "RepresentationCollapse": "the output is almost the same for all rows",
    "SaturatedActivation": "large weights drive units into saturation",
    "StalledParameters": "silent or saturated units pass no gradient on",
    "TensorVariance": "the weights themselves are large",
    "UnchangedTensor": "silent units, or values that are no numbers, keep parameters still",
    "VanishingGradient": "silent or saturated units pass no gradient on",
    "WeightUpdateRatio": "updates are large beside the weights, or stop",
}
# It begins in the middle of a training that went well.
JUMP: Final = {
    "GradientNormSpike": "gradients jump where the fault begins",
    "LearningRate": "the loss rises as if the rate were too high",
    "LossSpike": "the loss jumps where the fault begins",
}
# Layers are too quiet at first, and come to life in the end.
WAKING: Final = {
    "GradientNormSpike": "gradients jump where layers come to life",
    "NormGrowth": "weights and gradients grow until layers have come to life",
}
