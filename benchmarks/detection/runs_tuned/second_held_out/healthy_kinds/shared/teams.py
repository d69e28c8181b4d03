"""Teams: one worker or several that train a model, with or without a loss scaler."""

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, Self

import torch
from torch import nn
from training.torch_loop import hook

from smdebug.core.modes import ModeKeys

Feed = Callable[[int], Iterator[Any]]


class Team:
    """Workers with equal models, each with a hook, its optimizers and perhaps a loss scaler.

    Parameters
    ----------
    optimizers
        Each makes an optimizer of a model.
    size
        Number of workers.
    scaler
        Settings of the loss scalers; none by default.
    wire
        What becomes of a gradient before it is averaged.
    """

    def __init__(
        self,
        root: Path,
        make: Callable[[], Any],
        optimizers: Sequence[Callable[[Any], Any]],
        *,
        size: int = 1,
        scaler: dict[str, Any] | None = None,
        clip: float = 0.0,
        wire: Callable[[Any], Any] = lambda gradient: gradient,
        save_every: int = 2,
        seed: int = 0,
    ) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        first = make()
        self.models = [first, *(copy.deepcopy(first) for _ in range(size - 1))]
        self.optimizers = [[one(model) for one in optimizers] for model in self.models]
        self.scalers = [
            None if scaler is None else torch.amp.GradScaler("cpu", **scaler) for _ in self.models
        ]
        self.clip, self.wire = clip, wire
        self.hooks = []
        for rank, model in enumerate(self.models):
            several: dict[str, Any] = {"include_workers": "all", "rank": rank, "world_size": size}
            watching = hook(root, save_every, **several if size > 1 else {})
            watching.register_module(model, counts_steps=False)
            watching.set_mode(ModeKeys.TRAIN)
            self.hooks.append(watching)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for watching in self.hooks:
            watching.close()

    @contextmanager
    def step(self) -> Iterator[list[tuple[Any, Any]]]:
        """Begin a step, and yield the model and the hook of each worker."""
        for watching in self.hooks:
            watching.begin_step()
        yield list(zip(self.models, self.hooks, strict=True))
        for watching in self.hooks:
            watching.step()

    def update(self, losses: Iterable[Any], part: int = 0) -> None:
        """Update the parameters of an optimizer by the losses of the workers."""
        for model, loss, scaler in zip(self.models, losses, self.scalers, strict=True):
            model.zero_grad()
            (loss if scaler is None else scaler.scale(loss)).backward()
        if len(self.models) > 1:
            self._average()
        for optimizers, scaler in zip(self.optimizers, self.scalers, strict=True):
            optimizer = optimizers[part]
            if scaler is not None:
                scaler.unscale_(optimizer)
            if self.clip:
                own = (one for group in optimizer.param_groups for one in group["params"])
                nn.utils.clip_grad_norm_(own, self.clip)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()

    def _average(self) -> None:
        for copies in zip(*(model.parameters() for model in self.models), strict=True):
            gradients = [one.grad for one in copies if one.grad is not None]
            if len(gradients) == len(copies):
                mean = torch.stack([self.wire(gradient) for gradient in gradients]).mean(0)
                for gradient in gradients:
                    gradient.copy_(mean)


def learn(
    root: Path,
    make: Callable[[], Any],
    feed: Feed,
    objective: Callable[[Any, Any, Any], Any],
    *,
    optimizer: Callable[[Any], Any],
    steps: int = 160,
    schedule: Callable[[int], float] = lambda _: 1.0,
    half: Any = None,
    after: Callable[[Any, int], object] = lambda *_: None,
    **options: Any,
) -> int:
    """Train a model by an objective of model, batch and hook; options are those of `Team`.

    Parameters
    ----------
    feed
        Returns the batches of a worker.
    optimizer
        Makes an optimizer of the parameters that learn.
    schedule, half
        The factor of the rate by step; the number type of autocast.
    after
        What happens to a model after a step.
    """
    of_model = lambda model: optimizer([one for one in model.parameters() if one.requires_grad])
    with Team(root, make, [of_model], **options) as team:
        feeds = [feed(rank) for rank in range(len(team.models))]
        groups = [group for (one,) in team.optimizers for group in one.param_groups]
        rates = [group["lr"] for group in groups]
        for number in range(steps):
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate * schedule(number)
            with team.step() as workers:
                losses = []
                for (model, watching), batches in zip(workers, feeds, strict=True):
                    batch = next(batches)
                    with torch.autocast("cpu", half) if half else nullcontext():
                        losses.append(objective(model, batch, watching).float())
                    watching.record_tensor_value("loss", losses[-1])
                team.update(losses)
                for model in team.models:
                    after(model, number)
    return 0


in_full: Final = torch.autocast("cpu", enabled=False)  # what it decorates is not autocast


def dealt(parts: Sequence[Any], batch: int, size: int = 1, *, drops: bool = True) -> Feed:
    """Return the batches of each worker, shuffled; a tuple of the rows of each part.

    Parameters
    ----------
    drops
        Whether what is left over of an epoch is dropped.
    """

    def feed(rank: int) -> Iterator[Any]:
        own = [part[rank::size] for part in parts]
        random = torch.Generator().manual_seed(rank)
        for _ in itertools.count():
            for chosen in torch.randperm(len(own[0]), generator=random).split(batch):
                if len(chosen) == batch or not drops:
                    yield tuple(part[chosen] for part in own)

    return feed
