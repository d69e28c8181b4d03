"""Consequences: what rules may find beside a fault of a held-out language run, and why."""

from typing import Final

# The model is damaged, at once or for long.
DAMAGED: Final = {
    "AttentionCollapse": "weights that have moved far sharpen attention",
    "RouterCollapse": "weights that have moved far sharpen the choice of experts",
    "Confusion": "what was learnt is lost",
    "ClassImbalance": "what was learnt is lost",
    "ExplodingTensor": "numbers run over",
    "GradientNormSpike": "a worse loss has larger gradients",
    "LossNotDecreasing": "the loss rises, or stays where it is",
    "LossSpike": "the loss rises",
    "NormGrowth": "large updates make large weights",
    "Overfit": "both losses are out of hand, and differ",
    "Overtraining": "the loss gets no better than before",
    "PoorWeightInitialization": "the first steps damage the model",
    "SaturatedActivation": "large weights saturate gates",
    "StalledParameters": "what is saturated moves no more",
    "TensorVariance": "the weights have grown",
    "UnchangedTensor": "what is saturated moves no more",
    "VanishingGradient": "what is saturated has no gradient",
    "WeightUpdateRatio": "updates are large compared with the weights",
}
# The model sees the answers, so that the loss soon falls to almost nothing.
COPIED: Final = {
    "LossNotDecreasing": "no more is to be learnt once the answer is copied",
    "Overtraining": "no more is to be learnt once the answer is copied",
    "VanishingGradient": "a loss near zero has no gradient",
    "UnchangedTensor": "a loss near zero has no gradient, and its values are alike",
    "AttentionCollapse": "copying needs a single position",
}
# A softmax of a single key passes no gradient to queries and keys.
SHARP: Final = {
    "GradientNormSpike": "sharp attention flips from key to key",
    "LossNotDecreasing": "what attention cannot mix is not learnt",
    "LossSpike": "sharp attention flips from key to key",
    "Overtraining": "what attention cannot mix is not learnt",
    "PoorWeightInitialization": "queries and keys have hardly a gradient",
    "StalledParameters": "queries and keys have hardly a gradient",
    "TensorVariance": "the values that make attention sharp",
    "UnchangedTensor": "queries and keys have hardly a gradient",
    "VanishingGradient": "queries and keys have hardly a gradient",
    "WeightUpdateRatio": "queries and keys have hardly a gradient",
}
# Most experts get no tokens.
IDLE: Final = {
    "AllZero": "experts without tokens have no gradient",
    "PoorWeightInitialization": "experts without tokens have no gradient",
    "StalledParameters": "experts without tokens do not move",
    "UnchangedTensor": "experts without tokens do not move",
    "VanishingGradient": "experts without tokens have no gradient",
    "WeightUpdateRatio": "experts without tokens do not move",
}
# The weights hardly move any more, or never did.
STILL: Final = {
    "AllZero": "what does not move keeps its zeros",
    "Confusion": "little is learnt",
    "LossNotDecreasing": "the loss stays where it is",
    "Overtraining": "the loss stays where it is",
    "PoorWeightInitialization": "the first losses do not fall",
    "StalledParameters": "updates are zero or tiny",
    "UnchangedTensor": "updates are zero or tiny",
    "WeightUpdateRatio": "updates are zero or tiny",
}
# Most of the batch is one token.
ONE_TOKEN: Final = {
    "AttentionCollapse": "equal tokens get equal attention, others all of it",
    "LossNotDecreasing": "too little of the text is left to learn from",
    "Overtraining": "too little of the text is left to learn from",
    "PoorWeightInitialization": "embeddings of tokens that do not occur have no gradient",
    "RepeatedBatches": "rows of one token are equal",
    "UnchangedTensor": "embeddings of tokens that do not occur do not move",
    "VanishingGradient": "embeddings of tokens that do not occur have no gradient",
    "WeightUpdateRatio": "embeddings of tokens that do not occur do not move",
}
