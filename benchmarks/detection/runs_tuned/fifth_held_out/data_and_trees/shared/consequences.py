"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

_CLASSES: Final = ("ClassImbalance", "Confusion")
# Inputs or what the loss gets are off: the model learns slowly, unevenly, or something else.
SLOWER: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted by a model that learns less"),
    "AllZero": "inputs off their centre, or zeros, silence units",
    "DeadRelu": "inputs off their centre silence units",
    "GradientNormSpike": "gradients jump while the model copes with it",
    "LossNotDecreasing": "the loss stays up",
    "LossSpike": "the loss jumps while the model copes with it",
    "NormGrowth": "weights grow to make up for it",
    "Overfit": "what is learnt instead does not hold for other rows",
    "Overtraining": "no loss gets better than what is possible with it",
    "PoorWeightInitialization": "the first gradients are out of proportion",
    "SaturatedActivation": "inputs off their centre saturate units",
    "StalledParameters": "what is silent or saturated does not move",
    "TensorVariance": "weights grow to make up for it",
    "UnchangedTensor": "what is silent or saturated does not move",
    "VanishingGradient": "little gradient passes chances or silent units",
    "WeightUpdateRatio": "updates are out of proportion to the weights",
}
# What there is to learn is learnt, or learnt by heart.
BY_HEART: Final = {
    **dict.fromkeys(_CLASSES, "what was learnt by heart does not hold for other rows"),
    "GradientNormSpike": "gradients are tiny but for a row that is new",
    "LossNotDecreasing": "the loss is level once all is learnt",
    "LossSpike": "the loss jumps from almost nothing",
    "NormGrowth": "weights grow with certainty",
    "Overfit": "what was learnt by heart does not hold for other rows",
    "Overtraining": "no loss gets better once all is learnt",
    "StalledParameters": "hardly anything moves once all is learnt",
    "UnchangedTensor": "hardly anything moves once all is learnt",
    "VanishingGradient": "gradients are tiny once all is learnt",
    "WeightUpdateRatio": "hardly anything moves once all is learnt",
}
# Validation has other rows, labels or modes than training.
APART: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted where validation is different"),
    "GradientNormSpike": "gradients jump with what is different",
    "LossNotDecreasing": "the validation loss stays up",
    "LossSpike": "the loss jumps with what is different",
    "Overfit": "validation measures something else than training",
    "Overtraining": "validation gets no better",
}
