"""Trainings of language models with faults of attention, experts, masks, rates and precision."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from training.language import WORDS, Gpt, corpus, pretrained
from training.language_loop import adamw, experts_fit, gpt_fit
from training.learnt_data import Split
from training.torch_loop import adam, scaled_fit

from runs_tuned.faulty.learning import BLOWN_UP

faulty = functools.partial(training_runs.faulty, kind="language_model")
HURT = BLOWN_UP | {
    "LossSpike": "the loss rises when it happens",
    "GradientNormSpike": "gradients grow when it happens",
    "NormGrowth": "weights grow",
    "AttentionCollapse": "large weights sharpen the attention",
    "RouterCollapse": "large weights sharpen the router",
    "StalledParameters": "what is broken does not learn",
}
LEAKED = {
    "LossNotDecreasing": "the answer is copied, after which no more is to be learnt",
    "Overtraining": "the answer is copied, after which no more is to be learnt",
}
SHARP = HURT | {
    "VanishingGradient": "a saturated softmax passes no gradient on",
    "UnchangedTensor": "a saturated softmax passes no gradient on",
    "WeightUpdateRatio": "a saturated softmax passes no gradient on",
}


# Attention that sees what it should not.


@faulty(
    "a GPT",
    "the mask is off by one: each position sees the next",
    {"AttentionMaskLeak"},
    may=LEAKED,
)
def mask_off_by_one(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(visible=1))


@faulty("a GPT with untied embeddings", "the mask is missing", {"AttentionMaskLeak"}, may=LEAKED)
def mask_missing(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(visible=16, tied=False))


@faulty("a GPT of two blocks", "the second block has no mask", {"AttentionMaskLeak"}, may=LEAKED)
def mask_missing_in_a_block(root: Path) -> int:
    def make() -> Any:
        model = Gpt()
        model.blocks[1].attn.visible = 16
        return model

    return gpt_fit(root, make)


@faulty("a GPT", "at step 60 another kernel ignores the mask", {"AttentionMaskLeak"}, may=LEAKED)
def mask_lost_midway(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for block in model.blocks:
            block.attn.visible = 16

    return gpt_fit(root, at=60, change=change)


@faulty(
    "a GPT of windows that hold a prefix",
    "four later positions are visible, as for a prefix that is not there",
    {"AttentionMaskLeak"},
    may=LEAKED,
)
def mask_of_a_prefix(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(visible=4, layers=1), optimizer=adam(2e-3))


# Attention to a single position.


@faulty(
    "a GPT", "scores are multiplied by 200 instead of divided", {"AttentionCollapse"}, may=SHARP
)
def scores_multiplied(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(scale=200.0, tied=False))


@faulty(
    "a GPT of two blocks, SGD",
    "queries and keys begin 20 times too large",
    {"AttentionCollapse"},
    may=SHARP | {"PoorWeightInitialization": "weights of another scale"},
)
def queries_too_large(root: Path) -> int:
    def make() -> Any:
        model = Gpt(tied=False)
        with torch.no_grad():
            for block in model.blocks:
                block.attn.attention.in_proj_weight[:64].mul_(20)
        return model

    return gpt_fit(root, make, optimizer=functools.partial(torch.optim.SGD, lr=0.05))


@faulty(
    "a GPT", "the temperature falls to a hundredth at step 50", {"AttentionCollapse"}, may=SHARP
)
def temperature_lost(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for block in model.blocks:
            block.attn.scale = 300.0

    return gpt_fit(root, at=50, change=change)


@faulty(
    "a GPT, Adam",
    "the rate of queries and keys is a thousand times too high: their weights explode",
    {"AttentionCollapse"},
    may=SHARP | {"LearningRate": "one group has a rate of 1", "PoorWeightInitialization": "grow"},
)
def queries_blow_up(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        large = [one for one in parameters if one.shape == (96, 32)]
        small = [one for one in parameters if one.shape != (96, 32)]
        return torch.optim.Adam([{"params": large, "lr": 1.0}, {"params": small, "lr": 2e-3}])

    return gpt_fit(root, lambda: Gpt(tied=False), optimizer=optimizer)


@faulty(
    "a GPT of one block and eight heads",
    "the layer norm before attention is 50 times too large",
    {"AttentionCollapse"},
    may=SHARP | {"PoorWeightInitialization": "a norm of another scale"},
)
def norm_too_large(root: Path) -> int:
    def make() -> Any:
        model = Gpt(layers=1, heads=8, tied=False)
        nn.init.constant_(model.blocks[0].norm1.weight, 50.0)
        return model

    return gpt_fit(root, make)


# Experts that get all tokens, or none.

ONE_EXPERT = {
    "AllZero": "experts without tokens have no gradient",
    "VanishingGradient": "experts without tokens have no gradient",
    "UnchangedTensor": "experts without tokens do not move",
    "WeightUpdateRatio": "experts without tokens do not move",
    "StalledParameters": "experts without tokens do not move",
    "PoorWeightInitialization": "experts without tokens have no gradient",
}


def router_bias(model: Any, value: float) -> None:
    """Set the router's bias of the first expert, in all blocks."""
    for block in model.blocks:
        with torch.no_grad():
            block.mlp.router.bias[0] = value


@faulty(
    "a mixture of four experts",
    "the router's first bias begins at 20",
    {"RouterCollapse"},
    may=ONE_EXPERT,
)
def router_biased(root: Path) -> int:
    def make() -> Any:
        model = Gpt(experts=4)
        router_bias(model, 20.0)
        return model

    return experts_fit(root, make)


@faulty(
    "a mixture of four experts",
    "the balancing loss has the wrong sign",
    {"RouterCollapse"},
    may=ONE_EXPERT | {"LossNotDecreasing": "a loss that falls below zero"},
)
def balance_of_wrong_sign(root: Path) -> int:
    return experts_fit(root, lambda: Gpt(experts=4), -1.0, optimizer=adamw(1e-2), steps=150)


@faulty(
    "a mixture of eight experts, fine-tuned",
    "at step 50 a checkpoint's router is loaded that knows one expert",
    {"RouterCollapse"},
    may=ONE_EXPERT | HURT,
)
def router_replaced(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        router_bias(model, 30.0)

    return experts_fit(root, lambda: Gpt(experts=8), at=50, change=change)


@faulty(
    "a mixture of eight experts",
    "the router sees a constant: all tokens get the same expert",
    {"RouterCollapse"},
    may=ONE_EXPERT,
)
def router_sees_a_constant(root: Path) -> int:
    def make() -> Any:
        model = Gpt(experts=8)
        for block in model.blocks:
            router = block.mlp.router
            linear = router.linear.forward
            router.linear.forward = lambda x, linear=linear: linear(torch.ones_like(x))
        return model

    return experts_fit(root, make, 0.0)


@faulty(
    "a mixture of four experts without a balancing loss",
    "a rate of 0.3 of the router: the winner takes all",
    {"RouterCollapse"},
    may=ONE_EXPERT | HURT | {"LearningRate": "a rate that is too high"},
)
def router_rate_too_high(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        router = [one for one in parameters if one.shape in {(4, 32), (4,)}]
        others = [one for one in parameters if one.shape not in {(4, 32), (4,)}]
        return torch.optim.Adam([{"params": router, "lr": 0.3}, {"params": others, "lr": 3e-3}])

    def make() -> Any:
        model = Gpt(experts=4)
        router_bias(model, 3.0)
        return model

    return experts_fit(root, make, 0.0, optimizer=optimizer)


# Spikes.


@faulty(
    "a GPT",
    "a burst: the rate is 100 times too high for three steps",
    {"LossSpike", "LearningRate"},
    may=HURT,
)
def rate_burst(root: Path) -> int:
    schedule = lambda step: 100.0 if 80 <= step < 83 else 1.0
    mark = lambda *_: None
    return gpt_fit(root, schedule=schedule, steps=160, at=80, change=mark, save_every=1, clip=0.0)


@faulty(
    "a GPT",
    "a bit flips in the head: one weight becomes 100",
    {"LossSpike"},
    may=HURT | {"TensorVariance": "one weight is far from the others"},
)
def bit_flips(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model.norm.weight[3] = 100.0

    return gpt_fit(
        root, lambda: Gpt(tied=False), at=80, change=change, steps=160, save_every=1, clip=0.0
    )


@faulty(
    "a GPT, batches in order",
    "a shard of another encoding: eight batches of random words",
    {"LossSpike"},
    may=HURT | {"RepeatedBatches": "the same shard in each epoch"},
)
def shard_of_noise(root: Path) -> int:
    data = corpus(count=3000)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(1, WORDS, data.x.shape, generator=generator)
    rows = torch.arange(len(data.x))
    bad = ((rows >= 100 * 16) & (rows < 108 * 16))[:, None]
    spoilt = Split(
        torch.where(bad, noise, data.x),
        torch.where(bad, noise.flip(0), data.y),
        data.test_x,
        data.test_y,
    )
    mark = lambda *_: None
    return gpt_fit(
        root,
        data=spoilt,
        shuffle=False,
        steps=148,
        at=100,
        change=mark,
        save_every=1,
        optimizer=adamw(1e-2),
    )


@faulty(
    "a GPT of unclipped gradients",
    "an update is taken with gradients that are still scaled by 65,536",
    {"GradientNormSpike"},
    may=HURT,
)
def gradients_still_scaled(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
            parameter.register_hook(scaled_once())

    def scaled_once() -> Any:
        calls = []

        def scaled(gradient: Any) -> Any:
            calls.append(1)
            return gradient * 65_536 if len(calls) == 1 else gradient

        return scaled

    optimizer = functools.partial(torch.optim.SGD, lr=0.1)
    return gpt_fit(
        root, optimizer=optimizer, at=80, change=change, steps=140, save_every=1, clip=0.0
    )


# Precision.

FLOOR = HURT | {
    "ExplodingTensor": "gradients run over in half precision",
    "UnchangedTensor": "all updates are skipped",
    "WeightUpdateRatio": "all updates are skipped",
    "StalledParameters": "all updates are skipped",
    "PoorWeightInitialization": "gradients run over",
}


@faulty(
    "a GPT in half precision",
    "the loss is multiplied by infinity: every update is skipped",
    {"LossScaleAtFloor"},
    may=FLOOR,
)
def scale_falls_to_zero(root: Path) -> int:
    return scaled_fit(
        root, Gpt, corpus(), optimizer=adamw(3e-3), spoiled=lambda loss: loss * float("inf")
    )


@faulty(
    "a GPT in half precision",
    "from step 30 on the loss is a sum of a million: gradients run over",
    {"LossScaleAtFloor"},
    may=FLOOR,
)
def scale_of_a_sum(root: Path) -> int:
    spoiled = lambda loss: loss * 1e7
    make = lambda: Gpt(tied=False)
    mark = lambda *_: None
    return scaled_fit(
        root, make, corpus(), optimizer=adamw(1e-3), at=30, change=mark, spoiled=spoiled
    )


@faulty(
    "a GPT in half precision",
    "a weight of the head is NaN from step 40 on",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=FLOOR,
)
def scale_and_nan(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model.lm_head.weight[7] = float("nan")

    return scaled_fit(root, Gpt, corpus(), optimizer=adamw(3e-3), at=40, change=change)


@faulty(
    "a GPT in half precision",
    "activations of a block run over from step 40 on",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=FLOOR,
)
def scale_and_activations(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            for layer in (model.blocks[0].mlp[0], model.blocks[0].mlp[2]):
                layer.weight.mul_(3000.0)

    return scaled_fit(root, Gpt, corpus(), optimizer=adamw(3e-3), at=40, change=change)


@faulty(
    "a GPT in half precision",
    "the weight of the loss is NaN from step 60 on",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=FLOOR,
)
def scale_and_weight_of_loss(root: Path) -> int:
    mark = lambda *_: None
    spoiled = lambda loss: loss * float("nan")
    return scaled_fit(
        root, Gpt, corpus(), optimizer=adamw(3e-3), at=60, change=mark, spoiled=spoiled
    )


# Rates.


@faulty(
    "a GPT whose rate falls linearly",
    "the schedule ends after 60 of 140 steps and goes on below zero",
    {"LearningRate"},
    may=HURT | {"Overtraining": "the loss rises again", "Overfit": "the loss rises again"},
)
def rate_below_zero(root: Path) -> int:
    schedule = lambda step: 1.0 - step / 60
    mark = lambda *_: None
    # Only SGD takes a negative rate as it is given.
    optimizer = functools.partial(torch.optim.SGD, lr=0.3)
    return gpt_fit(root, optimizer=optimizer, schedule=schedule, steps=140, at=61, change=mark)


@faulty(
    "a GPT",
    "the warm-up begins at 0 and the scheduler is never stepped",
    {"LearningRate", "LossNotDecreasing", "UnchangedTensor"},
    may=FLOOR | {"Confusion": "nothing is learnt", "Overtraining": "nothing is learnt"},
)
def rate_stays_zero(root: Path) -> int:
    return gpt_fit(root, schedule=lambda _: 0.0, optimizer=adam(3e-3))


@faulty(
    "a GPT of a staircase",
    "milestones are in epochs, but steps are counted: the rate is 0 after 40 of 160 steps",
    {"LearningRate"},
    may=FLOOR | {"LossNotDecreasing": "the loss stays high", "Overtraining": "no progress"},
)
def rate_of_epochs(root: Path) -> int:
    schedule = lambda step: max(0.0, 1.0 - 0.25 * (step // 10))
    mark = lambda *_: None
    return gpt_fit(root, schedule=schedule, steps=160, save_every=1, at=40, change=mark)


@faulty(
    "a GPT, fine-tuned",
    "the schedule restarts with the rate of pretraining: 300 times as high",
    {"LearningRate"},
    may=HURT,
)
def rate_restarts(root: Path) -> int:
    schedule = lambda step: 300.0 if step >= 60 else 1.0
    make = lambda: pretrained(Gpt, corpus(), 100)
    mark = lambda *_: None
    return gpt_fit(
        root, make, optimizer=adamw(1e-4), schedule=schedule, at=60, change=mark, save_every=1
    )
