"""Losses of numbers under `rule-runner train`: some compare all with all, others do not."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.learnt_data import diabetes, digits, images, waves
from training.scripts import by_lightning, chosen, learn, update
from training.small_networks import Recurrent, mlp
from training.under_train import under_train
from training_runs import faulty, healthy

BROADCAST = {"BroadcastTargets"}
MEAN = UNTAUGHT | WORSE


@faulty("diabetes", "MSELoss of (N, 1) and (N,)", BROADCAST, may=MEAN)
@under_train
def numbers_without_a_column() -> None:
    torch.manual_seed(0)
    model, criterion = mlp(10, 32, 1)(), nn.MSELoss()
    learn(model, (criterion(model(x), y[:, 0]) for x, y in chosen(diabetes())))


@faulty(
    "an actor and a critic", "values (N, 1) are compared with returns (N,)", BROADCAST, may=MEAN
)
@under_train
def returns_without_a_column() -> None:
    torch.manual_seed(0)
    actor, critic = mlp(4, 32, 3)(), mlp(4, 32, 1)()
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 3e-3)
    for _ in range(150):
        states = torch.randn(64, 4)
        choice = torch.distributions.Categorical(logits=actor(states))
        action = choice.sample()
        returns = states[:, 0] + (states[:, 1:].argmax(1) == action).float()
        gain = (returns - critic(states).squeeze(1)).detach()
        values = functional.mse_loss(critic(states), returns)
        update(optimizer, values - (gain * choice.log_prob(action)).mean())


@faulty("waves, float64", "huber_loss of (N,) and (N, 1)", BROADCAST, may=MEAN)
@under_train
def answers_without_a_column() -> None:
    torch.manual_seed(0)
    model = mlp(20, 32, 1, act=nn.Tanh)().double()
    pairs = chosen(waves().of(lambda x: x[..., 0].double()), 24)
    learn(model, (functional.huber_loss(model(x).squeeze(-1), y.double()) for x, y in pairs))


@healthy("diabetes, both with a column")
@under_train
def numbers_with_a_column() -> None:
    torch.manual_seed(0)
    model, criterion = mlp(10, 32, 1)(), nn.MSELoss()
    learn(model, (criterion(model(x), y) for x, y in chosen(diabetes())))


@healthy("diabetes, Lightning, both without a column")
@under_train
def flat_by_lightning() -> None:
    flat = lambda net, x, y: functional.smooth_l1_loss(net(x).view(-1), y.view(-1))
    by_lightning(mlp(10, 32, 1)(), diabetes(), flat, 10)


@healthy("waves, each next number")
@under_train
def each_next_number() -> None:
    torch.manual_seed(0)
    cell, head = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)
    both = nn.ModuleList([cell, head])
    pairs = chosen(waves())
    learn(both, (functional.mse_loss(head(cell(x[:, :-1])[0]), x[:, 1:]) for x, _ in pairs), 1e-2)


@healthy("digits, small images are made large")
@under_train
def small_images_made_large() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))
    model.append(nn.PixelShuffle(2))
    small = lambda x: functional.avg_pool2d(x, 2)
    learn(model, (functional.mse_loss(model(small(x)), x) for x, _ in chosen(images(), 16)))


@healthy("digits, logits follow those of a teacher")
@under_train
def logits_of_a_teacher() -> None:
    torch.manual_seed(0)
    teacher, model = mlp(64, 64, 10)().requires_grad_(False), mlp(64, 16, 10)()
    learn(model, (functional.mse_loss(model(x), teacher(x)) for x, _ in chosen(digits())))


@healthy("a differential equation, whose residuals are compared with zeros")
@under_train
def residuals_of_an_equation() -> None:
    torch.manual_seed(0)
    model = mlp(1, 24, 24, 1, act=nn.Tanh)()

    def loss() -> Any:
        time = torch.rand(40, 1, requires_grad=True)
        place = model(time)
        speed = torch.autograd.grad(place.sum(), time, create_graph=True)[0]
        start = functional.mse_loss(model(torch.zeros(1, 1)), torch.ones(1, 1))
        return start + functional.mse_loss(speed + place, torch.zeros_like(place))

    learn(model, (loss() for _ in range(150)))


@healthy("two critics of states and actions, an average of both as target", kind="reinforcement")
@under_train
def two_critics() -> None:
    torch.manual_seed(0)
    first, second = mlp(5, 32, 1)(), mlp(5, 32, 1)()

    def loss() -> Any:
        x = torch.randn(48, 5)
        goal = x[:, :1] * x[:, 4:]
        return functional.mse_loss(first(x), goal) + functional.mse_loss(second(x), goal)

    learn(nn.ModuleList([first, second]), (loss() for _ in range(150)))


@healthy("points: the distances of a batch are like those of the data")
@under_train
def distances_of_points() -> None:
    torch.manual_seed(0)
    model = mlp(64, 32, 2)()
    pairs = chosen(digits())
    learn(
        model,
        (functional.mse_loss(torch.cdist(z := model(x), z), torch.cdist(x, x)) for x, _ in pairs),
    )


@healthy("waves, batches of a single row")
@under_train
def single_rows() -> None:
    torch.manual_seed(0)
    model = Recurrent(nn.LSTM, 1, tokens=False)
    learn(model, (functional.mse_loss(model(x), y[:, 0]) for x, y in chosen(waves(), 1, 150)), 1e-3)


@healthy("diabetes, absolute errors, and a mean of squares that the script makes")
@under_train
def absolute_errors() -> None:
    torch.manual_seed(0)
    model = mlp(10, 32, 1)()
    pairs = chosen(diabetes())
    learn(
        model,
        (nn.L1Loss()(model(x), y) + (model(x) - y).square().mean() for x, y in pairs),
    )
