"""What a PyTorch hook costs a training step: for `benchmarks/speed hook`, and `docs/hooks.md`.

Two models of the same weights are trained in turns, ten steps with the hook and ten without; what
waits to be written when the ten are over is written before the next turn, off the clock.
"""

import itertools
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import torch
from torch import nn

import smdebug.pytorch as smd

STEPS = 10  # in a turn
TURNS = 8
MEMORY_STEPS = 30
STATISTICS = smd.ReductionConfig(reductions=["min", "max", "mean"], abs_reductions=["mean"])


class Cnn(nn.Module):
    """Eight convolutions with batch norm, on images of 32 x 32."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (3, 32, 32, 64, 64, 128, 128, 256, 256)
        layers: list[nn.Module] = []
        for at, (before, after) in enumerate(itertools.pairwise(sizes)):
            stride = 2 if at in {2, 4, 6} else 1
            layers += [nn.Conv2d(before, after, 3, stride, 1), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(256, 10)

    def forward(self, images: Any) -> Any:
        """Return logits ``(batch, 10)``."""
        return self.head(self.layers(images).mean((2, 3)))

    @staticmethod
    def batch() -> tuple[Any, Any]:
        """Return images and labels."""
        return torch.randn(32, 3, 32, 32), torch.randint(10, (32,))


class Transformer(nn.Module):
    """Encoder layers with feed-forward layers of twice their width, on 64 tokens."""

    width, heads, depth, sequences = 192, 6, 3, 32

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            self.width, self.heads, 2 * self.width, dropout=0.0, batch_first=True
        )
        self.embedding = nn.Embedding(1000, self.width)
        self.encoder = nn.TransformerEncoder(layer, self.depth, enable_nested_tensor=False)
        self.head = nn.Linear(self.width, 1000)

    def forward(self, tokens: Any) -> Any:
        """Return logits ``(batch, 1000)``."""
        return self.head(self.encoder(self.embedding(tokens)).mean(1))

    @classmethod
    def batch(cls) -> tuple[Any, Any]:
        """Return tokens and labels."""
        return torch.randint(1000, (cls.sequences, 64)), torch.randint(1000, (cls.sequences,))


MODELS = {"CNN": Cnn, "transformer": Transformer}
# What the hook is told, and what a plain script would do instead at a step.
CASES: dict[str, dict[str, Any]] = {
    "nothing": {"save_config": smd.SaveConfig(end_step=0)},
    "losses, every step": {"save_config": smd.SaveConfig(save_interval=1)},
    "gradients, every 10 steps": {
        "save_config": smd.SaveConfig(save_interval=10),
        "include_collections": ["gradients"],
    },
    "min, max, mean, abs_mean of weights, biases and gradients, every step": {
        "save_config": smd.SaveConfig(save_interval=1),
        "include_collections": ["weights", "biases", "gradients"],
        "reduction_config": STATISTICS,
    },
}
# Measured by `benchmarks/speed preset`.
PRESETS: dict[str, dict[str, Any]] = {
    "preset llm, every 10 steps": {
        "save_config": smd.SaveConfig(save_interval=10),
        "preset": "llm",
    },
    "preset llm, every step": {"save_config": smd.SaveConfig(save_interval=1), "preset": "llm"},
}


class Training:
    """A model, its loss and its optimizer, trained on one batch again and again."""

    def __init__(
        self, model: Callable[[], Any], optimizer: Callable[..., Any] = torch.optim.SGD
    ) -> None:
        torch.manual_seed(0)
        self.model = model()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = optimizer(self.model.parameters(), 1e-3)
        self.batch = self.model.batch()
        self.count = 0
        self.after: Callable[[int, Any], None] = lambda *_: None

    def steps(self, count: int) -> float:
        """Train, and return the seconds that it took."""
        began = time.perf_counter()
        inputs, labels = self.batch
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = self.loss(self.model(inputs), labels)
            loss.backward()
            self.after(self.count, loss)
            self.optimizer.step()
            self.count += 1
        return time.perf_counter() - began


@contextmanager
def hooked(training: Training, case: str, folder: str) -> Iterator[Callable[[], None]]:
    """Register a hook; yields what waits until all is written."""
    options = (CASES | PRESETS).get(case, CASES["nothing"])
    hook = smd.Hook(f"{folder}/trial", on_error="raise", **options)
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    hook.set_mode(smd.modes.TRAIN)
    yield hook.flush
    hook.close()


@contextmanager
def plain_saving(training: Training, case: str, folder: str) -> Iterator[Callable[[], None]]:
    """Save the same tensors with `torch.save`, in the training's own thread."""

    def save(step: int, loss: Any) -> None:
        named = dict(training.model.named_parameters())
        saved: dict[str, Any] = {}
        if case.startswith("losses"):
            saved = {"loss": loss.detach()}
        elif case.startswith("gradients") and step % 10 == 0:
            saved = {name: one.grad for name, one in named.items()}
        elif case.startswith("min"):
            for name, one in named.items():
                for kind, tensor in (("value", one.detach()), ("gradient", one.grad)):
                    parts = (tensor.min(), tensor.max(), tensor.mean(), tensor.abs().mean())
                    saved[f"{kind}/{name}"] = parts
        if saved:
            torch.save(saved, f"{folder}/{step}.pt")

    training.after = save
    yield lambda: None


SAVING = {"hook": hooked, "torch.save": plain_saving}


def slowdown(model: str, case: str, saving: str) -> list[float]:
    """Return the ratios of the turns, with saving / without."""
    with tempfile.TemporaryDirectory() as folder:
        plain, other = Training(MODELS[model]), Training(MODELS[model])
        ratios = []
        with SAVING[saving](other, case, folder) as wait:
            for _ in range(TURNS + 1):
                seconds = plain.steps(STEPS)
                ratios.append(other.steps(STEPS) / seconds)
                wait()
        return ratios[1:]  # the first turn warms up


def noise(model: str) -> list[float]:
    """Return the ratios of turns that do the same."""
    first, second = Training(MODELS[model]), Training(MODELS[model])
    return [second.steps(STEPS) / first.steps(STEPS) for _ in range(TURNS + 1)][1:]


def peak(model: str, case: str, saving: str, answer: Any) -> None:
    """Send the peak memory of a training, in bytes; for a process of its own."""
    training = Training(MODELS[model])
    if not saving:
        training.steps(MEMORY_STEPS)
    else:
        with tempfile.TemporaryDirectory() as folder, SAVING[saving](training, case, folder):
            training.steps(MEMORY_STEPS)
    answer.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def peak_of(model: str, case: str, saving: str) -> int:
    """Return the peak memory of a training in bytes, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=peak, args=(model, case, saving, theirs))
    process.start()
    found: int = ours.recv()
    process.join()
    return found


def percent(ratios: list[float]) -> str:
    """Return the median of the ratios as a slow-down, with its quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle - 1:+6.1%} ({low - 1:+.1%} to {high - 1:+.1%})"


def run() -> None:
    """Print the table."""
    click.echo(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads; "
        f"{TURNS} turns of {STEPS} steps"
    )
    for model, create in MODELS.items():
        training = Training(create)
        training.steps(STEPS)
        step = statistics.median(training.steps(1) for _ in range(STEPS))
        tensors = list(training.model.parameters())
        size = sum(one.numel() * one.element_size() for one in tensors)
        alone = peak_of(model, "nothing", "")
        click.echo(
            f"\n{model}: {len(tensors)} parameters of {size / 1e6:.1f} MB, "
            f"{step * 1e3:.0f} ms a step, peak memory {alone / 1e6:.0f} MB"
        )
        click.echo(f"  the same twice: {percent(noise(model))}")
        for case in CASES:
            click.echo(f"  {case}")
            for saving in SAVING:
                if case == "nothing" and saving != "hook":
                    continue
                more = (peak_of(model, case, saving) - alone) / 1e6
                ratios = slowdown(model, case, saving)
                click.echo(f"    {saving:10}  {percent(ratios)}  peak memory {more:+.0f} MB")


if __name__ == "__main__":
    run()
