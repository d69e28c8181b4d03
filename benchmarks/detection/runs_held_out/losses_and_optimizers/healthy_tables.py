"""Healthy trainings of houses, subscribers, bikes, flowers and films."""

from pathlib import Path
from typing import Any

import torch
import training_runs
import xgboost
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from training.boosting import train_booster

from runs_held_out.losses_and_optimizers.shared.data import (
    FILMS,
    USERS,
    bikes,
    films,
    houses,
    species,
    subscribers,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    Patience,
    by,
    clock,
    cosine,
    lambda_rate,
    resumed,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import Factors, HousePrice, dense

healthy = training_runs.healthy


@healthy("prices of houses by embeddings and dense layers, Adam, stopped early")
def house_prices_stopped_early(root: Path) -> int:
    torch.manual_seed(8000)
    model = HousePrice(drop=0.1)
    return run(
        root,
        model,
        by(model, functional.mse_loss),
        served(*houses(2000, 8000), size=64, seed=8000),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=600,
        every=2,
        test=houses(500, 8001),
        test_every=31,
        validated=Patience(model, 4),
    )


@healthy("prices of houses, Huber's loss, SGD with Nesterov's momentum, one cycle of the rate")
def house_prices_in_one_cycle(root: Path) -> int:
    torch.manual_seed(8002)
    model = HousePrice(32)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
    return run(
        root,
        model,
        by(model, functional.huber_loss),
        served(*houses(1800, 8002), size=48, seed=8002),
        optimizer,
        steps=240,
        schedule=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=240),
        test=houses(400, 8003),
        test_every=37,
    )


@healthy("which subscribers leave, batch norm and dropout, AdamW, the rate falls on plateaus")
def subscribers_on_plateaus(root: Path) -> int:
    torch.manual_seed(8004)
    model = dense(14, 64, 32, 1, drop=0.2, norm=nn.BatchNorm1d)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.02)
    plateaus = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    return run(
        root,
        model,
        by(model, functional.binary_cross_entropy_with_logits),
        served(*subscribers(3000, 8004), size=64, seed=8004),
        optimizer,
        steps=420,
        every=2,
        test=subscribers(800, 8005),
        test_every=46,
        validated=plateaus.step,
    )


@healthy("which subscribers leave, rarer ones weigh more, SGD with momentum, steps down by epoch")
def subscribers_in_steps(root: Path) -> int:
    torch.manual_seed(8006)
    x, left = subscribers(2400, 8006)
    model = dense(14, 48, 1, unit=nn.SiLU, drop=0.1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    rates = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.3)
    weight = (1 - left.mean()) / left.mean()

    def after(step: int) -> None:
        if (step + 1) % 37 == 0:
            rates.step()

    def loss(scores: Any, target: Any) -> Any:
        return functional.binary_cross_entropy_with_logits(scores, target, pos_weight=weight)

    return run(
        root,
        model,
        by(model, loss),
        served(x, left, size=64, seed=8006),
        optimizer,
        steps=333,
        every=3,
        after=after,
        test=subscribers(600, 8007),
        test_every=37,
    )


@healthy("how many bikes are lent (Poisson), Adam, clipped")
def bikes_lent(root: Path) -> int:
    torch.manual_seed(8008)
    model = dense(7, 48, 48, 1, unit=nn.SiLU)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return run(
        root,
        model,
        by(model, nn.PoissonNLLLoss()),
        served(*bikes(2500, 8008), size=64, seed=8008),
        optimizer,
        steps=234,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99),
        clip=5.0,
        test=bikes(600, 8009),
        test_every=39,
    )


@healthy("species of flowers by softmax regression, full batches, SGD")
def flowers_by_full_batches(root: Path) -> int:
    torch.manual_seed(8010)
    model = nn.Linear(9, 5)
    return run(
        root,
        model,
        by(model),
        served(*species(600, 8010), size=600, seed=8010),
        torch.optim.SGD(model.parameters(), 0.5),
        steps=100,
        test=species(300, 8011),
        test_every=10,
    )


@healthy("species of flowers, RAdam, an average of the weights is validated")
def flowers_by_averaged_weights(root: Path) -> int:
    torch.manual_seed(8012)
    model = dense(9, 48, 48, 5, unit=nn.GELU, drop=0.1, norm=nn.LayerNorm)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.97))
    average.eval()
    optimizer = torch.optim.RAdam(model.parameters(), 4e-3, weight_decay=1e-4)
    return run(
        root,
        model,
        by(model),
        served(*species(2400, 8012), size=48, seed=8012),
        optimizer,
        steps=250,
        after=lambda _: average.update_parameters(model),
        test=species(500, 8013),
        test_every=50,
        test_loss=by(average),
    )


@healthy("films of users by factors, pairs of films (BPR), Adam, decay by hand in the loss")
def films_by_pairs(root: Path) -> int:
    torch.manual_seed(8014)
    model = Factors(USERS, FILMS)

    def ranked(batch: Any) -> Any:
        user, liked, other = batch
        return -functional.logsigmoid(model(user, liked) - model(user, other)).mean()

    def loss(batch: Any) -> Any:
        user, liked, other = batch
        films_ = model.films(torch.cat([liked, other]))
        length = model.users(user).square().sum(1).mean() + films_.square().sum(1).mean()
        return ranked(batch) + 2e-3 * length

    return run(
        root,
        model,
        loss,
        served(*films(6000, 8014), size=128, seed=8014),
        torch.optim.Adam(model.parameters(), 1e-2),
        steps=230,
        every=2,
        test=films(1000, 8015),
        test_every=46,
        test_loss=ranked,
    )


@healthy(
    "prices of houses go on from a checkpoint, the data are shuffled anew, Adam", kind="supervised"
)
def house_prices_go_on(root: Path) -> int:
    torch.manual_seed(8016)
    model = HousePrice(32)
    return resumed(
        root,
        model,
        by(model, functional.mse_loss),
        houses(4000, 8016),
        torch.optim.Adam(model.parameters(), 2e-3),
        stops=((125, 140),),
        steps=250,
        size=64,
        new_order=True,
    )


@healthy("species of flowers go on twice, AdamW with a cosine, a row of the log each second step")
def flowers_go_on_twice(root: Path) -> int:
    torch.manual_seed(8018)
    model = dense(9, 48, 48, 5, drop=0.1)
    return resumed(
        root,
        model,
        by(model),
        species(5000, 8018),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        stops=((160, 183), (260, 271)),
        steps=400,
        size=50,
        every=2,
        factor=cosine(20, 400),
        new_order=True,
    )


@healthy("which subscribers leave by XGBoost, a rate of 0.1, stopped early", kind="boosted_trees")
def trees_of_subscribers_stopped(root: Path) -> None:
    x, left = subscribers(3000, 8020)
    test_x, test_left = subscribers(1000, 8021)
    train_booster(
        root,
        xgboost.DMatrix(x.numpy(), left.numpy()[:, 0]),
        xgboost.DMatrix(test_x.numpy(), test_left.numpy()[:, 0]),
        {
            "objective": "binary:logistic",
            "eta": 0.1,
            "max_depth": 4,
            "subsample": 0.8,
            "colsample_bytree": 0.8,
            "seed": 0,
            "nthread": 1,
        },
        rounds=200,
        patience=10,
    )


@healthy("prices of houses by dense layers, AdamW, 40 seconds a step, twelve minutes to validate")
def house_prices_slowly(root: Path) -> int:
    torch.manual_seed(8022)
    model = HousePrice(40)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    with clock(40.0, {31 * number: 720.0 for number in range(1, 6)}):
        return run(
            root,
            model,
            by(model, functional.smooth_l1_loss),
            served(*houses(1600, 8022), size=50, seed=8022),
            optimizer,
            steps=150,
            schedule=lambda_rate(optimizer, cosine(10, 150)),
            test=houses(300, 8023),
            test_every=30,
        )
