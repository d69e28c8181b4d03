"""Healthy trainings with what scripts do every day: accumulate, freeze, evaluate, sort, log."""

import itertools
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Rhythm,
    Segmenter,
    beats,
    impedance,
    parted,
    sensors,
    shapes,
    tags,
    tower,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


@healthy("rhythms, three batches accumulated, clipped, dropout and batch norm switched rightly")
def rhythms_accumulated(root: Path) -> int:
    torch.manual_seed(21)
    model, loss, data = Rhythm(), nn.CrossEntropyLoss(label_smoothing=0.05), beats()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-2)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(210), batches(data, 16, 21), strict=False):
            (loss(model(x), y) / 3).backward()
            if (step + 1) % 3 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
            if (step + 1) % 30 == 0:
                validate(watching, model, loss, data, 40)
    return 0


@healthy("discs and bars, a class for each pixel, a polynomial schedule")
def pixels_segmented(root: Path) -> int:
    return fit(
        root,
        Segmenter,
        shapes(),
        optimizer=adam(8e-3, torch.optim.AdamW),
        schedule=lambda step: (1 - step / 130) ** 0.9,
        steps=120,
        batch=16,
        save_every=3,
        validate_every=15,
    )


@healthy("five tags of texts, a logit for each, Adagrad")
def texts_tagged(root: Path) -> int:
    make = lambda: tower(20, 40, 5, drop=0.1)
    optimizer = adam(0.03, torch.optim.Adagrad)
    return fit(root, make, tags(), loss=nn.BCEWithLogitsLoss(), optimizer=optimizer, steps=140)


@healthy("machines, a trained trunk is frozen, its dropout stays on, a new head is trained")
def trunk_frozen(root: Path) -> int:
    torch.manual_seed(22)
    model, data = Blocks(18, 3), sensors()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for x, y in itertools.islice(batches(data, 32, 22), 80):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y // 2).backward()
        optimizer.step()

    def make() -> Any:
        model.requires_grad_(requires_grad=False)
        model.head = nn.Sequential(nn.Linear(40, 24), nn.SiLU(), nn.Linear(24, 6))
        return model

    return fit(root, make, data, optimizer=adam(4e-3), steps=180, save_every=3)


@healthy("rhythms, the smoothest ones in the first epochs, then all, always shuffled")
def easy_ones_first(root: Path) -> int:
    torch.manual_seed(23)
    model, loss, data = Rhythm(0.1), nn.CrossEntropyLoss(), beats()
    noise = (data.x[:, 1:] - data.x[:, :-1]).abs().mean((1, 2))
    order = noise.argsort()
    easy = data.chosen(torch.cat([order[data.y[order] == rhythm][:80] for rhythm in range(4)]))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.1)
    loader = itertools.chain(
        itertools.islice(batches(easy, 32, 23), 40), itertools.islice(batches(data, 32, 24), 100)
    )
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return 0


@healthy("120 machines, many shuffled epochs, dropout of 0.4, a moving average is evaluated")
def few_machines(root: Path) -> int:
    torch.manual_seed(24)
    data = sensors()
    data = Split(data.x[:120], data.y[:120], data.test_x[:60], data.test_y[:60])
    model, loss = tower(18, 24, 6, drop=0.4), nn.CrossEntropyLoss()
    decay = torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=decay)
    optimizer = torch.optim.NAdam(model.parameters(), 4e-3, weight_decay=0.02)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(150), batches(data, 20, 25), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            average.update_parameters(model)
            if (step + 1) % 12 == 0:
                validate(watching, average, loss, data)
    return 0


@healthy("impedances, AdamW, warm restarts of a cosine schedule, logged for TensorBoard")
def impedances_for_tensorboard(root: Path) -> int:
    torch.manual_seed(25)
    torch.set_num_threads(1)
    model, loss, data = tower(4, 32, 32, 1), nn.MSELoss(), impedance()
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 40, 2)
    with SummaryWriter(str(root)) as writer:
        for step, (x, y) in zip(range(280), batches(data, 25, 26), strict=False):
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            writer.add_scalar("train/lr", schedule.get_last_lr()[0], step)
            schedule.step()
            writer.add_scalar("train/loss", float(value.detach()), step)
            writer.add_scalar("train/grad_norm", float(norm), step)
            if (step + 1) % 32 == 0:
                with torch.no_grad():
                    valid = float(loss(model(data.test_x), data.test_y))
                writer.add_scalar("val/loss", valid, step)
    return 0


@healthy("impedances, Keras, batch norm and dropout, Adam, mean absolute error")
def impedances_by_keras(root: Path) -> int:
    keras.utils.set_random_seed(26)
    layers, data = keras.layers, impedance()
    model = keras.Sequential(
        [
            layers.Dense(32, activation="gelu"),
            layers.BatchNormalization(),
            layers.Dropout(0.1),
            layers.Dense(16, activation="tanh"),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(5e-3), keras.losses.MeanAbsoluteError())
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=5),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            40,
            9,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=200,
            callbacks=[hook],
            verbose=0,
        )
    return 0


@healthy("machines in bfloat16 by autocast, one in eight labels of a state is wrong, Adamax")
def wrong_labels_in_bfloat16(root: Path) -> int:
    def make() -> Any:
        model: Any = Blocks(18, 6, drop=0.3)
        model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
        return model

    data = sensors()
    wrong = (torch.arange(len(data.y)) % 8 == 0) & (data.y == 1)
    data = data.taught(lambda y: torch.where(wrong, 4, y))
    optimizer = adam(3e-3, torch.optim.Adamax)
    return fit(root, make, data, optimizer=optimizer, steps=105, clip=1.0, validate_every=15)


@healthy("doses, one input and one output, ten batches an epoch, plain SGD, a tiny network")
def doses_of_one_input(root: Path) -> int:
    generator = torch.Generator().manual_seed(27)
    dose = 3 * torch.rand(400, 1, generator=generator) - 1.5
    effect = torch.tanh(2 * dose) + 0.1 * torch.randn(400, 1, generator=generator)
    make = lambda: nn.Sequential(nn.Linear(1, 12), nn.Softplus(), nn.Linear(12, 1))
    return fit(
        root,
        make,
        parted(dose, effect),
        loss=nn.MSELoss(),
        optimizer=sgd(0.02, momentum=0.9),
        steps=100,
    )
