"""Trainings whose optimizer, learning rate or update is wrong."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import diabetes, digits, images, random_labels, sentences, table, waves
from training.small_networks import Cnn, Recurrent, Transformer, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

STUCK = {"UnchangedTensor", "WeightUpdateRatio", "LossNotDecreasing"}
UNTRAINED = {
    "Confusion": "what was not learnt is confused",
    "ClassImbalance": "an untrained classifier gets some classes wrong altogether",
    "Overtraining": "a loss that stands still is not getting better either",
    "PoorWeightInitialization": "the loss does not fall in the first steps",
}
BLOWN_UP = {
    "Confusion": "nothing is learnt any more",
    "ClassImbalance": "all is taken for one class",
    "LossNotDecreasing": "the loss jumps",
    "WeightUpdateRatio": "updates are far larger than weights",
    "TensorVariance": "the weights have grown",
    "DeadRelu": "large updates push units below zero for good",
    "VanishingGradient": "behind dead units there is no gradient",
    "AllZero": "outputs of dead layers",
    "UnchangedTensor": "weights behind dead units, or that are NaN, move no more",
    "Overtraining": "the loss does not come down again",
    "Overfit": "both losses are out of hand, and differ",
    "PoorWeightInitialization": "the loss does not fall in the first steps",
    "SaturatedActivation": "large weights, large inputs",
    "ExplodingTensor": "numbers run over",
    "NormGrowth": "large updates make weights large",
    "GradientNormSpike": "gradients of a loss that is out of hand",
    "LossSpike": "the loss jumps",
}


def rest(reasons: dict[str, str], *without: str) -> dict[str, str]:
    """Return the optional findings, beyond the required ones."""
    return {rule: reason for rule, reason in reasons.items() if rule not in without}


def nothing(_: Any) -> None:
    """Take no step."""


def zeroed(optimizer: Any) -> None:
    """Clear the gradients, and only then take the step."""
    for group in optimizer.param_groups:
        for one in group["params"]:
            one.grad = torch.zeros_like(one)
    optimizer.step()


@faulty("digits, two ReLU layers", "optimizer.step() was forgotten", STUCK, may=UNTRAINED)
def step_forgotten(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), update=nothing)


@faulty("sentences, LSTM", "optimizer.step() was forgotten", STUCK, may=UNTRAINED)
def step_forgotten_lstm(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(root, make, sentences(), update=nothing, save_every=3)


@faulty("digits, convolutions", "gradients are cleared right before the step", STUCK, may=UNTRAINED)
def zeroed_before_step(root: Path) -> int:
    return fit(root, Cnn, images(), update=zeroed, save_every=3)


@faulty(
    "breast cancer",
    "the optimizer has the parameters of a copy",
    STUCK | {"ParametersWithoutOptimizer"},
    may=UNTRAINED,
)
def optimizer_of_a_copy(root: Path) -> int:
    def optimizer(_: Any) -> Any:
        return torch.optim.SGD(mlp(30, 16, 2)().parameters(), 0.1)

    return fit(root, mlp(30, 16, 2), table("breast_cancer"), optimizer=optimizer)


@faulty(
    "digits, the learning rate falls by steps",
    "a schedule sets the learning rate to 0 after 100 of 240 steps",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may={"LossNotDecreasing": "a plateau at a low loss", "Overtraining": "nothing gets better"}
    | rest(UNTRAINED, "PoorWeightInitialization"),
)
def rate_falls_to_zero(root: Path) -> int:
    def rate(step: int) -> float:
        return 0.0 if step >= 100 else 1.0

    def mark(*_: Any) -> None:
        """Nothing happens to the model: the schedule is the fault."""

    return fit(root, mlp(64, 48, 32, 10), digits(), schedule=rate, steps=240, at=100, change=mark)


@faulty(
    "digits, two ReLU layers",
    "a learning rate of 1e-9",
    {"LossNotDecreasing", "UnchangedTensor"},
    may=UNTRAINED | {"WeightUpdateRatio": "updates are below float32's resolution for some"},
)
def rate_far_too_small(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(1e-9))


@faulty(
    "digits, two ReLU layers",
    "a learning rate of 1e-5 with SGD",
    {"LossNotDecreasing"},
    may=UNTRAINED | {"UnchangedTensor": "changes are below its tolerance"},
)
def rate_too_small(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(1e-5), steps=240, save_every=4)


@faulty(
    "breast cancer",
    "the sign of the loss is wrong: gradient ascent",
    {"LossNotDecreasing"},
    may=BLOWN_UP | UNTRAINED,
)
def gradient_ascent(root: Path) -> int:
    return fit(
        root,
        mlp(30, 16, 2),
        table("breast_cancer"),
        backward=lambda loss: (-loss).backward(),
        optimizer=sgd(0.02),
        steps=80,
    )


@faulty(
    "digits, labels at random",
    "labels are shuffled",
    {"Confusion"},
    may=UNTRAINED
    | {
        "Overfit": "the labels are learnt by heart",
        "LossNotDecreasing": "learning by heart is slow: 2.33 falls to 2.28",
    },
)
def labels_shuffled(root: Path) -> int:
    data = digits().relabelled(random_labels(10))
    return fit(root, mlp(64, 48, 10), data, steps=160, optimizer=sgd(0.05), batch=64)


@faulty(
    "diabetes, mean squared error",
    "a learning rate of 3",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=BLOWN_UP,
)
def rate_too_large_regression(root: Path) -> int:
    return fit(root, mlp(10, 32, 1), diabetes(), loss=nn.MSELoss(), optimizer=sgd(3.0), steps=60)


@faulty(
    "digits, two ReLU layers",
    "a learning rate of 60",
    {"LossNotDecreasing", "WeightUpdateRatio", "TensorVariance", "Confusion"},
    may=BLOWN_UP,
)
def rate_far_too_large(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(60.0), steps=80)


@faulty(
    "digits, Adam",
    "a learning rate of 3 instead of 3e-3",
    {"WeightUpdateRatio", "LossNotDecreasing", "TensorVariance"},
    may=BLOWN_UP,
)
def adam_rate_of_3(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=adam(3.0), steps=80, save_every=1)


@faulty(
    "digits, convolutions, ReLU",
    "the learning rate jumps to 300 at step 60, as by a wrong unit in a schedule",
    {"WeightUpdateRatio", "LossNotDecreasing", "DeadRelu", "TensorVariance", "LearningRate"},
    may=BLOWN_UP,
)
def rate_jumps(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 300.0

    return fit(root, Cnn, images(), steps=120, at=60, change=change)


@faulty(
    "digits, convolutions with batch norm",
    "a learning rate of 100: batch norm hides it",
    {"WeightUpdateRatio", "TensorVariance"},
    may=BLOWN_UP,
)
def rate_hidden_by_norm(root: Path) -> int:
    return fit(root, lambda: Cnn(norm=True), images(), optimizer=sgd(100.0), steps=60, save_every=1)


@faulty(
    "sentences, transformer",
    "Adam at 0.5, no warm-up",
    {"WeightUpdateRatio", "LossNotDecreasing"},
    may=BLOWN_UP | {"AttentionCollapse": "large weights sharpen the attention"},
)
def transformer_without_warm_up(root: Path) -> int:
    make = lambda: Transformer(2)
    return fit(root, make, sentences(), optimizer=adam(0.5), steps=80, save_every=1)


@faulty(
    "sine waves, plain RNN",
    "gradients are not clipped, and Adam's learning rate is 1",
    {"LossNotDecreasing", "SaturatedActivation"},
    may=BLOWN_UP,
)
def rnn_not_clipped(root: Path) -> int:
    class Cell(nn.Module):
        """A recurrent layer by hand, whose tanh is a module."""

        def __init__(self) -> None:
            super().__init__()
            self.ins, self.state = nn.Linear(1, 16), nn.Linear(16, 16)
            self.tanh, self.head = nn.Tanh(), nn.Linear(16, 1)

        def forward(self, x: Any) -> Any:
            state = x.new_zeros(len(x), 16)
            for at in range(x.shape[1]):
                state = self.tanh(self.ins(x[:, at]) + self.state(state))
            return self.head(state)

    return fit(root, Cell, waves(), loss=nn.MSELoss(), optimizer=adam(1.0), steps=60, save_every=2)


@faulty(
    "digits, two ReLU layers",
    "the whole network but its last bias was frozen for fine-tuning",
    {"LossNotDecreasing"},  # `requires_grad` says that the layers are frozen on purpose
    may=UNTRAINED
    | {"UnchangedTensor": "weights do not change", "WeightUpdateRatio": "weights do not change"},
)
def all_frozen(root: Path) -> int:
    def make() -> Any:
        model = mlp(64, 48, 32, 10)()
        model.requires_grad_(False)
        model[-1].bias.requires_grad_(True)
        return model

    return fit(root, make, digits(), optimizer=sgd(0.01))


@faulty(
    "digits, two ReLU layers",
    "the network is frozen at step 60 and never thawed",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=UNTRAINED,
)
def frozen_midway(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for layer in model[:4]:
            layer.requires_grad_(False)
            layer.zero_grad()

    return fit(root, mlp(64, 48, 32, 10), digits(), at=60, change=change)
