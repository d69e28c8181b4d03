"""What the preset `llm` costs in CPU time: for `benchmarks/speed preset`, and `docs/hooks.md`.

Two trainings of the same weights take turns at each step, with one thread; ten steps of each make a
ratio. CPU time of the whole process, with the thread that writes, is counted, since other processes
of the machine change it little, and both sides alike.
"""

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click
import torch
from bench_hook import STEPS, Training, Transformer, hooked
from torch import nn
from torch.nn import functional

RATIOS = {None: 6, "preset llm, every 10 steps": 12, "preset llm, every step": 8}


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each on normalized inputs."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layer = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layer = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        """Return the input with what both layers add to it."""
        parts = self.query_key_value(self.before_attention(x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.layer(self.before_layer(x))


class Gpt(nn.Module):
    """A decoder of 4.3 million parameters, on 8 sequences of 128 tokens."""

    width, heads, depth, tokens, sequences, vocabulary = 256, 8, 4, 128, 8, 2048

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.positions = nn.Embedding(self.tokens, self.width)
        self.blocks = nn.Sequential(*(Block(self.width, self.heads) for _ in range(self.depth)))
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.vocabulary, bias=False)

    def forward(self, tokens: Any) -> Any:
        """Return logits ``(tokens of all sequences, vocabulary)``."""
        x = self.embedding(tokens) + self.positions(torch.arange(self.tokens))
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    @classmethod
    def batch(cls) -> tuple[Any, Any]:
        """Return tokens, and each one's next."""
        tokens = torch.randint(cls.vocabulary, (cls.sequences, cls.tokens + 1))
        return tokens[:, :-1], tokens[:, 1:].flatten()


def cpu_seconds(training: Training, wait: Callable[[], object]) -> float:
    """Train for a step, wait until all is written, and return the CPU time that it took."""
    began = time.process_time()
    training.steps(1)
    wait()
    return time.process_time() - began


def nothing() -> None:
    """Wait for nothing."""


def ratios(model: type[nn.Module], case: str | None) -> list[float]:
    """Return ratios of times, with the hook / without; without a case both do the same."""
    plain, other = (Training(model, torch.optim.AdamW) for _ in range(2))
    if case is None:
        return paired(plain, other, nothing, RATIOS[case])
    with tempfile.TemporaryDirectory() as folder, hooked(other, case, folder) as wait:
        return paired(plain, other, wait, RATIOS[case])


def paired(plain: Training, other: Training, wait: Callable[[], object], count: int) -> list[float]:
    """Return ratios of the times of two trainings, after one that warms up."""
    values = []
    for _ in range(count + 1):
        times = [(cpu_seconds(plain, nothing), cpu_seconds(other, wait)) for _ in range(STEPS)]
        values.append(sum(more for _, more in times) / sum(seconds for seconds, _ in times))
    return values[1:]


def percent(values: list[float]) -> str:
    """Return the median as a slow-down, with its 95 % interval, from ranks."""
    ordered, count = sorted(values), len(values)
    low = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)))
    middle = statistics.median(ordered)
    return f"{middle - 1:+.1%} ({ordered[low] - 1:+.1%} to {ordered[-1 - low] - 1:+.1%})"


def run() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    click.echo(f"torch {torch.__version__}, 1 thread; ratios of {STEPS} steps of each")
    for model in (Gpt, Transformer):
        parameters = [item.numel() for item in model().parameters()]
        click.echo(f"{model.__name__}: {len(parameters)} parameters of {sum(parameters):,} numbers")
        for case, count in RATIOS.items():
            load = os.getloadavg()[0]
            slowdown = percent(ratios(model, case))
            click.echo(f"| {case or 'the same twice'} | {slowdown} | {count}, load {load:.0f} |")


if __name__ == "__main__":
    run()
