"""Trainings whose optimizers hold other parameters than those that get gradients."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT
from training.language import Gpt
from training.language_loop import gpt_fit
from training.learnt_data import Split, digits, images
from training.small_networks import Cnn, Lora, mlp, trained
from training.torch_loop import adam, batches, fit, validate, watched
from training_runs import faulty, healthy

NOT_HELD = {"ParametersWithoutOptimizer"}
LAYERS = mlp(64, 48, 32, 10)


def loop(
    root: Path, model: Any, learn: Callable[[int, Any, Any], None], data: Split | None = None
) -> int:
    """Train and validate a model by a function that makes each update itself."""
    criterion = nn.CrossEntropyLoss()
    data = data or digits()
    with watched(root, model, losses=[criterion], save_every=1) as watching:
        for number, (x, y) in zip(range(100), batches(data, 32), strict=False):
            learn(number, criterion(model(x), y), x)
            if (number + 1) % 20 == 0:
                validate(watching, model, criterion, data)
    return 0


def update(*optimizers: Any) -> Callable[[int, Any, Any], None]:
    """Return a function that lets optimizers apply the gradients of a loss."""

    def learn(_: int, loss: Any, __: Any) -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return learn


def pretrained() -> Any:
    """Return a classifier of digits that knows a little."""
    return trained(LAYERS, digits(), 60)


def add_adapters(model: Any) -> Any:
    """Freeze a model and wrap its first two linear layers."""
    model.requires_grad_(False)
    for index in (0, 2):
        model[index] = Lora(model[index])
    return model


def unfreeze(model: Any) -> Any:
    return model.requires_grad_(True)


def frozen_but_the_head() -> Any:
    model = pretrained()
    model[:-1].requires_grad_(False)
    return model


# The optimizer was made too early, or for another model.


@faulty("digits, adapters", "the optimizer is made before them", NOT_HELD, may=UNTAUGHT)
def adapters_after_optimizer(root: Path) -> int:
    return fit(root, pretrained, digits(), at=0, change=lambda model, _: add_adapters(model))


def replace_head(model: Any, _: Any) -> None:
    model[-1] = nn.Linear(32, 10)


@faulty("digits", "the last layer is replaced after the optimizer", NOT_HELD, may=UNTAUGHT)
def head_replaced_after_optimizer(root: Path) -> int:
    return fit(root, LAYERS, digits(), at=0, change=replace_head)


@faulty("digits, Adam", "at step 60 the last layer is replaced", NOT_HELD, may=UNTAUGHT)
def head_replaced_later(root: Path) -> int:
    return fit(root, LAYERS, digits(), optimizer=adam(), at=60, change=replace_head)


@faulty("digits", "layers unfrozen at step 40 are not in the optimizer", NOT_HELD, may=UNTAUGHT)
def unfrozen_without_optimizer(root: Path) -> int:
    change = lambda model, _: unfreeze(model)
    return fit(root, frozen_but_the_head, digits(), at=40, change=change)


@faulty("digits, convolutions", "the optimizer has a copy of the model", NOT_HELD, may=UNTAUGHT)
def optimizer_holds_a_copy(root: Path) -> int:
    optimizer = lambda parameters: torch.optim.Adam(copy.deepcopy(parameters))
    return fit(root, Cnn, images(), optimizer=optimizer)


@faulty("digits", "weights are normalised after the optimizer is made", NOT_HELD, may=UNTAUGHT)
def weight_norm_after_optimizer(root: Path) -> int:
    change = lambda model, _: nn.utils.weight_norm(model[2])
    return fit(root, LAYERS, digits(), at=0, change=change)


def grow_vocabulary(model: Any, _: Any) -> None:
    words, width = model.wte.weight.shape
    old, model.wte = model.wte, nn.Embedding(words + 8, width)
    model.wte.weight.data[:words] = old.weight.data


@faulty(
    "a GPT",
    "its embeddings are resized after the optimizer is made",
    NOT_HELD,
    may=UNTAUGHT,
    kind="language_model",
)
def embeddings_resized_after_optimizer(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(tied=False), at=0, change=grow_vocabulary)


# The optimizer leaves parameters out on purpose, or others update them.


@healthy("digits, adapters with an optimizer of their own")
def adapters_before_optimizer(root: Path) -> int:
    return fit(root, lambda: add_adapters(pretrained()), digits(), optimizer=adam())


@healthy("digits, an optimizer that also holds frozen layers")
def optimizer_holds_frozen_layers(root: Path) -> int:
    model = frozen_but_the_head()
    return loop(root, model, update(torch.optim.SGD(model.parameters(), 0.1)))


@healthy("digits, layers unfrozen at step 40 and added to the optimizer")
def unfrozen_with_optimizer(root: Path) -> int:
    def change(model: Any, optimizer: Any) -> None:
        optimizer.add_param_group({"params": [*unfreeze(model)[:-1].parameters()], "lr": 0.02})

    return fit(root, frozen_but_the_head, digits(), at=40, change=change)


@healthy("digits, another optimizer once all layers are unfrozen")
def second_optimizer_after_unfreezing(root: Path) -> int:
    model = frozen_but_the_head()
    optimizers = [torch.optim.SGD(model[-1].parameters(), 0.1)]

    def learn(number: int, loss: Any, x: Any) -> None:
        if number == 40:
            optimizers[:] = [torch.optim.SGD(unfreeze(model).parameters(), 0.05)]
        update(*optimizers)(number, loss, x)

    return loop(root, model, learn)


@healthy("digits, the last layer replaced for a second task, with another optimizer")
def head_replaced_with_optimizer(root: Path) -> int:
    model = pretrained()
    earlier = torch.optim.SGD(model.parameters(), 0.1)
    model[-1] = nn.Linear(32, 10)
    code = loop(root, model, update(torch.optim.SGD(model.parameters(), 0.1)))
    earlier.zero_grad()
    return code


@healthy("digits, a layer that the script updates itself")
def layer_updated_by_hand(root: Path) -> int:
    model = LAYERS()
    optimizer = torch.optim.SGD(model[2:].parameters(), 0.1)

    def learn(number: int, loss: Any, x: Any) -> None:
        model[0].zero_grad()
        update(optimizer)(number, loss, x)
        if number % 2:
            with torch.no_grad():
                for parameter in model[0].parameters():
                    parameter.sub_(0.1 * parameter.grad)

    return loop(root, model, learn)


@healthy("digits in bfloat16, with a master copy in float32 that the optimizer holds")
def master_copy(root: Path) -> int:
    torch.manual_seed(0)
    model = LAYERS().bfloat16()
    parameters = [*model.parameters()]
    masters = [nn.Parameter(parameter.detach().float()) for parameter in parameters]
    optimizer = torch.optim.SGD(masters, 0.1)

    def learn(_: int, loss: Any, __: Any) -> None:
        model.zero_grad()
        loss.backward()
        for parameter, master in zip(parameters, masters, strict=True):
            master.grad = parameter.grad.float()
        optimizer.step()
        for parameter, master in zip(parameters, masters, strict=True):
            parameter.data.copy_(master.data)

    return loop(root, model, learn, digits().of(lambda x: x.bfloat16()))


class Distance(nn.Module):
    """The distance of what a fixed network, which is not frozen, makes of two images."""

    def __init__(self) -> None:
        super().__init__()
        self.network = pretrained()[:3]

    def forward(self, output: Any, x: Any) -> Any:
        return functional.mse_loss(self.network(output), self.network(x).detach())


@healthy("an autoencoder with a loss of features that are not frozen", kind="autoencoder")
def loss_of_unfrozen_features(root: Path) -> int:
    data = digits()
    both = type(data)(data.x, data.x, data.test_x, data.test_x)
    make = mlp(64, 24, 64, act=nn.Tanh)
    return fit(root, make, both, loss=Distance(), optimizer=adam(), steps=200)


@healthy("digits, with a running average of the weights that is evaluated")
def average_of_weights(root: Path) -> int:
    model = LAYERS()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def learn(number: int, loss: Any, x: Any) -> None:
        update(optimizer)(number, loss, x)
        for smooth, parameter in zip(average.parameters(), model.parameters(), strict=True):
            smooth.data.lerp_(parameter.data, 0.1)
        if number % 20 == 0:
            with torch.no_grad():
                average(x)

    return loop(root, model, learn)


class Rounded:
    """An optimizer that is none of PyTorch's."""

    def __init__(self, parameters: Iterator[Any]) -> None:
        self.parameters = [*parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        for parameter in self.parameters:
            parameter.data.sub_(0.002 * parameter.grad.sign())


@healthy("digits, two layers with an optimizer of the script's own")
def optimizer_of_the_script(root: Path) -> int:
    model = LAYERS()
    rounded = Rounded(model[:3].parameters())
    return loop(root, model, update(torch.optim.SGD(model[4].parameters(), 0.1), rounded))
