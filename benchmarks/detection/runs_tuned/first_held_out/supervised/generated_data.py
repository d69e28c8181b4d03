"""Datasets of the held-out supervised runs: shapes, photographs, points, signals, tables."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn import datasets as bundled
from sklearn.ensemble import RandomForestClassifier
from training.learnt_data import Split

SHAPES = 5  # disc, ring, square, cross, bar
SIDE = 16
CATEGORIES = 60
NODES = 240


def cut(x: Any, y: Any, test: int) -> Split:
    """Return arrays as tensors, the last rows of which are for validation."""
    x = torch.as_tensor(x, dtype=torch.float32)
    y = torch.as_tensor(y)
    y = y.float() if y.is_floating_point() else y.long()
    return Split(x[:-test], y[:-test], x[-test:], y[-test:])


def _outlines(rng: Any, kind: Any) -> tuple[Any, Any]:
    """Return masks ``(n, SIDE, SIDE)`` of shapes, and their centres ``(n, 2)``."""
    centre = rng.uniform(5, SIDE - 6, (len(kind), 2))
    size = rng.uniform(2.5, 4.5, (len(kind), 1, 1))
    grid = np.arange(SIDE)
    dy = np.abs(grid[None, :, None] - centre[:, :1, None])
    dx = np.abs(grid[None, None, :] - centre[:, 1:, None])
    distance, farthest = np.hypot(dx, dy), np.maximum(dx, dy)
    masks = np.stack(
        [
            distance < size,
            np.abs(distance - size) < 1,
            farthest < size,
            (np.minimum(dx, dy) < 1) & (farthest < size),
            (dy < 1) & (dx < size + 1),
        ]
    )
    return masks[kind, np.arange(len(kind))], centre


@functools.cache
def shapes(count: int = 900, test: int = 200, noise: float = 0.35) -> tuple[Split, Any, Any]:
    """Return noisy images ``(n, 1, 16, 16)`` of mean 0 with their shapes, masks, and centres."""
    rng = np.random.default_rng(101)
    kind = rng.integers(0, SHAPES, count)
    masks, centre = _outlines(rng, kind)
    brightness = rng.uniform(0.6, 1.4, (count, 1, 1))
    image = masks * brightness + rng.normal(0, noise, masks.shape)
    image = (image - image.mean()) / image.std()
    return cut(image[:, None], kind, test), masks[:, None], centre / SIDE


def segmented(count: int = 700, test: int = 100) -> Split:
    """Return images of shapes, and their masks of 0 and 1."""
    split, masks, _ = shapes(count, test)
    return cut(torch.cat([split.x, split.test_x]), masks.astype(np.float32), test)


def located(count: int = 900, test: int = 200) -> Split:
    """Return images of shapes; targets are the shape, and the two coordinates of its centre."""
    split, _, centre = shapes(count, test)
    kind = torch.cat([split.y, split.test_y]).numpy()
    return cut(torch.cat([split.x, split.test_x]), np.column_stack([kind, 4 * centre - 2]), test)


@functools.cache
def raw_patches(count: int = 800, side: int = 12, seed: int = 5) -> tuple[Any, Any]:
    """Return patches ``(n, 3, side, side)`` of 0 to 1 of two photographs, and which one it was."""
    rng = np.random.default_rng(seed)
    photographs = bundled.load_sample_images().images
    kind = rng.integers(0, 2, count)
    patches = np.empty((count, side, side, 3), np.float32)
    for at, which in enumerate(kind):
        height, width, _ = photographs[which].shape
        top, left = rng.integers(0, height - side), rng.integers(0, width - side)
        patches[at] = photographs[which][top : top + side, left : left + side] / 255
    return torch.tensor(patches.transpose(0, 3, 1, 2)), torch.tensor(kind)


@functools.cache
def patches(count: int = 800, test: int = 200) -> Split:
    """Return patches of photographs, each channel standardised, and which photograph it was."""
    raw, kind = raw_patches(count)
    axes = (0, 2, 3)
    mean, deviation = raw.mean(axes, keepdim=True), raw.std(axes, keepdim=True)
    return cut((raw - mean) / deviation, kind, test)


@functools.cache
def clouds(count: int = 700, points: int = 48, test: int = 150) -> Split:
    """Return clouds ``(n, 3, points)`` on the surface of a ball, box, cylinder or saddle."""
    rng = np.random.default_rng(7)
    kind = rng.integers(0, 4, count)
    ball = rng.normal(size=(count, points, 3))
    box = rng.uniform(-1, 1, (count, points, 3))
    angle = rng.uniform(0, 2 * np.pi, (count, points))
    tube = np.stack([np.cos(angle), np.sin(angle), rng.uniform(-1, 1, angle.shape)], -1)
    plane = rng.uniform(-1, 1, (count, points, 3))
    plane[..., 2] = plane[..., 0] ** 2 - plane[..., 1] ** 2
    ball /= np.linalg.norm(ball, axis=-1, keepdims=True)
    box /= np.abs(box).max(-1, keepdims=True)
    cloud = np.stack([ball, box, tube, plane])[kind, np.arange(count)]
    turn = rng.uniform(0, 2 * np.pi, count)
    first = np.cos(turn)[:, None] * cloud[..., 0] - np.sin(turn)[:, None] * cloud[..., 1]
    second = np.sin(turn)[:, None] * cloud[..., 0] + np.cos(turn)[:, None] * cloud[..., 1]
    cloud = np.stack([first, second, cloud[..., 2]], 1)
    return cut(cloud + rng.normal(0, 0.05, cloud.shape), kind, test)


@functools.cache
def signals(count: int = 700, length: int = 48, test: int = 150, noise: float = 0.5) -> Split:
    """Return signals ``(n, 2, length)`` of two sensors: a hum, chirp, burst or decay."""
    rng = np.random.default_rng(17)
    kind = rng.integers(0, 4, count)
    time = np.linspace(0, 1, length)
    phase = rng.uniform(0, 6.28, (count, 1))
    at = rng.uniform(0.2, 0.8, (count, 1))
    wave = np.sin(40 * time + phase)
    forms = np.stack(
        [
            wave,
            np.sin(20 * time + 40 * time**2 + phase),
            2 * wave * np.exp(-(((time - at) / 0.1) ** 2)),
            2 * wave * np.exp(-4 * time),
        ]
    )
    signal = forms[kind, np.arange(count)]
    both = np.stack([signal, np.roll(signal, 3, 1)], 1)
    return cut(both + rng.normal(0, noise, both.shape), kind, test)


@functools.cache
def load_of_a_grid(count: int = 700, length: int = 24, test: int = 150) -> Split:
    """Return ``(n, length, 1)`` hours of a load with a daily wave, and the next four hours."""
    rng = np.random.default_rng(19)
    start = rng.uniform(0, 24, (count, 1))
    hours = start + np.arange(length + 4)
    level = rng.normal(0, 0.5, (count, 1))
    load = level + np.sin(hours * 2 * np.pi / 24) + 0.4 * np.sin(hours * 4 * np.pi / 24)
    load += rng.normal(0, 0.15, load.shape)
    return cut(load[:, :length, None], load[:, length:], test)


@functools.cache
def friedman(count: int = 900, test: int = 200, noise: float = 1.0) -> Split:
    """Return Friedman's ten features, five of which matter, and a standardised target."""
    x, y = bundled.make_friedman1(count, 10, noise=noise, random_state=23)
    return cut((x - 0.5) * 12**0.5, ((y - y.mean()) / y.std())[:, None], test)


@functools.cache
def counts(count: int = 1000, test: int = 200) -> Split:
    """Return eight features, and counts ``(n, 1)`` of a mean that depends on them."""
    rng = np.random.default_rng(29)
    x = rng.normal(size=(count, 8))
    rate = np.exp(1.0 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * x[:, 2] * x[:, 3])
    return cut(x, rng.poisson(rate)[:, None].astype(np.float32), test)


@functools.cache
def inverse_problem(count: int = 1000, test: int = 200) -> Split:
    """Return a number ``(n, 1)``, and one of up to three that it may come from."""
    rng = np.random.default_rng(31)
    cause = rng.uniform(0, 1, (count, 1))
    effect = cause + 0.3 * np.sin(2 * np.pi * cause) + rng.normal(0, 0.04, cause.shape)
    return cut(4 * effect - 2, 4 * cause - 2, test)


@functools.cache
def customers(count: int = 1400, test: int = 300) -> Split:
    """Return five numbers and two categories, one of them with a long tail; one in five stays."""
    rng = np.random.default_rng(37)
    frequency = 1 / np.arange(1, CATEGORIES + 1)
    town = rng.choice(CATEGORIES, count, p=frequency / frequency.sum())
    plan = rng.integers(0, 4, count)
    numbers = rng.normal(size=(count, 5))
    score = numbers[:, 0] - numbers[:, 1] * (plan == 2) + rng.normal(0, 1, CATEGORIES)[town]
    stays = score + rng.logistic(0, 0.5, count) > np.quantile(score, 0.8)
    return cut(np.column_stack([numbers, town, plan]), stays.astype(np.float32)[:, None], test)


@functools.cache
def table(count: int = 900, classes: int = 3, test: int = 200, flip: float = 0.02) -> Split:
    """Return twelve features of several clusters to a class."""
    x, y = bundled.make_classification(
        count, 12, n_informative=6, n_classes=classes, flip_y=flip, class_sep=1.5, random_state=41
    )
    return cut((x - x.mean(0)) / x.std(0), y, test)


@functools.cache
def forest_table() -> Split:
    """Return the table; targets to train with are the chances that a random forest sees."""
    split = table()
    forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(split.x, split.y)
    chances = (forest.predict_proba(each) for each in (split.x, split.test_x))
    soft, test = (torch.tensor(each, dtype=torch.float32) for each in chances)
    return Split(split.x, soft, split.test_x, test)


@functools.cache
def communities(seed: int = 43) -> tuple[Any, Any, Any]:
    """Return a normalised adjacency, features and the community of each node of a graph."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, NODES)
    chance = np.where(kind[:, None] == kind, 0.08, 0.01)
    edge = np.triu(rng.random((NODES, NODES)) < chance, 1)
    edge = edge + edge.T + np.eye(NODES)
    root = edge.sum(1) ** -0.5
    features = rng.normal(size=(NODES, 16)) + 0.8 * rng.normal(size=(3, 16))[kind]
    adjacency = torch.tensor(root[:, None] * edge * root, dtype=torch.float32)
    return adjacency, torch.tensor(features, dtype=torch.float32), torch.tensor(kind)


def nodes(known: int = 120) -> Split:
    """Return numbers of nodes and their communities; the rest of the graph is for validation."""
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    kind = communities()[2][order]
    return Split(order[:known], kind[:known], order[known:], kind[known:])
