"""Consequences: what other rules may say of a fault, and why."""

from typing import Final

# The model gets worse for a while or for good, or numbers get out of hand.
WORSE: Final = {
    "AllZero": "units are pushed below zero for good",
    "AttentionCollapse": "weights that have moved far sharpen attention",
    "ClassImbalance": "a damaged model takes words for others",
    "Confusion": "a damaged model takes words for others",
    "DeadRelu": "large updates push units below zero for good",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "a worse loss has larger gradients",
    "LossNotDecreasing": "the loss rises, or falls no more",
    "LossSpike": "the loss jumps",
    "NormGrowth": "large updates make weights large",
    "Overfit": "losses of training and validation are out of hand, and differ",
    "Overtraining": "the loss gets no better than it was",
    "PoorWeightInitialization": "the damage is there from the first steps on",
    "RouterCollapse": "large updates push words to few experts",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "what is saturated does not move",
    "TensorVariance": "weights have become large or small",
    "UnchangedTensor": "what is saturated does not move",
    "VanishingGradient": "what is saturated has no gradient",
    "WeightUpdateRatio": "updates are large beside the weights, or nothing",
}
# A part of the model, or all of it, gets nothing to learn from.
UNTAUGHT: Final = {
    "AllZero": "what is not used has gradients of zero",
    "AttentionCollapse": "attention is left as it was",
    "ClassImbalance": "little is learnt",
    "Confusion": "little is learnt",
    "DeadRelu": "units that are not used stay silent",
    "LossNotDecreasing": "little is learnt: the loss is level",
    "Overfit": "what is learnt is chance",
    "Overtraining": "the loss is level",
    "PoorWeightInitialization": "gradients are small from the first steps on",
    "RepresentationCollapse": "what is written for all inputs is alike",
    "StalledParameters": "what has no gradient does not move",
    "TensorVariance": "weights that are not used shrink, or stay as they are",
    "UnchangedTensor": "what has no gradient does not move",
    "VanishingGradient": "what is not used has hardly a gradient",
    "WeightUpdateRatio": "what has no gradient does not move, or only decays",
}
# The answer can be read off.
COPIED: Final = {
    "AttentionCollapse": "copying needs a single word",
    "LossNotDecreasing": "the loss is level once the answer is copied",
    "Overtraining": "the loss is level once the answer is copied",
    "UnchangedTensor": "hardly anything moves once the answer is copied",
    "VanishingGradient": "gradients are tiny once the answer is copied",
    "WeightUpdateRatio": "hardly anything moves once the answer is copied",
}
