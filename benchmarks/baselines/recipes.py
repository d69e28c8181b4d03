"""Recipes: 40 small trainings, whose runs differ in their seeds only."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

SEEDS: Final = 6
TOKENS: Final = 12  # of the synthetic languages
PAUSES: Final = 0.01  # of all steps
LENGTH: Final = 16  # of their sequences


@dataclass(frozen=True)
class Recipe:
    """What the runs of a recipe have in common.

    Attributes
    ----------
    task, model
        Keys of `TASKS` and `MODELS`.
    run_noise, step_noise
        The relative deviation of the clock from run to run, and from step to step. The clock is a
        model: on a shared machine a real one says nothing.
    """

    task: str
    model: str
    optimizer: str
    schedule: str
    rate: float
    batch_size: int = 32
    steps: int = 200
    width: int = 32
    weight_decay: float = 0.0
    run_noise: float = 0.005
    step_noise: float = 0.05

    @property
    def name(self) -> str:
        """A name for folders and tables."""
        return f"{self.task}-{self.model}-{self.optimizer}-{self.schedule}-{self.batch_size}"

    @property
    def is_held_out(self) -> bool:
        """Whether the recipe is kept out of tuning: the half whose names have the larger hashes."""
        return self in sorted(RECIPES, key=_digest)[len(RECIPES) // 2 :]


def _digest(recipe: Recipe) -> str:
    return sha256(recipe.name.encode()).hexdigest()


RECIPES: Final = (
    Recipe("curve", "mlp", "adam", "constant", 3e-3),
    Recipe("curve", "mlp", "adam", "cosine", 1e-2, steps=300),
    Recipe("curve", "mlp", "momentum", "steps", 3e-2, step_noise=0.1),
    Recipe("curve", "mlp", "sgd", "constant", 5e-2, batch_size=16, run_noise=0.01),
    Recipe("curve", "linear", "sgd", "constant", 2e-2, steps=150),
    Recipe("tabular", "mlp", "adamw", "cosine", 5e-3, weight_decay=0.01, steps=250),
    Recipe("tabular", "mlp", "momentum", "warmup", 2e-2, steps=250),
    Recipe("tabular", "mlp", "adam", "constant", 1e-3, batch_size=64, width=64),
    Recipe("tabular", "linear", "adam", "constant", 1e-2, run_noise=0.015),
    Recipe("tabular", "mlp", "rmsprop", "cosine", 2e-3, step_noise=0.15),
    Recipe("blobs", "mlp", "adam", "constant", 3e-3, steps=150),
    Recipe("blobs", "mlp", "sgd", "cosine", 1e-1, batch_size=16),
    Recipe("blobs", "linear", "sgd", "constant", 5e-2, steps=300),
    Recipe("blobs", "mlp", "adamw", "warmup", 5e-3, weight_decay=0.1),
    Recipe("spiral", "mlp", "adam", "constant", 1e-2, steps=300, width=64),
    Recipe("spiral", "mlp", "adamw", "cosine", 1e-2, steps=300, width=64, weight_decay=0.01),
    Recipe("spiral", "mlp", "momentum", "steps", 1e-1, steps=300, width=64, run_noise=0.01),
    Recipe("images", "cnn", "adam", "constant", 2e-3, steps=120),
    Recipe("images", "cnn", "momentum", "cosine", 3e-2, steps=120, step_noise=0.1),
    Recipe("images", "cnn", "adamw", "warmup", 4e-3, steps=120, batch_size=64, weight_decay=0.05),
    Recipe("images", "mlp", "adam", "cosine", 2e-3, steps=200),
    Recipe("images", "mlp", "sgd", "steps", 1e-1, steps=200, batch_size=64),
    Recipe("language", "transformer", "adamw", "cosine", 3e-3, steps=150, weight_decay=0.1),
    Recipe("language", "transformer", "adamw", "warmup", 2e-3, steps=180, weight_decay=0.01),
    Recipe("language", "transformer", "adam", "constant", 2e-3, steps=150, run_noise=0.01),
    Recipe("language", "gru", "adam", "constant", 5e-3, steps=120),
    Recipe("language", "gru", "adam", "cosine", 1e-2, steps=120, step_noise=0.1),
    Recipe("language", "gru", "rmsprop", "constant", 2e-3, steps=120, batch_size=64),
    Recipe("copy", "transformer", "adamw", "cosine", 3e-3, steps=180),
    Recipe("copy", "transformer", "adam", "warmup", 3e-3, steps=180, batch_size=64),
    Recipe("copy", "gru", "adam", "constant", 5e-3, steps=150),
    Recipe("copy", "gru", "momentum", "cosine", 1e-1, steps=150),
    Recipe("sums", "transformer", "adam", "constant", 3e-3, steps=180),
    Recipe("sums", "mlp", "adam", "cosine", 3e-3, steps=250, width=64),
    Recipe("sums", "gru", "adamw", "warmup", 5e-3, steps=150, weight_decay=0.01),
    Recipe("compress", "autoencoder", "adam", "constant", 3e-3),
    Recipe("compress", "autoencoder", "adamw", "cosine", 1e-2, steps=250, weight_decay=0.001),
    Recipe("compress", "autoencoder", "momentum", "constant", 1e-1, run_noise=0.02),
    Recipe("ratings", "factors", "adam", "constant", 2e-2, batch_size=64, steps=250),
    Recipe("ratings", "factors", "adamw", "steps", 3e-2, batch_size=64, weight_decay=0.05),
)


@dataclass(frozen=True)
class Data:
    """Inputs and targets, the last quarter of them for validation."""

    inputs: Tensor
    targets: Tensor
    outputs: int

    @property
    def split(self) -> int:
        """The number of examples for training."""
        return len(self.inputs) * 3 // 4

    @property
    def is_classified(self) -> bool:
        """Whether the targets are classes."""
        return not self.targets.is_floating_point()


def _curve(rng: np.random.Generator) -> Data:
    inputs = rng.uniform(-2, 2, (1024, 2))
    targets = np.sin(2 * inputs[:, :1]) + inputs[:, 1:] ** 2 / 2 + rng.normal(0, 0.2, (1024, 1))
    return Data(_floats(inputs), _floats(targets), 1)


def _tabular(rng: np.random.Generator) -> Data:
    inputs = rng.normal(size=(2048, 16))
    weights, cross = rng.normal(size=(16, 1)), rng.normal(size=(16, 16)) / 8
    targets = inputs @ weights / 4 + np.sum(inputs @ cross * inputs, 1, keepdims=True) / 2
    return Data(_floats(inputs), _floats(targets + rng.normal(0, 0.5, targets.shape)), 1)


def _blobs(rng: np.random.Generator) -> Data:
    classes = rng.integers(0, 6, 1536)
    centres = rng.normal(size=(6, 8))
    return Data(_floats(centres[classes] + rng.normal(0, 0.9, (1536, 8))), _whole(classes), 6)


def _spiral(rng: np.random.Generator) -> Data:
    classes = rng.integers(0, 3, 1536)
    radius = rng.uniform(0.1, 1, 1536)
    angle = 4 * radius + 2 * math.pi * classes / 3 + rng.normal(0, 0.25, 1536)
    inputs = 2 * np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return Data(_floats(inputs), _whole(classes), 3)


def _images(rng: np.random.Generator) -> Data:
    classes = rng.integers(0, 5, 1024)
    patterns = rng.normal(size=(5, 64))
    inputs = patterns[classes] * rng.uniform(0.2, 1, (1024, 1)) + rng.normal(0, 1.2, (1024, 64))
    return Data(_floats(inputs), _whole(classes), 5)


def _language(rng: np.random.Generator) -> Data:
    """Return sequences of a Markov chain; the target is the next token."""
    chances = rng.dirichlet(np.full(TOKENS, 0.3), (TOKENS, TOKENS)).cumsum(2)
    tokens = rng.integers(0, TOKENS, (1024, LENGTH + 1))
    for place in range(2, LENGTH + 1):
        row = chances[tokens[:, place - 2], tokens[:, place - 1]]
        drawn = (rng.random((1024, 1)) > row).sum(1)
        tokens[:, place] = np.minimum(drawn, TOKENS - 1)
    return Data(_whole(tokens[:, :-1]), _whole(tokens[:, 1:]), TOKENS)


def _copy(rng: np.random.Generator) -> Data:
    tokens = rng.integers(0, TOKENS, (1024, LENGTH // 2))
    doubled = np.concatenate([tokens, tokens], 1)
    targets = np.concatenate([doubled[:, 1:], doubled[:, :1]], 1)
    return Data(_whole(doubled), _whole(targets), TOKENS)


def _sums(rng: np.random.Generator) -> Data:
    tokens = rng.integers(0, TOKENS, (1536, LENGTH))
    return Data(_whole(tokens), _whole(np.cumsum(tokens % 2, 1) % TOKENS), TOKENS)


def _compress(rng: np.random.Generator) -> Data:
    codes = rng.normal(size=(1024, 6))
    inputs = np.tanh(codes @ rng.normal(size=(6, 32))) + rng.normal(0, 0.1, (1024, 32))
    return Data(_floats(inputs), _floats(inputs), 32)


def _ratings(rng: np.random.Generator) -> Data:
    pairs = rng.integers(0, 64, (4096, 2))
    users, films = rng.normal(size=(64, 3)), rng.normal(size=(64, 3))
    scores = np.sum(users[pairs[:, 0]] * films[pairs[:, 1]], 1, keepdims=True)
    return Data(_whole(pairs), _floats(scores + rng.normal(0, 0.5, scores.shape)), 1)


def _floats(array: NDArray[np.float64]) -> Tensor:
    return torch.tensor(array, dtype=torch.float32)


def _whole(array: NDArray[np.int64]) -> Tensor:
    return torch.tensor(array, dtype=torch.int64)


TASKS: Final[dict[str, Callable[[np.random.Generator], Data]]] = {
    "curve": _curve,
    "tabular": _tabular,
    "blobs": _blobs,
    "spiral": _spiral,
    "images": _images,
    "language": _language,
    "copy": _copy,
    "sums": _sums,
    "compress": _compress,
    "ratings": _ratings,
}


class _Factors(nn.Module):
    """Embeddings of two kinds, whose products are the output."""

    def __init__(self, data: Data, width: int) -> None:
        super().__init__()
        del data
        self.tables = nn.ModuleList([nn.Embedding(64, width // 4) for _ in range(2)])

    def forward(self, inputs: Tensor) -> Tensor:
        users, films = (table(inputs[:, column]) for column, table in enumerate(self.tables))
        return (users * films).sum(1, keepdim=True)


class _Sequences(nn.Module):
    """A model of sequences between an embedding and a linear layer."""

    def __init__(self, data: Data, width: int, kind: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width) * 0.1)
        self.kind = kind
        if kind == "gru":
            self.inner: nn.Module = nn.GRU(width, width, batch_first=True)
        elif kind == "transformer":
            layer = nn.TransformerEncoderLayer(width, 2, 2 * width, 0.0, batch_first=True)
            self.inner = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        else:
            self.inner = nn.Sequential(nn.Flatten(), nn.Linear(LENGTH * width, width * LENGTH))
        self.head = nn.Linear(width, data.outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens) + self.places
        if self.kind == "gru":
            hidden = self.inner(hidden)[0]
        elif self.kind == "transformer":
            mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
            hidden = self.inner(hidden, mask=mask, is_causal=True)
        else:
            hidden = torch.relu(self.inner(hidden)).view(hidden.shape)
        return self.head(hidden)


def _model(recipe: Recipe, data: Data) -> nn.Module:
    width = recipe.width
    if recipe.task in {"language", "copy", "sums"}:
        return _Sequences(data, width, recipe.model)
    if recipe.model == "factors":
        return _Factors(data, width)
    size = data.inputs.shape[1]
    if recipe.model == "linear":
        return nn.Linear(size, data.outputs)
    if recipe.model == "cnn":
        inner = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*inner, nn.Linear(8 * 36, data.outputs))
    hidden = width // 4 if recipe.model == "autoencoder" else width
    inner = [nn.Linear(size, width), nn.ReLU(), nn.Linear(width, hidden), nn.ReLU()]
    return nn.Sequential(*inner, nn.Linear(hidden, data.outputs))


def _optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    decay = {"weight_decay": recipe.weight_decay}
    kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "rmsprop": torch.optim.RMSprop,
        "sgd": torch.optim.SGD,
    }
    if recipe.optimizer == "momentum":
        return torch.optim.SGD(model.parameters(), recipe.rate, 0.9, **decay)
    return kinds[recipe.optimizer](model.parameters(), recipe.rate, **decay)


def _factor(recipe: Recipe, step: int) -> float:
    """Return the learning rate of a step as a share of the highest one."""
    share = step / recipe.steps
    if recipe.schedule == "cosine":
        return (1 + math.cos(math.pi * share)) / 2
    if recipe.schedule == "steps":
        return 0.2 ** int(share * 3)
    if recipe.schedule == "warmup":
        return min(1.0, 10 * (step + 1) / recipe.steps) * (1 - 0.9 * share)
    return 1.0


def rows(recipe: Recipe, seed: int) -> Iterator[dict[str, float]]:
    """Train with a seed, and yield the rows of the log."""
    data = TASKS[recipe.task](np.random.default_rng(int(_digest(recipe)[:8], 16)))
    torch.manual_seed(seed)
    model = _model(recipe, data)
    optimizer = _optimizer(recipe, model)
    clock = _clock(recipe, np.random.default_rng([seed, int(_digest(recipe)[:8], 16)]))
    order = torch.randperm(data.split)
    elapsed = 0.0
    for step in range(recipe.steps):
        first = step * recipe.batch_size % data.split
        if first + recipe.batch_size > data.split:
            order, first = torch.randperm(data.split), 0
        batch = order[first : first + recipe.batch_size]
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * _factor(recipe, step)
        loss, _ = _loss(data, model(data.inputs[batch]), data.targets[batch])
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        optimizer.step()
        elapsed += clock[step]
        row = {"step": step, "loss": loss.item(), "grad_norm": norm.item()}
        row["samples_per_second"] = recipe.batch_size / clock[step]
        if step % max(1, recipe.steps // 15) == recipe.steps // 15 - 1 or step == recipe.steps - 1:
            with torch.no_grad():
                loss, accuracy = _loss(
                    data, model(data.inputs[data.split :]), data.targets[data.split :]
                )
            row["val_loss"] = loss.item()
            if accuracy is not None:
                row["val_accuracy"] = accuracy
        row["timestamp"] = 1.7e9 + elapsed
        yield row


def _loss(data: Data, outputs: Tensor, targets: Tensor) -> tuple[Tensor, float | None]:
    if not data.is_classified:
        return functional.mse_loss(outputs, targets), None
    flat, classes = outputs.reshape(-1, data.outputs), targets.reshape(-1)
    accuracy = (flat.argmax(1) == classes).float().mean().item()
    return functional.cross_entropy(flat, classes), accuracy


def _clock(recipe: Recipe, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the seconds of each step: noise of the run and of the step, and rare pauses."""
    steps = 0.05 * np.exp(rng.normal(0, recipe.run_noise))
    seconds = steps * np.exp(rng.normal(0, recipe.step_noise, recipe.steps))
    return np.where(rng.random(recipe.steps) < PAUSES, 4 * seconds, seconds)


def write_run(recipe: Recipe, seed: int, folder: Path) -> None:
    """Write the log and the configuration of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in rows(recipe, seed)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "config.json").write_text(json.dumps({**asdict(recipe), "seed": seed}), "utf-8")


def write_runs(root: Path) -> None:
    """Write the runs of all recipes below a folder, unless they are there."""
    torch.set_num_threads(1)
    for recipe in RECIPES:
        for seed in range(SEEDS):
            folder = root / recipe.name / f"seed_{seed}"
            if not (folder / "config.json").exists():
                write_run(recipe, seed, folder)
