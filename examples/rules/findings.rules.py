"""A finding of each rule over tensors; the pages in docs/rules show what is printed of it."""

import numpy as np
from numpy.typing import NDArray

random = np.random.default_rng(0)


def like(shape: tuple[int, ...], scale: float = 1.0) -> NDArray[np.float32]:
    """Return random numbers around 0, in single precision."""
    return (scale * random.normal(size=shape)).astype(np.float32)


images = [128 + like((16, 1, 8, 8)) for _ in range(40)]
labels = [np.where(np.arange(64) < 62, 0, 1) for _ in range(40)]
scores = [like((64, 2)) for _ in range(40)]
confused = np.array([0, 1, 1] * 20)
gradient = like((8, 8))
weight = like((16, 16))
tokens = np.where(np.arange(256) < 220, 0, np.arange(256)).reshape(8, 32)
latents = [like((32, 4), 1e-3) for _ in range(20)]
embeddings = [1 + like((32, 16), 1e-3) for _ in range(20)]
samples = [like((16, 8))] * 6 + [like((16, 8), 0.01)] * 10
probabilities = np.full((32, 4), 0.25, np.float32)
noise = 0.01 * random.normal(size=300)
CASES = [
    {
        "name": "all elements are zero",
        "rule": "AllZero",
        "parameters": {"tensor_regex": "^gradient/"},
        "tensors": {"gradient/fc.weight": [gradient] + [0 * gradient] * 9},
    },
    {
        "name": "heads look at one position",
        "rule": "AttentionCollapse",
        "tensors": {
            "attention/layers.0.attn/entropy": [np.array([0.9, 0.8])]
            + [np.array([0.005, 0.01])] * 12
        },
    },
    {
        "name": "later positions are seen",
        "rule": "AttentionMaskLeak",
        "tensors": {"attention/layers.1.attn/future_mass": "0.26x3"},
    },
    {
        "name": "pixels from 0 to 255",
        "rule": "CheckInputImages",
        "collections": {"input_image": "^images$"},
        "tensors": {"images": images},
    },
    {
        "name": "62 of 64 labels are of one class",
        "rule": "ClassImbalance",
        "tensors": {"labels": labels, "predictions": scores},
        "collections": {"labels": "^labels$", "predictions": "^predictions$"},
    },
    {
        "name": "two classes are predicted as one",
        "rule": "Confusion",
        "tensors": {"labels": [np.arange(60) % 3] * 100, "predictions": [confused] * 100},
        "collections": {"labels": "^labels$", "predictions": "^predictions$"},
    },
    {
        "name": "one feature decides",
        "rule": "FeatureImportanceOverweight",
        "tensors": {
            f"feature_importance/weight/f{n}": f"{1000 if n == 0 else 1}x15" for n in range(20)
        },
    },
    {
        "name": "zero_grad is missing",
        "rule": "GradientAccumulates",
        "tensors": {"optimizer/stale_grad_norm": "1x20", "optimizer/grad_norm": "1x20"},
    },
    {
        "name": "norms explode",
        "rule": "GradientNormSpike",
        "losses": {"loss": "1x39 20x30"},
        "tensors": {"optimizer/grad_norm": "1x39 300x30"},
        "collections": {"gradient_norms": "grad_norm"},
    },
    {
        "name": "the rate is zero",
        "rule": "LearningRate",
        "tensors": {"optimizer/lr/0": "0x30"},
        "collections": {"learning_rates": "^optimizer/lr"},
    },
    {
        "name": "the loss diverges",
        "rule": "LossNotDecreasing",
        "losses": {"loss": [*(2 - 0.01 * n for n in range(100)), *([9.0] * 40)]},
    },
    {
        "name": "the scale stays at 1",
        "rule": "LossScaleAtFloor",
        "tensors": {"optimizer/loss_scale": "65536x29 1x60"},
        "collections": {"loss_scales": "loss_scale"},
    },
    {
        "name": "the loss jumps and stays",
        "rule": "LossSpike",
        "losses": {
            "loss": [
                *(2 - 0.005 * n + noise[n] for n in range(200)),
                *(1.35 + noise[n] for n in range(90)),
            ]
        },
    },
    {
        "name": "samples become alike",
        "rule": "ModeCollapse",
        "tensors": {"samples": samples},
    },
    {
        "name": "padding fills the batch",
        "rule": "NLPSequenceRatio",
        "tensors": {"embedding_input_0": [tokens]},
        "collections": {"input_sequence": "^embedding_input_0$"},
    },
    {
        "name": "weights grow",
        "rule": "NormGrowth",
        "tensors": {"fc.weight": [weight * 1.5**n for n in range(20)]},
        "collections": {"weights": "weight"},
    },
    {
        "name": "validation rises while training falls",
        "rule": "Overfit",
        "steps": "0+1x59",
        "modes": {
            "TRAIN": {"losses": {"loss": "1*0.95x59"}, "steps": "0+2x59"},
            "EVAL": {"losses": {"val_loss": "1+0.02x59"}, "steps": "1+2x59"},
        },
    },
    {
        "name": "nothing improves any more",
        "rule": "Overtraining",
        "modes": {
            "TRAIN": {"losses": {"loss": "1*0.8x19 0.05x179"}, "steps": "0+2x199"},
            "EVAL": {"losses": {"val_loss": "1*0.8x19 0.06x179"}, "steps": "1+2x199"},
        },
    },
    {
        "name": "the policy is certain",
        "rule": "PolicyEntropyCollapse",
        "tensors": {"policy_entropy": "1x20 0.005x200"},
    },
    {
        "name": "gradients are of one number",
        "rule": "PoorWeightInitialization",
        "tensors": {"gradient/fc.weight": [np.full((8, 8), 1e-3)] * 20},
    },
    {
        "name": "latent means do not depend on inputs",
        "rule": "PosteriorCollapse",
        "tensors": {"fc_mu_output_0": latents},
    },
    {
        "name": "softmax before cross entropy",
        "rule": "ProbabilitiesAsLogits",
        "tensors": {"CrossEntropyLoss_input_0": [probabilities] * 12},
    },
    {
        "name": "the loader begins again",
        "rule": "RepeatedBatches",
        "tensors": {
            "fingerprints/inputs": [np.arange(16) + 16 * n for n in range(20)]
            + [np.arange(16) + 16 * 19] * 12
        },
    },
    {
        "name": "a worker differs",
        "rule": "ReplicaDivergence",
        "workers": {
            "worker_0": {"tensors": {"fc.weight": [weight] * 3}},
            "worker_1": {"tensors": {"fc.weight": [weight, weight, weight * 1.01]}},
        },
        "collections": {"weights": "weight"},
    },
    {
        "name": "embeddings are equal",
        "rule": "RepresentationCollapse",
        "tensors": {"projector_output_0": embeddings},
    },
    {
        "name": "one expert gets every token",
        "rule": "RouterCollapse",
        "tensors": {"router/layers.3.moe/load": [np.array([0.97, 0.01, 0.01, 0.01])] * 20},
    },
    {
        "name": "inputs are far from zero",
        "rule": "SaturatedActivation",
        "tensors": {"tanh_input_0": [like((128, 16), 1e5) for _ in range(6)]},
        "collections": {"tanh_input": "^tanh"},
    },
    {
        "name": "one parameter stands still",
        "rule": "StalledParameters",
        "tensors": {
            "a.weight": [weight] * 40,
            "b.weight": [weight * 1.01**n for n in range(40)],
            **{f"gradient/{name}.weight": [gradient] * 40 for name in "ab"},
        },
        "collections": {"weights": "^[ab]\\.weight$"},
    },
    {
        "name": "a bound is exceeded",
        "rule": "TensorVariance",
        "parameters": {"max_threshold": "10", "tensor_regex": "weight"},
        "tensors": {"fc.weight": [like((8, 8), 100.0)]},
    },
    {
        "name": "a chain of twelve nodes",
        "rule": "TreeDepth",
        "tensors": {
            "trees/Tree": [np.zeros(13)],
            "trees/Node": [np.array([2**n - 1 for n in range(13)])],
        },
    },
    {
        "name": "a weight never changes",
        "rule": "UnchangedTensor",
        "parameters": {"tensor_regex": "^fc.weight$"},
        "tensors": {"fc.weight": [weight] * 40, "gradient/fc.weight": [gradient] * 40},
        "collections": {"weights": "^fc.weight$"},
    },
    {
        "name": "model.eval() is missing",
        "rule": "ValidationInTrainingMode",
        "modes": {
            "TRAIN": {"tensors": {"model/training_mode": "1x9"}, "steps": "0+1x9"},
            "EVAL": {"tensors": {"model/training_mode": "1x1"}, "steps": "10+1x1"},
        },
    },
    {
        "name": "updates are as large as the weight",
        "rule": "WeightUpdateRatio",
        "tensors": {"fc.weight": [weight * 30.0**n for n in range(4)]},
        "collections": {"weights": "weight"},
    },
]
for case in CASES:
    case["expect"] = "IssuesFound"
RULE = ""
