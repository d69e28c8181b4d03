"""Trainings with parameters that stand still or grow, and with losses that spike."""

import functools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.language import Gpt
from training.language_loop import gpt_fit
from training.learnt_data import Split, diabetes, digits, images, sentences
from training.small_networks import Cnn, Transformer, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.faulty.learning import BLOWN_UP, UNTRAINED
from runs_tuned.healthy.vision import VisionTransformer

STALLS = {"StalledParameters"}
STILL = UNTRAINED | {
    "UnchangedTensor": "weights stand still",
    "WeightUpdateRatio": "weights stand still",
    "LossNotDecreasing": "parts of the model do not learn",
    "AllZero": "no gradient",
    "VanishingGradient": "no gradient",
    "LearningRate": "a rate of zero",
}


@faulty(
    "digits, two ReLU layers, one of them left out of the optimizer",
    "the optimizer has the first and the last layer only",
    STALLS | {"UnchangedTensor"},
    may=STILL,
)
def layer_not_optimized(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        return torch.optim.SGD([one for one in parameters if one.shape[0] != 32], lr=0.1)

    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=optimizer)


@faulty(
    "a vision transformer",
    "position embeddings and the class token are in no parameter group",
    STALLS,
    may=STILL,
)
def positions_not_optimized(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        return torch.optim.AdamW([one for one in parameters if one.ndim < 3], lr=2e-3)

    return fit(root, VisionTransformer, images(), optimizer=optimizer, save_every=3)


@faulty(
    "a GPT in pure bfloat16",
    "a rate of 1e-6: updates are smaller than a weight's last bit",
    STALLS,
    may=STILL,
    kind="language_model",
)
def updates_swallowed(root: Path) -> int:
    make = lambda: Gpt(tied=False).bfloat16()
    return gpt_fit(root, make, optimizer=adam(1e-6), clip=0.0)


@faulty(
    "digits, trained in pure bfloat16 with SGD",
    "from step 60 on the rate is 1e-7: nothing moves any more, gradients are there",
    {"UnchangedTensor"},  # StalledParameters compares with parameters that move
    may=STILL | {"StalledParameters": "a parameter may stand still before the others"},
)
def rate_below_precision(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 1e-7

    data = digits()
    half = Split(data.x.bfloat16(), data.y, data.test_x.bfloat16(), data.test_y)
    make = lambda: mlp(64, 48, 32, 10)().bfloat16()
    return fit(root, make, half, optimizer=sgd(0.05), at=60, change=change, steps=160)


class Detached(nn.Module):
    """A model whose trunk is cut off by a slip: `detach` was left in from debugging."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.head = nn.Linear(48, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.trunk(x).detach())


@faulty("digits, two layers", "the trunk's output is detached", STALLS, may=STILL)
def trunk_detached(root: Path) -> int:
    return fit(root, Detached, digits(), optimizer=sgd(0.1))


@faulty(
    "sentences, transformer, two parameter groups",
    "the encoder's group has a learning rate of 0",
    STALLS,
    may=STILL,
)
def group_of_rate_zero(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        large = [one for one in parameters if one.ndim == 2]
        small = [one for one in parameters if one.ndim != 2]
        return torch.optim.Adam([{"params": large, "lr": 0.0}, {"params": small, "lr": 3e-3}])

    make = lambda: Transformer(2)
    return fit(root, make, sentences(), optimizer=optimizer)


# Weights that grow without end.

GROWS = {"NormGrowth"}


@faulty(
    "digits, two ReLU layers",
    "weight decay has the wrong sign",
    GROWS,
    may=BLOWN_UP | {"LossSpike": "weights grow", "GradientNormSpike": "weights grow"},
)
def decay_of_wrong_sign(root: Path) -> int:
    def update(optimizer: Any) -> None:
        optimizer.step()
        with torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.mul_(1.03)

    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(0.01), update=update, steps=160)


@faulty(
    "a GPT with untied embeddings",
    "Adam at a rate of 0.3, no decay, no clipping: logits grow",
    GROWS,
    may=BLOWN_UP
    | {
        "AttentionCollapse": "large weights",
        "LossSpike": "large updates",
        "GradientNormSpike": "large updates",
        "LearningRate": "no warm-up",
        "StalledParameters": "saturated",
    },
    kind="language_model",
)
def logits_grow(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(tied=False), optimizer=adam(0.3), clip=0.0)


@faulty(
    "digits, convolutions with batch norm",
    "a rate of 20 without decay: norms hide that weights grow",
    GROWS,
    may=BLOWN_UP | {"LossSpike": "large updates", "GradientNormSpike": "large updates"},
)
def norms_hide_growth(root: Path) -> int:
    return fit(root, lambda: Cnn(norm=True), images(), optimizer=sgd(20.0), save_every=3)


@faulty(
    "digits, linear layers",
    "the loss is the sum of the logits' negative: it has no end below",
    GROWS,
    may=BLOWN_UP | {"GradientNormSpike": "weights grow", "LossSpike": "weights grow"},
)
def loss_without_end(root: Path) -> int:
    class EndlessLoss(nn.Module):
        """The negative logit of the label, without the logits of the others."""

        def forward(self, logits: Any, y: Any) -> Any:
            return -logits.gather(1, y[:, None]).mean()

    return fit(root, mlp(64, 48, 32, 10), digits(), loss=EndlessLoss(), optimizer=adam(0.02))


@faulty(
    "sentences, transformer",
    "from step 40 on the rate is 0.2",
    GROWS | {"LearningRate"},
    may=BLOWN_UP
    | {
        "AttentionCollapse": "large weights",
        "LossSpike": "large updates",
        "GradientNormSpike": "large updates",
        "StalledParameters": "saturated",
    },
)
def rate_grows_weights(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 0.2

    make = lambda: Transformer(2)
    return fit(root, make, sentences(), optimizer=adam(1e-3), at=40, change=change, steps=160)


# Single batches or updates that hurt.

SPIKES = {"LossSpike", "GradientNormSpike"}
AFTER = BLOWN_UP | {
    "NormGrowth": "a large update",
    "StalledParameters": "dead units",
    "TensorVariance": "a large update",
    "CheckInputImages": "inputs of another scale",
}


def with_bad_batches(data: Split, size: int, change: Any) -> Split:
    """Return data whose batches 26, 29, 32, 35 and 38 are changed; batches must be in order."""
    rows = torch.arange(len(data.x)) // size
    bad = torch.isin(rows, torch.tensor([26, 29, 32, 35, 38]))
    return Split(*change(data.x, data.y, bad), data.test_x, data.test_y)


mark: Any = lambda *_: None


@faulty(
    "digits, batches in order", "five batches of pixels that are not normalised", SPIKES, may=AFTER
)
def batch_not_normalised(root: Path) -> int:
    def raw(x: Any, y: Any, bad: Any) -> tuple[Any, Any]:
        return torch.where(bad[:, None], 60 * x + 60, x), y

    data = with_bad_batches(digits(), 32, raw)
    return fit(
        root,
        mlp(64, 48, 32, 10),
        data,
        optimizer=sgd(0.02),
        shuffle=False,
        steps=80,
        save_every=1,
        at=26,
        change=mark,
    )


@faulty(
    "digits, convolutions, batches in order", "five corrupt batches of noise", SPIKES, may=AFTER
)
def corrupt_batches(root: Path) -> int:
    def noise(x: Any, y: Any, bad: Any) -> tuple[Any, Any]:
        generator = torch.Generator().manual_seed(0)
        spoilt = 30 * torch.randn(x.shape, generator=generator)
        return torch.where(bad[:, None, None, None], spoilt, x), y

    data = with_bad_batches(images(), 32, noise)
    return fit(
        root,
        Cnn,
        data,
        optimizer=adam(2e-3),
        shuffle=False,
        steps=80,
        save_every=1,
        at=26,
        change=mark,
    )


@faulty(
    "diabetes, batches in order",
    "targets of five batches are in their own unit, not standardised",
    SPIKES,
    may=AFTER,
)
def targets_of_another_unit(root: Path) -> int:
    def raw(x: Any, y: Any, bad: Any) -> tuple[Any, Any]:
        return x, torch.where(bad[:, None], 150 + 77 * y, y)

    other = with_bad_batches(diabetes(), 8, raw)
    return fit(
        root,
        mlp(10, 16, 1),
        other,
        loss=nn.MSELoss(),
        optimizer=sgd(1e-3),
        batch=8,
        shuffle=False,
        steps=80,
        save_every=1,
        at=26,
        change=mark,
    )


@faulty(
    "digits, two ReLU layers",
    "a checkpoint of another layout is loaded into a layer at step 80",
    {"LossSpike"},
    may=AFTER | {"GradientNormSpike": "a single spike is a note"},
)
def layer_overwritten(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model[2].weight.copy_(5 * torch.randn(model[2].weight.shape))

    return fit(
        root,
        mlp(64, 48, 32, 10),
        digits(),
        optimizer=sgd(0.01),
        steps=160,
        save_every=1,
        at=80,
        change=change,
    )


@faulty(
    "digits, two workers' gradients are summed",
    "for three steps gradients are summed over 1,000 instead of averaged",
    SPIKES,
    may=AFTER,
)
def gradients_summed(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for parameter in model.parameters():
            parameter.register_hook(functools.partial(times, [0]))

    def times(calls: list[int], gradient: Any) -> Any:
        calls[0] += 1
        return gradient * 1000 if calls[0] <= 3 else gradient

    return fit(
        root,
        mlp(64, 48, 32, 10),
        digits(),
        optimizer=sgd(0.01),
        steps=160,
        save_every=1,
        at=80,
        change=change,
    )
