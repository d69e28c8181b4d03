"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

_CLASSES: Final = ("ClassImbalance", "Confusion")
# Inputs or labels are not what they should be: the model learns slowly, or something else.
WORSE: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted by a model that learns less"),
    "AllZero": "inputs off their centre silence units",
    "DeadRelu": "inputs off their centre silence units",
    "GradientNormSpike": "gradients jump while the model copes with its inputs",
    "LossNotDecreasing": "the loss stays up",
    "LossSpike": "the loss jumps while the model copes with its inputs",
    "NormGrowth": "weights grow to make up for it",
    "Overfit": "validation gets worse by what the model learns instead",
    "Overtraining": "no loss gets better than what the data allow",
    "PoorWeightInitialization": "the first gradients are out of proportion",
    "SaturatedActivation": "inputs off their centre saturate units",
    "StalledParameters": "what is silent or saturated does not move",
    "TensorVariance": "weights grow to make up for it",
    "UnchangedTensor": "what is silent or saturated does not move",
    "VanishingGradient": "little gradient passes chances or silent units",
    "WeightUpdateRatio": "updates are out of proportion to the weights",
}
# What there is to learn is learnt, or learnt by heart.
LEARNT: Final = {
    **dict.fromkeys(_CLASSES, "what was learnt by heart does not hold for other rows"),
    "GradientNormSpike": "gradients are tiny but for a row that is not known yet",
    "LossNotDecreasing": "the loss is level once all is known",
    "LossSpike": "the loss jumps from almost nothing",
    "NormGrowth": "weights grow with certainty",
    "Overfit": "what was learnt by heart does not hold for other rows",
    "Overtraining": "no loss gets better once all is known",
    "StalledParameters": "hardly anything moves once all is known",
    "UnchangedTensor": "hardly anything moves once all is known",
    "VanishingGradient": "gradients are tiny once all is known",
    "WeightUpdateRatio": "hardly anything moves once all is known",
}
# Validation has other labels, rows or modes than training.
ELSEWHERE: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted by what differs"),
    "GradientNormSpike": "gradients jump with what differs",
    "LossNotDecreasing": "the validation loss stays up",
    "LossSpike": "the loss jumps with what differs",
    "Overfit": "validation measures something else than training",
    "Overtraining": "validation gets no better",
}
