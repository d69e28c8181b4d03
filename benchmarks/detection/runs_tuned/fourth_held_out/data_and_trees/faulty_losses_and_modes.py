"""Losses that expect other numbers, modes that are not set, and runs that are not repeated."""

from pathlib import Path
from typing import Any, Self

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fourth_held_out.data_and_trees.healthy_pictures import sight_of_dials, telephone
from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import ELSEWHERE, LEARNT, WORSE
from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import (
    Pocket,
    Viewer,
    tiles,
)
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import Stairs, wafers
from runs_tuned.fourth_held_out.data_and_trees.shared.texts import Bag, Cook, Phrases, recipes


class Directions(nn.Module):
    """Ten times the cosine between a picture and each kind."""

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.body, self.kinds = Viewer(3, 16), nn.Parameter(torch.randn(kinds, 16))

    def forward(self, x: Any) -> Any:
        there = nn.functional.normalize(self.body(x), dim=1)
        return 10 * there @ nn.functional.normalize(self.kinds, dim=1).T


@faulty(
    "tiles of six kinds by their cosines to each kind, AdamW",
    "negative log-likelihood gets the cosines, of which no logarithm was made: -10 is the best",
    {"ProbabilitiesAsLogits"},
    may=WORSE,
)
def cosines_as_logarithms(root: Path) -> int:
    return fit(
        root,
        lambda: Directions(6),
        tiles(1200, 461),
        loss=nn.NLLLoss(),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=120,
        validate_every=24,
        seed=61,
    )


class TwoVotes(nn.Module):
    """The mean of the chances of two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Stairs(14, 3, drop=0.0), Stairs(14, 3, 32, 1, drop=0.0)

    def forward(self, x: Any) -> Any:
        return (self.first(x).sigmoid() + self.second(x).sigmoid()) / 2


@faulty(
    "three defects of wafers, which may come together, by the votes of two networks, Adam",
    "the mean of their chances is given to binary cross entropy with logits",
    {"ProbabilitiesAsLogits"},
    may=WORSE,
)
def mean_vote_as_logit(root: Path) -> int:
    data = wafers(1500, 462, lean=(0.0, 0.0, 0.0, 0.0))
    three = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1]])
    return fit(
        root,
        TwoVotes,
        data.relabelled(lambda defect: three[defect]),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3),
        steps=150,
        validate_every=30,
        seed=62,
    )


class Mixture(nn.Module):
    """A mixture of the chances of three readers, weighed by a fourth."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.readers = nn.ModuleList(Bag(out, 12) for _ in range(3))
        self.weights = Bag(3, 8)

    def forward(self, x: Any) -> Any:
        chances = torch.stack([reader(x).softmax(1) for reader in self.readers], 1)
        return (self.weights(x).softmax(1).unsqueeze(2) * chances).sum(1)


@faulty(
    "recipes of five kitchens by a mixture of three readers, Adam",
    "cross entropy gets the mixture of their chances, without the logarithm of it",
    {"ProbabilitiesAsLogits"},
    may=WORSE,
)
def mixture_without_logarithm(root: Path) -> int:
    data = recipes(1400, 463, told=0.5)
    optimizer = adam(0.01)
    return fit(
        root, lambda: Mixture(5), data, optimizer=optimizer, steps=160, validate_every=32, seed=63
    )


def training_again(model: Any, *_: Any) -> None:
    """Set the mode of training after a forward pass."""
    model.train()


@faulty(
    "tiles of six kinds, separable convolutions with batch norm and dropout, four batches to test",
    "the loop over batches to validate with, a copy of that to train with, calls model.train()",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE,
)
def train_called_while_validating(root: Path) -> int:
    torch.manual_seed(64)
    torch.set_num_threads(1)
    data, model, loss = tiles(1200, 464), Pocket(3, 6, drop=0.4), nn.CrossEntropyLoss()
    optimizer = sgd(0.05, momentum=0.9)(model.parameters())
    onset = 0
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(130), batches(data, 32, 64), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 26 == 0:
                onset = onset or watching.global_step + 1
                # The mode that is set after the first batch stays for the other three.
                copied = model.register_forward_hook(training_again)
                validate(watching, model, loss, data, 50)
                copied.remove()
    return onset


@faulty(
    "recipes of five kitchens, convolutions over three words, dropout, AdamW",
    "at step 64 vectors are exported in evaluation mode; evaluations restore the mode they find",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE | LEARNT,
)
def left_by_an_export(root: Path) -> int:
    torch.manual_seed(65)
    torch.set_num_threads(1)
    data, model, loss = recipes(1400, 465, told=0.25), Phrases(5, drop=0.5), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    onset = 0
    with watched(root, model, losses=[loss], save_every=2) as watching:
        for step, (x, y) in zip(range(150), batches(data, 32, 65), strict=False):
            if step == 64:
                onset = watching.global_step + 1
                model.eval()
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 25 == 0:
                found = model.training
                validate(watching, model, loss, data)
                model.train(found)
    return onset


class Guarded(Cook):
    """A reader whose embedding stays as it is in training."""

    def train(self, mode: bool = True) -> Self:
        """Set the mode, and keep the embedding from being trained."""
        self.embedding.weight.requires_grad_(mode)
        super().train()
        return self


@faulty(
    "recipes of five kitchens, a recurrent layer with a norm and dropout, clipped, Adam",
    "the model has a train() of its own, which does not pass the mode on: eval() sets training",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE,
)
def mode_not_passed_on(root: Path) -> int:
    return fit(
        root,
        lambda: Guarded(5, drop=0.4),
        recipes(1400, 466, told=0.4),
        optimizer=adam(5e-3),
        steps=130,
        clip=1.0,
        save_every=3,
        validate_every=26,
        seed=66,
    )


@faulty(
    "tiles of six kinds on a telephone, computed once more by the same seed",
    "pictures were stored in bytes meanwhile: each pixel is rounded to a 32nd of the deviation",
    {"SimilarAcrossRuns"},
    other="tiles_on_a_telephone",
)
def tiles_stored_in_bytes(root: Path) -> int:
    return telephone(root, lambda x: (32 * x).round() / 32)


@faulty(
    "hands of dials, a warm-up and a cosine, computed once more by the same seed",
    "a new version of the schedule begins its warm-up one step later",
    {"SimilarAcrossRuns"},
    other="hands_of_dials",
)
def warm_up_one_step_later(root: Path) -> int:
    return sight_of_dials(root, later=1)
