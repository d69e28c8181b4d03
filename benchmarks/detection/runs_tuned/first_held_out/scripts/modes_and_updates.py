"""Mistakes in scripts: modes not switched, gradients not cleared, parameters not optimized."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, validate, watched
from training_runs import faulty

from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Rhythm,
    beats,
    impedance,
    sensors,
    tower,
)

WRONG_MODE = {
    "Overfit": "training and validation are not measured alike",
    "Overtraining": "validation is noisy, or worse than it could be",
    "Confusion": "validation is worse than the model",
    "ClassImbalance": "validation is worse than the model",
    "LossSpike": "the loss changes with the mode",
    "LossNotDecreasing": "the loss changes with the mode",
    "GradientNormSpike": "gradients change with the mode",
}
ADDED_UP = {
    "LossNotDecreasing": "sums of gradients overshoot",
    "LossSpike": "sums of gradients overshoot",
    "GradientNormSpike": "sums of gradients grow",
    "WeightUpdateRatio": "updates grow",
    "NormGrowth": "updates grow",
    "TensorVariance": "weights grow",
    "ExplodingTensor": "weights grow",
    "VanishingGradient": "large logits leave no gradient",
    "UnchangedTensor": "large logits leave no gradient",
    "SaturatedActivation": "weights grow",
    "StalledParameters": "large logits leave no gradient",
    "Overfit": "losses are out of hand",
    "Overtraining": "losses do not come down again",
    "Confusion": "nothing is learnt any more",
    "ClassImbalance": "nothing is learnt any more",
    "PoorWeightInitialization": "the loss does not fall in the first steps",
}
NOT_MOVING = {
    "UnchangedTensor": "weights stand still",
    "WeightUpdateRatio": "weights stand still",
    "VanishingGradient": "no gradient",
    "AllZero": "no gradient",
    "LossNotDecreasing": "a part of the model does not learn",
    "Overtraining": "a part of the model does not learn",
    "Overfit": "a part of the model does not learn",
    "Confusion": "a part of the model does not learn",
    "ClassImbalance": "a part of the model does not learn",
    "PoorWeightInitialization": "a part of the model does not learn",
}


# Modes


@faulty(
    "machines, blocks with layer norm and dropout",
    "train() is called before the first epoch only: after an evaluation nothing is dropped",
    {"ValidationInTrainingMode"},
    may=WRONG_MODE,
)
def train_called_once(root: Path) -> int:
    torch.manual_seed(2)
    model, loss, data, onset = Blocks(18, 6, drop=0.4), nn.CrossEntropyLoss(), sensors(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(150), batches(data, 32, 6), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 30 == 0:
                validate(watching, model, loss, data)
                model.eval()
                onset = onset or watching.global_step + 1
    return onset


@faulty(
    "rhythms, batch norm and dropout, a network of a factory",
    "the factory returns networks in evaluation mode, and train() is never called",
    {"ValidationInTrainingMode"},
    may=WRONG_MODE,
)
def made_for_evaluation(root: Path) -> int:
    torch.manual_seed(3)
    model, loss, data = Rhythm().eval(), nn.CrossEntropyLoss(), beats()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(120), batches(data, 32, 7), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 24 == 0:
                validate(watching, model, loss, data)
                model.eval()
    return 0


@faulty(
    "rhythms, batch norm and dropout, a moving average of the weights",
    "eval() is called on the moving average, but the network itself is evaluated",
    {"ValidationInTrainingMode"},
    may=WRONG_MODE,
)
def eval_of_the_average(root: Path) -> int:
    torch.manual_seed(4)
    model, loss, data, onset = Rhythm(0.4), nn.CrossEntropyLoss(), beats(), 0
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(120), batches(data, 32, 8), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            average.update_parameters(model)
            if (step + 1) % 24 == 0:
                onset = onset or watching.global_step + 1
                average.eval()
                validate(watching, model, loss, data, is_mode_set=False)
    return onset


# Gradients


@faulty(
    "machines, a trunk and a head, Nesterov momentum",
    "the head's gradients are cleared, those of the trunk are not",
    {"GradientAccumulates"},
    may=ADDED_UP,
)
def trunk_not_cleared(root: Path) -> int:
    torch.manual_seed(6)
    trunk, head = tower(18, 32, 24), nn.Linear(24, 6)
    model, loss, data = nn.Sequential(trunk, nn.SiLU(), head), nn.CrossEntropyLoss(), sensors()
    optimizer = torch.optim.SGD(model.parameters(), 3e-3, momentum=0.8, nesterov=True)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(140), batches(data, 32, 9), strict=False):
            head.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 28 == 0:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "impedances, gradients of four batches accumulated, clipped",
    "gradients are cleared at the end of each epoch, not after each update",
    {"GradientAccumulates"},
    may=ADDED_UP,
)
def cleared_each_epoch(root: Path) -> int:
    torch.manual_seed(7)
    model, loss, data = tower(4, 32, 32, 1), nn.MSELoss(), impedance()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(200), batches(data, 16, 10), strict=False):
            (loss(model(x), y) / 4).backward()
            if (step + 1) % 4 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            if (step + 1) % 50 == 0:
                optimizer.zero_grad()
                validate(watching, model, loss, data)
    return 0


# Optimizers


@faulty(
    "machines, a network of three states gets a head for six",
    "the head is replaced after the optimizer was made, which still has the old one",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor"},
    may=NOT_MOVING,
)
def head_replaced_too_late(root: Path) -> int:
    torch.manual_seed(8)
    model, loss, data = Blocks(18, 3), nn.CrossEntropyLoss(), sensors()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    model.head = nn.Linear(40, 6)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(140), batches(data, 32, 11), strict=False):
            model.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 28 == 0:
                validate(watching, model, loss, data)
    return 0


class TwoChannels(nn.Module):
    """An encoder for each of two channels; the output of the second one is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.slow, self.fast = tower(12, 24, 16), tower(6, 24, 16)
        self.head = nn.Linear(32, 6)

    def forward(self, x: Any) -> Any:
        slow, _ = self.slow(x[:, :12]), self.fast(x[:, 12:])
        return self.head(torch.cat([slow, slow], 1))


@faulty(
    "machines, an encoder for slow readings and one for fast ones",
    "the first encoder's output is joined with itself: the second one is not used",
    {"StalledParameters"},
    may=NOT_MOVING,
)
def second_encoder_unused(root: Path) -> int:
    return fit(root, TwoChannels, sensors(), optimizer=adam(3e-3), steps=120)
