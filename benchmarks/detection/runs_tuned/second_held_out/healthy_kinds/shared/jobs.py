"""Healthy trainings that were interrupted and go on from a checkpoint, with a log of their own."""

import copy
import csv
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

Objective = Callable[[Any, Any], dict[str, Any]]


class Log:
    """A file of rows with a step, a table or lines of JSON, which is written at the end.

    Parameters
    ----------
    fields
        Names of the values by what they are called here.
    """

    def __init__(self, root: Path, fields: dict[str, str], *, is_table: bool = True) -> None:
        root.mkdir(parents=True)
        self._path = root / ("metrics.csv" if is_table else "metrics.jsonl")
        self._fields, self._rows = fields, list[dict[str, float]]()

    def write(self, step: int, values: dict[str, float]) -> None:
        """Add a row."""
        named = {self._fields.get(key, key): one for key, one in values.items()}
        self._rows.append({"step": step, **named})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._path.open("w", newline="", encoding="utf-8") as file:
            if self._path.suffix == ".csv":
                names = dict.fromkeys(itertools.chain.from_iterable(self._rows))
                table = csv.DictWriter(file, names)
                table.writeheader()
                table.writerows(self._rows)
            else:
                file.writelines(json.dumps(row) + "\n" for row in self._rows)


FIELDS = {
    "loss": "train/loss",
    "val": "val/loss",
    "lr": "train/lr",
    "norm": "train/grad_norm",
    "scale": "train/loss_scale",
    "entropy": "train/policy_entropy",
    "reward": "train/episode_reward",
    "value": "train/value_loss",
    "policy": "train/policy_loss",
}


class Job:
    """A training with all of its state, which a checkpoint keeps.

    Parameters
    ----------
    objective
        Returns what is logged by model and batch, among it the loss that is minimised.
    schedule
        The factor of the rate by step; it is loaded with the checkpoint.
    scaler
        Settings of a loss scaler, with which the model is computed in half precision.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        objective: Objective,
        optimizer: Callable[[Any], Any],
        *,
        schedule: Callable[[int], float] | None = None,
        scaler: dict[str, Any] | None = None,
        clip: float = 1e6,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.model, self.objective, self.clip = make(), objective, clip
        self.optimizer = optimizer(self.model.parameters())
        self.parts = {"model": self.model, "optimizer": self.optimizer}
        self.rates = self.scaler = None
        if schedule is not None:
            self.rates = torch.optim.lr_scheduler.LambdaLR(self.optimizer, schedule)
            self.parts["rates"] = self.rates
        if scaler is not None:
            self.scaler = torch.amp.GradScaler("cpu", **scaler)
            self.parts["scaler"] = self.scaler

    def checkpoint(self) -> dict[str, Any]:
        """Return the state of all parts."""
        return copy.deepcopy({name: part.state_dict() for name, part in self.parts.items()})

    def load(self, checkpoint: dict[str, Any]) -> None:
        """Go back to a checkpoint."""
        for name, part in self.parts.items():
            part.load_state_dict(copy.deepcopy(checkpoint[name]))

    def step(self, batch: Any) -> dict[str, float]:
        """Take a step, and return what there is to log."""
        with torch.autocast("cpu", torch.float16, enabled=self.scaler is not None):
            values = self.objective(self.model, batch)
        loss = values["loss"] if "loss" in values else values.pop("minimised")
        self.optimizer.zero_grad()
        row = {"lr": self.optimizer.param_groups[0]["lr"]}
        if self.scaler is None:
            loss.backward()
        else:
            row["scale"] = self.scaler.get_scale()
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.clip))
        if norm < float("inf"):
            row["norm"] = norm
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        is_skipped = self.scaler is not None and self.scaler.get_scale() < row["scale"]
        if self.rates is not None and not is_skipped:
            self.rates.step()
        return row | {name: float(value.detach()) for name, value in values.items()}


def go_on(
    root: Path,
    job: Job,
    feed: Callable[[int], Iterator[Any]],
    parts: list[tuple[int, int]],
    *,
    every: int = 1,
    change: Callable[[Job], object] = lambda _: None,
    validates: Callable[[Any], Any] | None = None,
    is_table: bool = True,
    fields: dict[str, str] | None = None,
) -> int:
    """Train in parts, each from its first step to its last, and log.

    Parameters
    ----------
    feed
        Returns the batches of a part by its number.
    parts
        First step of each part, from the checkpoint of which it goes on, and the step after its
        last one.
    every
        Number of steps from one row to the next; a row has their mean loss.
    change
        What happens to the job after each checkpoint that was loaded.
    validates
        Returns the loss of the model on other rows.
    """
    kept = {0: job.checkpoint()}
    starts = {start for start, _ in parts}
    names = FIELDS if fields is None else fields
    with Log(root, names, is_table=is_table) as log:
        for number, (start, end) in enumerate(parts):
            if number:
                job.load(kept[start])
                change(job)
            rows = []
            for step, batch in zip(range(start, end), feed(number), strict=False):
                if step in starts:
                    kept[step] = job.checkpoint()
                rows.append(job.step(batch))
                if (step + 1) % every:
                    continue
                keys = dict.fromkeys(itertools.chain.from_iterable(rows))
                of_key = {key: [row[key] for row in rows if key in row] for key in keys}
                means = {key: sum(values) / len(values) for key, values in of_key.items()}
                for key in {"lr", "scale"} & keys.keys():
                    means[key] = rows[-1][key]
                log.write(step, means)
                rows = []
                if validates is not None and (step + 1) % (20 * every) == 0:
                    with torch.no_grad():
                        log.write(step, {"val": float(validates(job.model))})
    return 0
