"""Latent codes that tell nothing, and experts that are not used."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.seventh_held_out.representations.shared.consequences import ALIKE
from runs_tuned.seventh_held_out.representations.shared.data import (
    characters,
    digits,
    shapes,
    signals,
    words,
)
from runs_tuned.seventh_held_out.representations.shared.loop import (
    loader,
    teach,
    warmup_cosine,
    warmup_linear,
)
from runs_tuned.seventh_held_out.representations.shared.networks import (
    Block,
    CausalSelfAttention,
    MiniGPT,
    MixtureOfExperts,
    Vae,
    next_token,
)

of_codes = functools.partial(training_runs.faulty, kind="autoencoder")
of_texts = functools.partial(training_runs.faulty, kind="language_model")

# Codes


class Detached(Vae):
    """Codes, of which the decoder gets a copy that passes no gradient."""

    def sample(self, mean: Any, logvar: Any) -> Any:
        """Return codes drawn around their means."""
        return super().sample(mean, logvar).detach()


@of_codes(
    "a variational autoencoder of black and white digits, cross entropy summed, Adam",
    "codes are detached, as a discriminator's rows are: only the divergence teaches the encoder",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def codes_are_detached(root: Path) -> int:
    torch.manual_seed(70)
    x = (digits()[0] > 0.4).float()
    model = Detached(64, 8)

    def objective(batch: Any, _: Any) -> Any:
        rows = batch[0].flatten(1)
        logits, divergence = model(rows)
        errors = functional.binary_cross_entropy_with_logits(logits, rows, reduction="none")
        return (errors.sum(1) + divergence).mean()

    return teach(
        root,
        model,
        loader(x, size=64, seed=70),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=260,
    )


@of_codes(
    "a variational autoencoder of shapes, the divergence warms up over epochs to 1, AdamW, clipped",
    "the warm-up counts steps, is not cut off at 1, and has passed 100 by the end",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def warm_up_without_an_end(root: Path) -> int:
    torch.manual_seed(71)
    x, _ = shapes(seed=71)
    model, count = Vae(256, 6, 96, act=nn.ELU), [0]

    def objective(batch: Any, _: Any) -> Any:
        count[0] += 1
        rows = batch[0].flatten(1)
        logits, divergence = model(rows)
        errors = functional.binary_cross_entropy_with_logits(logits, rows, reduction="none")
        return (errors.sum(1) + count[0] / 4 * divergence).mean()

    return teach(
        root,
        model,
        loader(x, size=48, seed=71),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        clip=20.0,
        steps=420,
        save_every=3,
        at=4,
    )


@of_codes(
    "a variational autoencoder of signals, squares and divergence summed, SGD with momentum",
    "the rate of 0.05 was for averaged losses: after a few steps codes no longer tell rows apart",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def encoder_dies_of_its_rate(root: Path) -> int:
    torch.manual_seed(72)
    x, _ = signals(seed=72)
    model = Vae(48, 6)

    def objective(batch: Any, _: Any) -> Any:
        drawn, divergence = model(batch[0])
        return ((drawn - batch[0]).pow(2).sum(1) + divergence).mean()

    return teach(
        root,
        model,
        loader(x, size=48, seed=72),
        objective,
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
        clip=100.0,
        steps=200,
    )


# Experts


class ByFirstToken(MixtureOfExperts):
    """Experts that are chosen for a whole text, by its first token."""

    def route(self, x: Any) -> Any:
        """Return scores of experts for each token."""
        return self.router(x[:, :1]).expand(-1, x.shape[1], -1)


@of_texts(
    "sentences by a GPT with eight experts, chosen by text, a balancing loss, AdamW",
    "texts are told apart by their first token, the same for all: it is the one that begins them",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def texts_routed_by_their_beginning(root: Path) -> int:
    torch.manual_seed(73)
    rows, _, count = words(seed=73)
    mixture = ByFirstToken(32, 8)
    model = MiniGPT(count, [Block(32, CausalSelfAttention(32, 4), mixture)])
    loss = nn.CrossEntropyLoss(ignore_index=0)
    of_words = next_token(model, loss)
    return teach(
        root,
        model,
        loader(rows, size=48, seed=73),
        lambda batch, hook: of_words(batch, hook) + 0.01 * mixture.aux_loss,
        torch.optim.AdamW(model.parameters(), 4e-3),
        factor=warmup_linear(12, 140),
        clip=1.0,
        steps=140,
    )


@of_texts(
    "characters by a GPT with eight experts, one a token, AdamW, warm-up and cosine, clipped",
    "the balancing loss is subtracted, as if it were an entropy: the fuller an expert, the better",
    {"RouterCollapse"},
    may=UNTAUGHT | WORSE,
)
def balance_is_subtracted(root: Path) -> int:
    torch.manual_seed(74)
    rows, count = characters(seed=74)
    mixture = MixtureOfExperts(32, 8)
    blocks = [Block(32, CausalSelfAttention(32, 4)), Block(32, CausalSelfAttention(32, 4), mixture)]
    model = MiniGPT(count, blocks)
    of_tokens = next_token(model, nn.CrossEntropyLoss())
    return teach(
        root,
        model,
        loader(rows, size=24, seed=74),
        lambda batch, hook: of_tokens(batch, hook) - 0.1 * mixture.aux_loss,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        factor=warmup_cosine(12, 140),
        clip=1.0,
        steps=140,
    )


SHARES = (40.0, 20.0, 12.0, 10.0, 8.0, 6.0, 3.0, 1.0)


@of_texts(
    "characters by a GPT with eight experts, one a token, of planned shares, balanced, Adam",
    "the router's bias begins at shares in per cent instead of their logarithms: the first wins",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def shares_are_no_logarithms(root: Path) -> int:
    torch.manual_seed(75)
    rows, count = characters(seed=75)
    mixture = MixtureOfExperts(32, 8)
    mixture.router = nn.Linear(32, 8)
    blocks = [Block(32, CausalSelfAttention(32, 2), mixture), Block(32, CausalSelfAttention(32, 2))]
    model = MiniGPT(count, blocks)
    with torch.no_grad():
        mixture.router.bias.copy_(torch.tensor(SHARES))
    of_tokens = next_token(model, nn.CrossEntropyLoss())
    return teach(
        root,
        model,
        loader(rows, size=16, seed=75),
        lambda batch, hook: of_tokens(batch, hook) + 0.01 * mixture.aux_loss,
        torch.optim.Adam(model.parameters(), 3e-3),
        clip=1.0,
        steps=140,
        save_every=3,
    )
