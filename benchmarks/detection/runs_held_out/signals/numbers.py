"""Losses of numbers under `rule-runner train`: two that compare all with all, and healthy ones."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from training.consequences import UNTAUGHT, WORSE
from training.learnt_data import diabetes, digits, images, waves
from training.scripts import bert, by_lightning, update
from training.small_networks import Autoencoder, Cnn, Recurrent, mlp
from training.under_train import under_train
from training_runs import faulty, healthy

BROADCAST = {"BroadcastTargets"}
MEAN = UNTAUGHT | WORSE


def descend(model: Any, rate: float = 3e-3) -> Any:
    return torch.optim.Adam(model.parameters(), rate)


@faulty("diabetes, loader", "smooth L1 of (N, 1) and (N,)", BROADCAST, may=MEAN)
@under_train
def ages_without_a_column() -> None:
    torch.manual_seed(1)
    data = diabetes()
    loader = DataLoader(TensorDataset(data.x, data.y[:, 0]), batch_size=24, shuffle=True)
    model, criterion = mlp(10, 24, 1)(), nn.SmoothL1Loss()
    optimizer = descend(model)
    for _ in range(8):
        for x, y in loader:
            update(optimizer, criterion(model(x), y))


@faulty("waves, Lightning", "a module's mse_loss of (N, 1) and (N,)", BROADCAST, may=MEAN)
@under_train
def lightning_without_a_column() -> None:
    flat = lambda net, x, y: functional.mse_loss(net(x), y[:, 0])
    by_lightning(Recurrent(nn.GRU, 1, tokens=False), waves(), flat, 5)


@healthy("waves, Lightning, a loss of Huber of two columns")
@under_train
def lightning_with_a_column() -> None:
    columns = lambda net, x, y: functional.huber_loss(net(x), y)
    by_lightning(Recurrent(nn.GRU, 1, tokens=False), waves(), columns, 5)


@healthy("diabetes, both flat, a weight for each row")
@under_train
def rows_with_weights() -> None:
    torch.manual_seed(0)
    data, model = diabetes(), mlp(10, 32, 1)()
    optimizer = descend(model)
    for step in range(120):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        found = model(data.x[rows]).squeeze(-1)
        each = functional.mse_loss(found, data.y[rows, 0], reduction="none")
        update(optimizer, (each * (1 + data.x[rows, 0].abs())).mean())


@healthy("three answers for each row, standardised")
@under_train
def three_numbers() -> None:
    torch.manual_seed(0)
    x = torch.randn(600, 6)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].sin(), x[:, 3:].sum(1)], 1)
    model, criterion = mlp(6, 48, 3)(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    for step in range(150):
        rows = torch.arange(step * 40, step * 40 + 40) % 600
        update(optimizer, criterion(model(x[rows]), y[rows]))


@healthy("digits, an autoencoder whose batches are as large as its images", kind="autoencoder")
@under_train
def square_batches() -> None:
    torch.manual_seed(0)
    data, model = digits(), Autoencoder()
    optimizer = descend(model)
    for step in range(150):
        x = data.x[torch.arange(step * 64, step * 64 + 64) % len(data.x)]
        update(optimizer, functional.mse_loss(model(x), x))


@healthy("digits, the noise of images is predicted", kind="diffusion")
@under_train
def noise_of_images() -> None:
    torch.manual_seed(0)
    data = images()
    model = nn.Sequential(nn.Conv2d(2, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 1, 3, padding=1))
    optimizer = descend(model)
    for step in range(120):
        x = data.x[torch.arange(step * 32, step * 32 + 32) % len(data.x)]
        level = torch.rand(len(x), 1, 1, 1)
        noise = torch.randn_like(x)
        seen = torch.cat([(1 - level).sqrt() * x + level.sqrt() * noise, level.expand_as(x)], 1)
        update(optimizer, functional.mse_loss(model(seen), noise))


@healthy("values of a walk, smooth L1 of chosen actions", kind="reinforcement")
@under_train
def values_of_actions() -> None:
    torch.manual_seed(0)
    model, target = mlp(8, 32, 2)(), mlp(8, 32, 2)()
    optimizer = descend(model)
    for step in range(200):
        if step % 20 == 0:
            target.load_state_dict(model.state_dict())
        place, action = torch.randint(0, 7, (32,)), torch.randint(0, 2, (32,))
        after = (place + 2 * action - 1).clamp(0, 7)
        reward = (after == 7).float()
        see = lambda states: functional.one_hot(states, 8).float()
        with torch.no_grad():
            goal = reward + 0.9 * (1 - reward) * target(see(after)).max(1).values
        found = model(see(place)).gather(1, action[:, None]).squeeze(1)
        update(optimizer, functional.smooth_l1_loss(found, goal))


@healthy("points, a least-squares GAN that compares with ones and zeros", kind="adversarial")
@under_train
def squares_of_judgements() -> None:
    torch.manual_seed(0)
    maker, judge = mlp(4, 32, 2)(), mlp(2, 32, 1)()
    makers, judges = descend(maker, 1e-3), descend(judge, 1e-3)
    criterion = nn.MSELoss()
    for _ in range(150):
        real = torch.randn(32, 2) * 0.3 + 1.0
        false = maker(torch.randn(32, 4))
        said, of_false = judge(real), judge(false.detach())
        wrong = criterion(said, torch.ones_like(said))
        update(judges, wrong + criterion(of_false, torch.zeros_like(of_false)))
        said = judge(false)
        update(makers, criterion(said, torch.ones_like(said)))


@healthy("one constant is fitted to many measurements")
@under_train
def one_constant() -> None:
    torch.manual_seed(0)
    fall = nn.Linear(1, 1, bias=False)
    optimizer = descend(fall, 0.05)
    for _ in range(150):
        measured = 9.81 + 0.1 * torch.randn(50)
        update(optimizer, nn.functional.mse_loss(fall(torch.ones(1, 1)), measured[:, None]))


@healthy("sentences, a BERT of Transformers that answers one number", kind="language_model")
@under_train
def numbers_of_bert() -> None:
    model = bert("SequenceClassification", num_labels=1, problem_type="regression")
    optimizer = descend(model, 1e-3)
    for _ in range(100):
        x = torch.randint(1, 32, (16, 12))
        update(optimizer, model(input_ids=x, labels=(x < 8).float().mean(1) * 4).loss)


@healthy("digits and their brightness: a class and a number from one network")
@under_train
def class_and_number() -> None:
    torch.manual_seed(0)
    data, body = images(), Cnn()
    second = nn.Linear(10, 1)
    optimizer = descend(nn.ModuleList([body, second]))
    for step in range(120):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        x, y = data.x[rows], data.y[rows]
        logits = body(x)
        bright = functional.mse_loss(second(logits).flatten(), x.mean((1, 2, 3)))
        update(optimizer, functional.cross_entropy(logits, y) + bright)


@healthy("films: all ratings of users at once, as products of factors")
@under_train
def factors_of_ratings() -> None:
    torch.manual_seed(0)
    users, films = nn.Embedding(30, 4), nn.Embedding(30, 4)
    ratings = torch.randn(30, 3) @ torch.randn(3, 30)
    optimizer = descend(nn.ModuleList([users, films]), 0.02)
    every = torch.arange(30)
    for _ in range(150):
        update(optimizer, functional.mse_loss(users(every) @ films(every).T, ratings))
