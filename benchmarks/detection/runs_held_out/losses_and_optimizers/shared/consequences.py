"""Consequences: what other rules may say of a fault of this piece, and why."""

from typing import Final

# The model or its loss is thrown off.
THROWN: Final = {
    "AllZero": "units that an update has switched off write zeros",
    "AttentionCollapse": "large scores leave one place to attend to",
    "ClassImbalance": "a model thrown off prefers one answer",
    "Confusion": "a model thrown off takes one class for another",
    "DeadRelu": "a large update switches units off",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "a higher loss has larger gradients",
    "LossNotDecreasing": "the loss rises, or does not come down again",
    "LossSpike": "the loss jumps",
    "NormGrowth": "large updates lengthen weights",
    "Overfit": "losses of a model thrown off differ",
    "Overtraining": "the best loss is not reached again",
    "PoorWeightInitialization": "it is so from the first steps on",
    "RepresentationCollapse": "a model thrown off answers alike to all",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "units switched off or saturated hardly move",
    "TensorVariance": "weights spread out, and so do inputs",
    "UnchangedTensor": "units switched off or saturated do not move",
    "VanishingGradient": "units switched off or saturated pass nothing on",
    "WeightUpdateRatio": "updates are large beside weights, or small beside grown ones",
}
# Hardly anything is learnt, or nothing any more.
IDLE: Final = {
    "AllZero": "there are no gradients",
    "AttentionCollapse": "attention stays as it was drawn",
    "ClassImbalance": "only the shares of classes are learnt",
    "Confusion": "classes are guessed",
    "DeadRelu": "units that are off stay off",
    "GradientNormSpike": "gradients become small, and jump easily",
    "LossNotDecreasing": "the loss is level",
    "Overfit": "what is learnt is chance",
    "Overtraining": "the loss is level",
    "PoorWeightInitialization": "gradients are small from the first steps on",
    "RepresentationCollapse": "all rows get the same answer",
    "StalledParameters": "parameters stand still",
    "TensorVariance": "weights stay as they were drawn, or shrink",
    "UnchangedTensor": "parameters stand still",
    "VanishingGradient": "hardly a gradient is left",
    "WeightUpdateRatio": "parameters hardly move",
}
# Runs without dropout learn their rows by heart.
BY_HEART: Final = {
    "Overfit": "rows are learnt by heart without what should prevent it",
    "Overtraining": "the losses fall no more",
}
