"""Consequences: what other rules may find where a fault was made, and why."""

from typing import Final

# What is saturated or not used gets hardly a gradient: little is learnt.
UNTAUGHT: Final = {
    "AllZero": "what is not used has gradients of zero",
    "ClassImbalance": "a model that has learnt little takes one word for most others",
    "Confusion": "a model that has learnt little takes one word for most others",
    "DeadRelu": "units that get nothing new stay silent",
    "LossNotDecreasing": "little is learnt: the loss stays where it is",
    "Overtraining": "the loss stays where it is",
    "PoorWeightInitialization": "gradients are tiny from the first steps on",
    "StalledParameters": "what has no gradient does not move",
    "TensorVariance": "what has no gradient stays as it was, or only decays",
    "UnchangedTensor": "what has no gradient does not move",
    "VanishingGradient": "what is saturated or not used has hardly a gradient",
    "WeightUpdateRatio": "what has no gradient does not move, or only decays",
}
# The model gets worse, at once or step by step, or weights grow without end.
WORSE: Final = {
    "AttentionCollapse": "weights that have moved far sharpen attention",
    "ClassImbalance": "a damaged model takes one word for most others",
    "Confusion": "a damaged model takes one word for most others",
    "DeadRelu": "large updates push units below zero",
    "ExplodingTensor": "numbers may grow without end",
    "GradientNormSpike": "a loss that has jumped has large gradients",
    "LossNotDecreasing": "the loss rises, or falls no more",
    "LossSpike": "the loss jumps",
    "NormGrowth": "weights grow without end",
    "Overfit": "what is learnt does not hold for other rows",
    "Overtraining": "the loss gets no better than it was",
    "SaturatedActivation": "large weights saturate units",
    "TensorVariance": "weights have become large, or small",
    "WeightUpdateRatio": "updates are large beside the weights",
}
# Later words can be copied: the loss is near zero after a while.
COPIED: Final = {
    "AttentionCollapse": "copying needs a single word",
    "LossNotDecreasing": "the loss stays near zero once the next word is copied",
    "Overtraining": "the loss stays near zero once the next word is copied",
    "UnchangedTensor": "hardly anything moves once the next word is copied",
    "VanishingGradient": "gradients are tiny once the next word is copied",
    "WeightUpdateRatio": "hardly anything moves once the next word is copied",
}
# What is given out is the same for all rows.
ALIKE: Final = UNTAUGHT | {
    "GradientNormSpike": "the loss drops to another level, and its gradients with it",
    "ModeCollapse": "what is written is the same for all rows",
    "PosteriorCollapse": "codes are the same for all rows",
    "RepresentationCollapse": "embeddings are the same for all rows",
}
