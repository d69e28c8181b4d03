"""Experts that are not used, and latent codes that tell nothing."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.sixth_held_out.representations.shared.consequences import ALIKE
from runs_tuned.sixth_held_out.representations.shared.figures import (
    BEAT,
    LEAF,
    heartbeats,
    leaves,
    patients,
)
from runs_tuned.sixth_held_out.representations.shared.loop import (
    halved,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import (
    Block,
    Codes,
    Heads,
    Mixture,
    Writer,
    dense,
    next_sign,
)
from runs_tuned.sixth_held_out.representations.shared.signs import (
    CALLS,
    DIGITS,
    LOGS,
    calls,
    logs,
    odometers,
)

of_experts = functools.partial(training_runs.faulty, kind="language_model")
of_codes = functools.partial(training_runs.faulty, kind="autoencoder")

# Experts


@of_experts(
    "lines of a server's log by eight experts, one a word, the router has its own decay, AdamW",
    "the decay of 30 was that of another optimizer, a thousandth of it: only the bias chooses",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def router_decays_to_its_bias(root: Path) -> int:
    torch.manual_seed(610)
    mixture = Mixture(8, 1)
    model, loss = Writer(LOGS, [Block(Heads(32, 2), mixture)]), nn.CrossEntropyLoss()
    weight = mixture.router.weight
    others = [each for each in model.parameters() if each is not weight]
    optimizer = torch.optim.AdamW(
        [{"params": others}, {"params": [weight], "weight_decay": 30.0}], lr=4e-3
    )
    return teach(
        root,
        model,
        rows_of(logs(), seed=610),
        next_sign(model, loss),
        optimizer,
        watched_losses=(loss,),
        limit=1.0,
        save_every=3,
    )


class Pruned(nn.Module):
    """A router whose experts can be replaced by others."""

    def __init__(self, experts: int, width: int = 32) -> None:
        super().__init__()
        self.scores = nn.Linear(width, experts)
        self.register_buffer("instead", torch.arange(experts))

    def forward(self, x: Any) -> Any:
        scores = self.scores(x)
        which = self.instead[scores.argmax(-1)]
        return scores.masked_fill(functional.one_hot(which, len(self.instead)) == 0, -1e4)


@of_experts(
    "odometers by eight experts, one a digit, balanced; those hardly used are pruned at step 70",
    "loads were summed by batch and divided by the wrong count: all but the first are pruned",
    {"RouterCollapse"},
    may=UNTAUGHT | WORSE,
)
def all_but_the_first_pruned(root: Path) -> int:
    torch.manual_seed(611)
    router = Pruned(8)
    mixture = Mixture(8, 1, router=router)
    blocks = [Block(Heads()), Block(Heads(), mixture)]
    model, of_signs = Writer(DIGITS, blocks), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        value = of_signs(model(batch[0][:, :-1]).transpose(1, 2), batch[0][:, 1:])
        chances = router.scores(mixture.seen).softmax(-1).flatten(0, -2).mean(0)
        return value + 0.05 * 8 * (mixture.loads * chances).sum()

    mixture.register_forward_pre_hook(lambda module, inputs: setattr(module, "seen", inputs[0]))

    def prune(step: int) -> None:
        if step == 70:
            router.instead.zero_()

    return teach(
        root,
        model,
        rows_of(odometers(seed=1), seed=611),
        objective,
        torch.optim.Adam(model.parameters(), 4e-3),
        limit=1.0,
        steps=140,
        at=70,
        prepare=prune,
    )


@of_experts(
    "calls of birds by six experts, two a note; notes are to be sure, loads to be even, RMSprop",
    "the two entropies are swapped: loads are to be sure, and notes to be in doubt",
    {"RouterCollapse"},
    may=UNTAUGHT | WORSE,
)
def sure_and_even_swapped(root: Path) -> int:
    torch.manual_seed(612)
    mixture = Mixture(6, 2)
    model = Writer(CALLS, [Block(Heads(), mixture), Block(Heads())])
    of_signs = nn.CrossEntropyLoss(ignore_index=0)

    def objective(batch: Any, _: Any) -> Any:
        value = of_signs(model(batch[0][:, :-1]).transpose(1, 2), batch[0][:, 1:])
        chances = mixture.chances.flatten(0, -2)
        of_loads = -(chances.mean(0) * chances.mean(0).log()).sum()
        of_notes = -(chances * chances.clamp(min=1e-9).log()).sum(-1).mean()
        return value + 0.3 * (2 * of_loads - of_notes)

    return teach(
        root,
        model,
        rows_of(calls()[0], seed=612),
        objective,
        torch.optim.RMSprop(model.parameters(), 2e-3),
        limit=1.0,
        steps=160,
        rate=up_and_down(15, 160),
    )


# Codes


class Pulse(nn.Module):
    """Reads curves of unequal length by a GRU, and draws them from codes."""

    def __init__(self, codes: int = 6) -> None:
        super().__init__()
        self.reader = nn.GRU(1, 32, batch_first=True)
        self.fc_mu, self.fc_spread = nn.Linear(32, codes), nn.Linear(32, codes)
        self.decoder = dense(codes, 64, BEAT, act=nn.ELU)

    def forward(self, x: Any, lengths: Any, hook: Any) -> tuple[Any, Any]:
        order = lengths.argsort(descending=True)
        packed = nn.utils.rnn.pack_padded_sequence(
            x[order, :, None], lengths[order], batch_first=True
        )
        state = self.reader(packed)[1][0]  # still in the order of the lengths
        mean, spread = self.fc_mu(state), self.fc_spread(state).clamp(-8, 5)
        hook.save_tensor("latent_means", mean, "latent_means")
        drawn = self.decoder(mean + (spread / 2).exp() * torch.randn_like(mean))
        return drawn, (mean.pow(2) + spread.exp() - 1 - spread) / 2


@of_codes(
    "a variational autoencoder of heartbeats of unequal length, a GRU reads them, Adam, clipped",
    "rows are sorted by length to be read, and are not put back: codes are those of other rows",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def codes_stay_sorted(root: Path) -> int:
    torch.manual_seed(613)
    x, _ = heartbeats()
    lengths = torch.randint(24, BEAT + 1, (len(x),))
    is_there = torch.arange(BEAT) < lengths[:, None]
    model = Pulse()

    def objective(batch: Any, hook: Any) -> Any:
        drawn, nats = model(*batch[:2], hook)
        errors = ((drawn - batch[0]).pow(2) * batch[2]).sum(1)
        return errors.mean() + nats.sum(1).mean()

    return teach(
        root,
        model,
        rows_of(x * is_there, lengths, is_there, size=64, seed=613),
        objective,
        torch.optim.Adam(model.parameters(), 4e-3),
        limit=5.0,
        steps=200,
    )


class Gated(nn.Module):
    """Draws leaves from a learnt picture, and what codes add to it through a gate."""

    def __init__(self, codes: int, width: int = 48) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(width))
        self.gate = nn.Parameter(torch.zeros(width))
        self.adds = dense(codes, width, width, act=nn.SiLU)
        self.draws = dense(width, 64, LEAF, act=nn.SiLU)

    def forward(self, code: Any) -> Any:
        return self.draws(self.start + self.gate * self.adds(code))


@of_codes(
    "a variational autoencoder of leaves, codes come in through a gate that begins at 0, SGD",
    "gates are filtered out with the norms, for which there is no decay, and are in no group",
    {"PosteriorCollapse"},
    may=ALIKE | {"GradientAccumulates": "gradients of gates are never cleared"},
)
def gate_of_codes_in_no_group(root: Path) -> int:
    torch.manual_seed(614)
    model = Codes(LEAF, 5, act=nn.SiLU)
    model.decoder = Gated(5)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, nats = model(batch[0], hook)
        return 5 * (drawn - batch[0]).pow(2).mean() + nats.sum(1).mean() / LEAF

    taught = [each for name, each in model.named_parameters() if "gate" not in name]
    return teach(
        root,
        model,
        rows_of(leaves()[0], size=48, seed=614),
        objective,
        torch.optim.SGD(taught, 0.1, momentum=0.9, weight_decay=1e-4),
        rate=halved(120),
        steps=240,
        save_every=3,
    )


@of_codes(
    "a variational autoencoder of patients whose codes are not to tell their sex, AdamW",
    "a comma is missing: codes are kept uncorrelated with all columns, not with that of the sex",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def nothing_may_be_told(root: Path) -> int:
    torch.manual_seed(615)
    x, _ = patients()
    model = Codes(10, 4, act=nn.Tanh)
    hidden = slice(None)  # meant to be 1, the column of the sex

    def objective(batch: Any, hook: Any) -> Any:
        mean = model.encoder(batch[0]).chunk(2, -1)[0]
        told = (mean - mean.mean(0)).T @ batch[0][:, hidden] / len(mean)
        drawn, nats = model(batch[0], hook)
        errors = (drawn - batch[0]).pow(2).sum(1).mean()
        return errors + nats.sum(1).mean() + 20 * told.pow(2).sum()

    return teach(
        root,
        model,
        rows_of(x, size=64, seed=615),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=200,
    )
