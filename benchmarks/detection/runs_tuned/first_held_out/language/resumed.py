"""Held-out runs of sequences that go on from a checkpoint, with a CSV log."""

import copy
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from training.learnt_data import Split
from training.logs import CsvLog
from training.torch_loop import batches

from rule_core.model.segments import global_step
from runs_tuned.first_held_out.language.consequences import DAMAGED
from runs_tuned.first_held_out.language.healthy import taught_before
from runs_tuned.first_held_out.language.networks import (
    Bottleneck,
    Decoder,
    LetterLstm,
    RecurrentTranslator,
)
from runs_tuned.first_held_out.language.texts import (
    CHARACTERS,
    WORDS,
    english,
    grammar,
    translations,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")
INTERRUPTED = DAMAGED | {"LearningRate": "the rate jumps when the training goes on"}
Optimizer = Callable[[Any], Any]


class Job:
    """A training that logs each step, keeps a checkpoint and can be interrupted."""

    def __init__(
        self, make: Callable[[], Any], data: Split, optimizer: Optimizer, size: int = 20
    ) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model, self.loss = make(), nn.CrossEntropyLoss()
        learning = [one for one in self.model.parameters() if one.requires_grad]
        self.optimizer = optimizer(learning)
        self.data, self.size = data, size
        self.checkpoint: Any = None

    def run(
        self, log: CsvLog, steps: range, factor: Callable[[int], float], *, keep: int = -1
    ) -> None:
        """Train for the steps, with a factor of the learning rate by step."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for step, (x, y) in zip(steps, batches(self.data, self.size, steps.start), strict=False):
            if step == keep:
                self.checkpoint = copy.deepcopy(
                    (self.model.state_dict(), self.optimizer.state_dict())
                )
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor(step)
            loss = self.loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            lr = self.optimizer.param_groups[0]["lr"]
            log.write(step, loss=float(loss.detach()), lr=lr, grad_norm=float(norm))
            if step % 25 == 0:
                with torch.no_grad():
                    validation = self.loss(self.model(self.data.test_x), self.data.test_y)
                log.write(step, val=float(validation))
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def go_back(self) -> None:
        """Load the checkpoint."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.model.load_state_dict(self.checkpoint[0])
        self.optimizer.load_state_dict(self.checkpoint[1])
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


def interrupted(
    root: Path,
    job: Job,
    factor: Callable[[int], float],
    *,
    after: Callable[[int], float] | None = None,
    change: Callable[[Job], object] = lambda _: None,
    first: int = 140,
    steps: int = 240,
) -> int:
    """Train to beyond the checkpoint at step `first`, and go on from it with a change."""
    with CsvLog(root) as log:
        job.run(log, range(first + 15), factor, keep=first)
        job.go_back()
        change(job)
        job.run(log, range(first, steps), after or factor)
    return global_step(1, first)


def adam(rate: float, **more: Any) -> Optimizer:
    """Return what makes an AdamW."""
    return functools.partial(torch.optim.AdamW, lr=rate, weight_decay=0.01, **more)


def cosine(step: int) -> float:
    """Return a factor that rises for 15 steps, and falls to a tenth in 260."""
    return min((step + 1) / 15, 0.55 + 0.45 * math.cos(math.pi * step / 260))


@training_runs.healthy(
    "a GRU translates, goes on from a checkpoint with all its state", kind="language_model"
)
def gru_goes_on(root: Path) -> int:
    interrupted(root, Job(RecurrentTranslator, translations(), adam(5e-3)), cosine)
    return 0


@faulty(
    "a decoder of letters goes on, warm-up and cosine",
    "the schedule is not in the checkpoint: the warm-up begins again",
    {"ResumeLostState"},
    may=INTERRUPTED,
)
def warm_up_again(root: Path) -> int:
    job = Job(lambda: Decoder(CHARACTERS), english(), adam(3e-3))
    return interrupted(root, job, cosine, after=lambda step: cosine(step - 140))


@faulty(
    "an LSTM of letters goes on, its rate halved every 40 steps",
    "the schedule is not in the checkpoint: the rate is that of the first step",
    {"ResumeLostState"},
    may=INTERRUPTED,
)
def staircase_again(root: Path) -> int:
    make = lambda: LetterLstm(drop=0.0)
    job = Job(make, english(), functools.partial(torch.optim.SGD, lr=4.0))
    stairs = lambda step: 0.5 ** (step // 40)
    return interrupted(root, job, stairs, after=lambda step: stairs(step - 140))


@faulty(
    "a decoder of sentences goes on, AdamW at a constant rate",
    "the second moments of a worker's shard were not saved, the count of steps was",
    {"ResumeLostState"},
    may=INTERRUPTED,
)
def second_moments_lost(root: Path) -> int:
    def change(job: Job) -> None:
        for layer in job.model.layers:
            for parameter in layer.parameters():
                job.optimizer.state[parameter]["exp_avg_sq"].zero_()

    job = Job(lambda: Decoder(WORDS), grammar(), adam(3e-3))
    return interrupted(root, job, lambda step: min(1.0, (step + 1) / 15), change=change)


@faulty(
    "a trained decoder of sentences, adapted by bottlenecks to others, goes on",
    "the bottlenecks are not in the checkpoint: they begin again",
    {"ResumeLostState"},
    may=INTERRUPTED,
)
def bottlenecks_lost(root: Path) -> int:
    def make() -> Any:
        model = taught_before(lambda: Decoder(WORDS), grammar())
        model.requires_grad_(requires_grad=False)
        torch.manual_seed(0)
        for layer in model.layers:
            layer.units = Bottleneck(layer.units, 32)
            layer.units.base.requires_grad_(requires_grad=False)
        return model

    def change(job: Job) -> None:
        torch.manual_seed(1)
        for layer in job.model.layers:
            for part in (layer.units.down, layer.units.up):
                part.reset_parameters()
            nn.init.zeros_(layer.units.up.weight)
            nn.init.zeros_(layer.units.up.bias)

    swapped = lambda tokens: torch.where(tokens >= 15, (tokens - 9) % 37 + 15, tokens)
    data = grammar(seed=33).of(swapped).relabelled(swapped)
    return interrupted(root, Job(make, data, adam(0.01)), lambda _: 1.0, change=change)
