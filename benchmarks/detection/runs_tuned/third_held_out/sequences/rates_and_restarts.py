"""Rates that do not fit the training, and trainings that lose something when they go on."""

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.logs import CsvLog

from rule_core.model.segments import global_step
from runs_tuned.third_held_out.sequences.shared.actors import Actor, Junction, improve
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.readers import Gated, Retention, Selective, Writer
from runs_tuned.third_held_out.sequences.shared.texts import GENES, NESTED, genes, nested, windows

faulty = functools.partial(training_runs.faulty, kind="language_model")
healthy = functools.partial(training_runs.healthy, kind="language_model")

# Rates


@training_runs.faulty(
    "lights of a junction by proximal updates, a rate that falls linearly with what was seen",
    "what was seen counts all sixteen junctions, what is to be seen counts eight: it ends halfway",
    {"LearningRate"},
    may=UNTAUGHT | {"PolicyEntropyCollapse": "the policy stays as it is"},
    kind="reinforcement",
)
def counted_twice(root: Path) -> int:
    torch.manual_seed(340)
    rollouts, length = 120, 8
    total = rollouts * length * 8
    rate = lambda rollout: max(0.0, 1 - rollout * length * 16 / total)
    return improve(root, Actor(Junction), Junction, rollouts=rollouts, length=length, rate_by=rate)


@faulty(
    "a retention decoder of brackets goes on to learn codons, lower layers at lower rates",
    "each group's rate is lowered by the same amount in each step: those of lower layers pass 0",
    {"LearningRate"},
    may=WORSE,
)
def rates_pass_zero(root: Path) -> int:
    torch.manual_seed(341)
    model = Writer(GENES, mixer=Retention)
    parts = [model.scores, *reversed(model.layers), model.embed_tokens]
    optimizer = torch.optim.AdamW(
        [
            {"params": [*part.parameters()], "lr": 3e-3 * 0.5**depth}
            for depth, part in enumerate(parts)
        ]
    )

    def after(_: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] -= 3e-3 / 160

    batches = dealt(*windows(genes()), seed=341)
    return teach(
        root, model, batches, optimizer, steps=130, save_every=2, clip=1.0, after=after, at=20
    )


# Restarts


def go_on(
    root: Path,
    model: Any,
    batch_of: Callable[[int, bool], Any],
    *,
    optimizer: Any,
    schedule: Callable[[int], float] = lambda _: 1.0,
    steps: int = 230,
    checkpoint: int = 120,
    lost: int = 20,
    change: Callable[[Any], object] = lambda _: None,
    after: Callable[[Any], object] = lambda _: None,
    every: int = 1,
    clip: float = 5.0,
) -> int:
    """Train until `lost` steps after the checkpoint, and go on from there; return the first step.

    Parameters
    ----------
    batch_of
        Returns the batch of a step, and is told whether the training goes on.
    change
        What happens to the model where it goes on.
    after
        What happens to the model after each step.
    every
        How many steps lie between two rows of the log.
    """
    torch.set_num_threads(1)
    rate = optimizer.param_groups[0]["lr"]
    kept: Any = None
    with CsvLog(root) as log:
        for start, end in ((0, checkpoint + lost), (checkpoint, steps)):
            if start:
                model.load_state_dict(kept[0])
                optimizer.load_state_dict(kept[1])
                change(model)
            for step in range(start, end):
                if step == checkpoint and not start:
                    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                optimizer.param_groups[0]["lr"] = rate * schedule(step)
                x, y = batch_of(step, bool(start))
                value = functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                value.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                after(model)
                if step % every == 0:
                    row = {"loss": float(value.detach()), "grad_norm": float(norm)}
                    log.write(step, lr=rate * schedule(step), **row)
    return global_step(1, checkpoint)


def reader(rows: Any, size: int = 16, seed: int = 342) -> Callable[[int, bool], Any]:
    """Return what returns the batch of a step: rows by an order that is drawn once."""
    x, y = windows(rows)
    random = torch.Generator().manual_seed(seed)
    order = torch.cat([torch.randperm(len(x), generator=random) for _ in range(12)])
    return lambda step, _: (x[order[step * size :][:size]], y[order[step * size :][:size]])


@faulty(
    "a selective state space of codons goes on, a slow average of its weights is kept",
    "the checkpoint to go on from is the average, which decays by 0.9995 and is still mostly noise",
    {"ResumeLostState"},
    may=WORSE,
)
def goes_on_from_the_average(root: Path) -> int:
    torch.manual_seed(342)
    model = Writer(GENES, mixer=Selective, layers=1)
    average = copy.deepcopy(model)

    def after(_: Any) -> None:
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.0005)

    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    load = lambda model: model.load_state_dict(average.state_dict())
    return go_on(
        root, model, reader(genes()), optimizer=optimizer, steps=190, change=load, after=after
    )


@faulty(
    "a retention decoder of codons goes on, its vocabulary filled up to a multiple of 8",
    "words do not fit into the checkpoint, and strict is off: embedding and scores begin anew",
    {"ResumeLostState"},
    may=WORSE,
)
def vocabulary_filled_up(root: Path) -> int:
    torch.manual_seed(343)
    model = Writer(24, mixer=lambda: Retention(32, 2))

    def change(model: Any) -> None:
        model.embed_tokens.reset_parameters()
        model.scores.reset_parameters()

    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    schedule = lambda step: max(0.1, 1 - step / 200)
    return go_on(
        root, model, reader(genes(), 24), optimizer=optimizer, schedule=schedule, change=change
    )


@healthy("a decoder of codons goes on with all its state, warm-up and cosine, every 2nd row logged")
def codons_go_on(root: Path) -> int:
    torch.manual_seed(344)
    model = Writer(GENES, units=lambda: Gated(32, 48))
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = warmed(15, 260, 0.1)
    go_on(
        root,
        model,
        reader(genes(), seed=344),
        optimizer=optimizer,
        schedule=schedule,
        lost=31,
        every=2,
    )
    return 0


@healthy("a retention decoder of brackets goes on with other batches, at two thirds of the rate")
def brackets_go_on(root: Path) -> int:
    torch.manual_seed(345)
    model = Writer(NESTED, mixer=Retention)
    first, second = reader(nested(), seed=345), reader(nested(), seed=346)
    optimizer = torch.optim.RAdam(model.parameters(), 4e-3)
    go_on(
        root,
        model,
        lambda step, goes_on: (second if goes_on else first)(step, goes_on),
        optimizer=optimizer,
        schedule=lambda step: 1.0 if step < 140 else 2 / 3,
        checkpoint=140,
        lost=8,
        steps=240,
    )
    return 0
