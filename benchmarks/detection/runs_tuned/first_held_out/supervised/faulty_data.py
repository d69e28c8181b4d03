"""Trainings whose inputs or labels are wrong, or that learn by heart or go on for too long."""

from pathlib import Path
from typing import Any

import torch
from sklearn.preprocessing import PolynomialFeatures
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.first_held_out.supervised.consequences import BY_HEART, NOT_LEARNT
from runs_tuned.first_held_out.supervised.generated_data import (
    counts,
    cut,
    friedman,
    nodes,
    raw_patches,
    segmented,
    shapes,
    signals,
    table,
)
from runs_tuned.first_held_out.supervised.networks import (
    GraphConvolution,
    MobileNet,
    Temporal,
    UNet,
)

BAD_IMAGES = NOT_LEARNT | {
    "Overfit": "what is trained with differs from what is evaluated",
    "DeadRelu": "inputs of another level",
    "VanishingGradient": "dead units",
    "LossSpike": "noisy losses",
}
RARE = NOT_LEARNT | {
    "Overfit": "few rows of a class are learnt by heart",
    "LossSpike": "a rare row is a surprise",
    "GradientNormSpike": "a rare row is a surprise",
}
LEVEL = {
    "Overfit": "validation gets worse with time",
    "LossNotDecreasing": "the loss is as low as it gets",
    "UnchangedTensor": "once all is learnt hardly anything moves",
    "WeightUpdateRatio": "once all is learnt hardly anything moves",
    "StalledParameters": "once all is learnt hardly anything moves",
    "VanishingGradient": "once all is learnt gradients are tiny",
    "Confusion": "what cannot be told apart stays confused",
    "NormGrowth": "certainty lets weights grow",
}


@faulty(
    "patches of photographs, separable convolutions",
    "mean and deviation are those of the second photograph alone",
    {"CheckInputImages"},
    may=BAD_IMAGES,
)
def statistics_of_one_source(root: Path) -> int:
    raw, kind = raw_patches()
    second = raw[kind == 1]
    axes = (0, 2, 3)
    mean, deviation = second.mean(axes, keepdim=True), second.std(axes, keepdim=True)
    data = cut((raw - mean) / deviation, kind, 200)
    return fit(root, lambda: MobileNet(3, 2), data, optimizer=adam(5e-3), steps=100)


@faulty(
    "shapes, brightness varied at random, a U-Net",
    "brightness is only ever added, 0 to 1.6, not varied around 0",
    {"CheckInputImages"},
    may=BAD_IMAGES,
)
def brightness_added(root: Path) -> int:
    data = segmented()
    generator = torch.Generator().manual_seed(13)
    offset = 1.6 * torch.rand((len(data.x), 1, 1, 1), generator=generator)
    bright = Split(data.x + offset, data.y, data.test_x, data.test_y)
    return fit(
        root,
        UNet,
        bright,
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(3e-3),
        steps=80,
        save_every=2,
        validate_every=40,
    )


@faulty(
    "cut-outs of images, 2 in 100 hold an object",
    "cut-outs are made at random places and nothing is sampled: nearly all are background",
    {"ClassImbalance"},
    may=RARE,
)
def background_everywhere(root: Path) -> int:
    data = shapes(1600, 300)[0]
    generator = torch.Generator().manual_seed(14)

    def mostly_empty(x: Any) -> tuple[Any, Any]:
        has_object = torch.rand(len(x), generator=generator) < 0.02
        noise = 0.7 * torch.randn(x.shape, generator=generator)
        images = torch.where(has_object[:, None, None, None], x, noise)
        return images - images.mean(), has_object.long()

    empty = Split(*mostly_empty(data.x), *mostly_empty(data.test_x))
    return fit(root, lambda: MobileNet(1, 2), empty, optimizer=adam(3e-3), steps=90)


@faulty(
    "a table of four classes, weights of classes in the loss",
    "weights are shifted by one index: the last class has a weight of 0",
    {"ClassImbalance", "Confusion"},
    may=RARE,
)
def weights_of_classes_shifted(root: Path) -> int:
    data = table(1400, 4, 400, 0.0)
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.1, 0.9, 0.0]))
    make = lambda: nn.Sequential(nn.Linear(12, 64), nn.GELU(), nn.Linear(64, 4))
    return fit(
        root,
        make,
        data,
        loss=loss,
        optimizer=adam(0.01, kind=torch.optim.NAdam),
        batch=50,
        steps=240,
    )


@faulty(
    "Friedman's function, all products of up to three features, 120 rows",
    "285 features, noise in the targets and no regularisation",
    {"Overfit"},
    may=BY_HEART,
)
def products_by_heart(root: Path) -> int:
    expand = PolynomialFeatures(3, include_bias=False).fit_transform
    data = friedman(900, 200, 3.5).of(lambda x: torch.tensor(expand(x), dtype=torch.float32))
    return fit(
        root,
        lambda: nn.Sequential(nn.Linear(285, 48), nn.SiLU(), nn.Linear(48, 1)),
        data.chosen(slice(120)),
        loss=nn.MSELoss(),
        optimizer=adam(6e-4),
        batch=30,
        steps=240,
        save_every=3,
        validate_every=12,
    )


@faulty(
    "signals, dilated convolutions without dropout, 100 rows",
    "a quarter of the labels to train with came from the wrong column",
    {"Overfit"},
    may=BY_HEART,
)
def signals_by_heart(root: Path) -> int:
    generator = torch.Generator().manual_seed(15)

    def wrong(y: Any) -> Any:
        coin = torch.rand(y.shape, generator=generator)
        return torch.where(coin < 0.25, (y + 1) % 4, y)

    data = signals(noise=1.0).taught(wrong).chosen(slice(100))
    make = lambda: Temporal(2, 4, drop=0.0)
    return fit(root, make, data, optimizer=adam(8e-3), batch=25, steps=240, save_every=4)


@faulty(
    "counts, Poisson regression without a hidden layer, RMSprop",
    "the training goes on for ten times as long as it helps",
    {"Overtraining"},
    may=LEVEL,
)
def counts_too_long(root: Path) -> int:
    return fit(
        root,
        lambda: nn.Linear(8, 1),
        counts(),
        loss=nn.PoissonNLLLoss(),
        optimizer=adam(0.01, kind=torch.optim.RMSprop),
        batch=200,
        steps=800,
        save_every=10,
        validate_every=25,
    )


@faulty(
    "communities of a graph, graph convolutions with weight decay",
    "1,000 epochs, of which 100 help",
    {"Overtraining"},
    may=LEVEL,
)
def communities_too_long(root: Path) -> int:
    data = nodes()
    return fit(
        root,
        lambda: GraphConvolution(drop=0.2),
        data,
        optimizer=sgd(0.5, momentum=0.9, weight_decay=2e-3),
        batch=len(data.x),
        steps=1000,
        save_every=10,
        validate_every=40,
    )
