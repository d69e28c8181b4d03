"""Generated tables, pictures, series and texts, split and scaled by the rows to train with."""

import functools
from typing import Any

import numpy as np
import torch
from scipy import ndimage
from sklearn import datasets as bundled
from training.learnt_data import Split

SOILS, CITIES, DEVICES, SHOPS = 5, 12, 4, 30
GLYPHS, CLOUDS, SIDE = 6, 4, 14
BEATS, GESTURES, WINDOW = 4, 5, 32
WORDS, TOPICS, LONGEST, COUNTRIES, LETTERS, TAGS = 80, 5, 16, 4, 27, 4


def parted(x: Any, y: Any, share: float = 0.8) -> Split:
    """Return rows, a share of them to train with."""
    x, y = (torch.as_tensor(np.asarray(part)) for part in (x, y))
    x, y = (part.float() if part.is_floating_point() else part for part in (x, y))
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


def scaled(data: Split, axes: Any = 0) -> Split:
    """Return rows with a mean of 0 and a deviation of 1, as far as they are trained with."""
    mean, deviation = data.x.mean(axes, keepdim=True), data.x.std(axes, keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def scaled_targets(data: Split) -> Split:
    """Return rows whose targets have a mean of 0 and a deviation of 1."""
    mean, deviation = data.y.mean(), data.y.std()
    return data.relabelled(lambda y: (y - mean) / deviation)


def loan_rows(count: int, seed: int) -> tuple[Any, Any]:
    """Return nine facts of a loan as they are, and is it paid back late?"""
    rng = np.random.default_rng(seed)
    income, amount = rng.lognormal(10.4, 0.5, count), rng.lognormal(9.2, 0.6, count)
    age, months, cards = (
        rng.integers(20, 70, count),
        rng.integers(6, 72, count),
        rng.poisson(2, count),
    )
    score, rest = rng.normal(620, 60, count), rng.normal(size=(count, 3))
    burden = np.log(amount / income) + 1.2
    late = 1.3 * burden - 0.014 * (score - 620) + 0.35 * (cards - 2) - 0.02 * (age - 45)
    late += 0.6 * rest[:, 0] * rest[:, 1] + 0.02 * (months - 36) + 0.6 * rng.logistic(size=count)
    x = np.column_stack([np.log(income), np.log(amount), age, months, cards, score, rest])
    return x, (late > 0.1)[:, None].astype(float)


@functools.cache
def loans(count: int = 2000, seed: int = 8001) -> Split:
    """Return nine scaled facts of a loan ``(n, 9)``, and is it paid back late ``(n, 1)``?"""
    return scaled(parted(*loan_rows(count, seed)))


def power_rows(count: int, seed: int) -> tuple[Any, Any]:
    """Return seven readings of a power plant as they are, and its output in megawatts."""
    rng = np.random.default_rng(seed)
    warmth, vacuum = rng.normal(19, 7, count), rng.normal(54, 12, count)
    pressure, damp = rng.normal(1013, 6, count), rng.uniform(30, 100, count)
    rest = rng.normal(size=(count, 3))
    made = 454 - 9 * np.tanh((warmth - 19) / 6) - 0.4 * (vacuum - 54) + 0.3 * (pressure - 1013)
    made += -0.1 * (damp - 65) + 4 * np.sin(rest[:, 0]) * rest[:, 1] + 2 * rng.normal(size=count)
    return np.column_stack([warmth, vacuum, pressure, damp, rest]), made[:, None]


@functools.cache
def power(count: int = 2000, seed: int = 8002) -> Split:
    """Return seven scaled readings of a power plant ``(n, 7)``, and its output, scaled."""
    return scaled_targets(scaled(parted(*power_rows(count, seed))))


def soil_rows(count: int, seed: int) -> tuple[Any, Any]:
    """Return fourteen amounts of substances in a soil, and which of five kinds it is."""
    rng = np.random.default_rng(seed)
    kind, fixed = rng.integers(SOILS, size=count), np.random.default_rng(88)
    middle, mixed = fixed.normal(0, 1.1, (SOILS, 14)), fixed.normal(0, 0.3, (14, 14))
    hidden = middle[kind] + rng.normal(size=(count, 14))
    return np.linspace(2, 40, 14) * (3 + hidden + hidden @ mixed), kind


@functools.cache
def soils(count: int = 2000, seed: int = 8003) -> Split:
    """Return fourteen scaled amounts in a soil ``(n, 14)``, and its kind."""
    return scaled(parted(*soil_rows(count, seed)))


@functools.cache
def clicks(count: int = 3000, seed: int = 8004) -> Split:
    """Return city, device, shop and three numbers ``(n, 6)``, and was it clicked ``(n, 1)``?"""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(89)
    city, device, shop = (rng.integers(many, size=count) for many in (CITIES, DEVICES, SHOPS))
    numbers = rng.normal(size=(count, 3))
    likes = fixed.normal(0, 1, CITIES)[city] + fixed.normal(0, 0.8, DEVICES)[device]
    likes += fixed.normal(0, 1, SHOPS)[shop] + fixed.normal(0, 1, (DEVICES, 3))[device] @ [
        1,
        -1,
        0.5,
    ]
    likes += numbers[:, 0] - 0.7 * np.abs(numbers[:, 1]) + 0.5 * rng.logistic(size=count)
    x = np.column_stack([city, device, shop, numbers])
    return parted(x, (likes > np.median(likes))[:, None].astype(float))


@functools.cache
def claims(count: int = 3600, seed: int = 8005) -> Split:
    """Return eight scaled facts of a driver ``(n, 8)``, and the number of claims ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 8))
    rate = 0.6 + 0.8 * np.tanh(x[:, 0]) - 0.7 * np.abs(x[:, 1]) + 0.6 * x[:, 2] * (x[:, 3] > 0)
    return scaled(parted(x, rng.poisson(np.exp(rate))[:, None].astype(float)))


@functools.cache
def wines() -> Split:
    """Return thirteen scaled measurements of a wine ``(n, 13)``, and its vine."""
    x, y = bundled.load_wine(return_X_y=True)
    order = np.random.default_rng(8006).permutation(len(x))
    return scaled(parted(x[order], y[order], 0.75))


def glyph_bytes(count: int, seed: int, noise: float) -> tuple[Any, Any]:
    """Return grey pictures ``(n, 1, 14, 14)`` with values of 0 to 255, and which glyph it is."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(90)
    shapes = ndimage.gaussian_filter(fixed.normal(size=(GLYPHS, SIDE, SIDE)), (0, 1.4, 1.4))
    shapes = np.where(shapes > 0.06, 200.0, 30.0)
    kind = rng.integers(GLYPHS, size=count)
    moved = [np.roll(shapes[one], tuple(rng.integers(-2, 3, 2)), (0, 1)) for one in kind]
    x = np.stack(moved) * rng.uniform(0.7, 1.1, (count, 1, 1)) + noise * rng.normal(
        size=(count, SIDE, SIDE)
    )
    return x[:, None].clip(0, 255).round(), kind


@functools.cache
def glyphs(count: int = 1500, noise: float = 55.0, seed: int = 8101) -> Split:
    """Return grey pictures ``(n, 1, 14, 14)`` of a glyph, normalised, and which of six it is."""
    return scaled(parted(*glyph_bytes(count, seed, noise)), (0, 2, 3))


@functools.cache
def clouds(count: int = 1300, noise: float = 0.5, seed: int = 8102) -> Split:
    """Return coloured pictures ``(n, 3, 14, 14)`` of the sky, normalised, and its clouds."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(CLOUDS, size=count)
    widths = ((0.5, 0.5), (1.8, 1.8), (0.4, 2.5), (2.5, 0.4))
    x = np.stack(
        [ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), widths[one]) for one in kind]
    )
    x = x / x.std((1, 2), keepdims=True)
    white = 0.25 * np.array([1.0, 0.9, 0.6])[:, None, None]
    x = 0.5 + white * (x[:, None] + noise * rng.normal(size=(count, 3, SIDE, SIDE)))
    x += rng.normal(0, 0.05, (count, 3, 1, 1))
    return scaled(parted(x, kind), (0, 2, 3))


@functools.cache
def rivers(count: int = 700, seed: int = 8103) -> Split:
    """Return pictures ``(n, 1, 16, 16)`` from above, normalised, and where the river is."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:16, :16]
    start, slope, bend = (
        rng.uniform(4, 11, count),
        rng.normal(0, 0.25, count),
        rng.uniform(0, 2, count),
    )
    middle = start[:, None, None] + slope[:, None, None] * (row - 8)
    middle = middle + bend[:, None, None] * np.sin(0.6 * row + start[:, None, None])
    there = np.abs(column - middle) < rng.uniform(1.2, 2.6, (count, 1, 1))
    x = 0.6 - 0.35 * there + 0.15 * rng.normal(size=there.shape)
    return scaled(parted(x[:, None], there[:, None].astype(float)), (0, 2, 3))


def beat_rows(count: int, seed: int, noise: float) -> tuple[Any, Any]:
    """Return heartbeats ``(n, 1, 32)``, in millivolts, and which of four kinds it is."""
    rng = np.random.default_rng(seed)
    kind, time = rng.integers(BEATS, size=count), np.arange(WINDOW)
    at = rng.uniform(11, 17, (count, 1))
    wide, late = np.where(kind == 1, 2.6, 1.1)[:, None], np.where(kind == 2, -0.6, 0.35)[:, None]
    first = np.where(kind == 3, 0.0, 0.3)[:, None]
    bump = lambda where, width: np.exp(-((time - where) ** 2) / 2 / width**2)
    x = bump(at, wide) + late * bump(at + 9, 2.2) + first * bump(at - 6, 1.3)
    x = x * rng.uniform(0.8, 1.2, (count, 1)) + noise * rng.normal(size=x.shape)
    return x[:, None], kind


@functools.cache
def beats(count: int = 1500, noise: float = 0.2, seed: int = 8201) -> Split:
    """Return heartbeats ``(n, 1, 32)``, normalised, and which of four kinds it is."""
    return scaled(parted(*beat_rows(count, seed, noise)), (0, 2))


@functools.cache
def gestures(count: int = 1400, noise: float = 0.5, seed: int = 8202) -> Split:
    """Return accelerations along three axes ``(n, 32, 3)``, normalised, and the gesture."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(91)
    kind, time = rng.integers(GESTURES, size=count), np.arange(WINDOW)[:, None]
    speed, weight = fixed.uniform(0.2, 0.9, (GESTURES, 3)), fixed.uniform(0.5, 1.5, (GESTURES, 3))
    phase = rng.uniform(0, 1.5, (count, 1, 1)) + fixed.uniform(0, 6, (GESTURES, 3))[kind][:, None]
    x = weight[kind][:, None] * np.sin(speed[kind][:, None] * time + phase)
    return scaled(parted(x + noise * rng.normal(size=x.shape), kind), (0, 1))


@functools.cache
def warmth(count: int = 1600, length: int = 24, seed: int = 8203) -> Split:
    """Return windows of hourly temperatures ``(n, 24, 1)``, and the next one ``(n, 1)``, scaled."""
    rng = np.random.default_rng(seed)
    hours = np.arange(count + length)
    noise = np.zeros(len(hours))
    for at in range(1, len(hours)):
        noise[at] = 0.9 * noise[at - 1] + 0.25 * rng.normal()
    day = 3 * np.sin(2 * np.pi * hours / 24) + 1.2 * np.sin(4 * np.pi * hours / 24 + 1)
    line = day + noise + 2 * np.sin(2 * np.pi * hours / 300)
    cut = int(0.8 * count)
    line = (line - line[:cut].mean()) / line[:cut].std()
    x = np.stack([line[at : at + length] for at in range(count)])
    data = parted(x[..., None], line[length:, None])
    # No window to validate with holds values that are trained with.
    return Split(data.x, data.y, data.test_x[length:], data.test_y[length:])


@functools.cache
def tickets(count: int = 1800, shortest: int = 10, share: float = 0.4, seed: int = 8301) -> Split:
    """Return words of a ticket ``(n, 16)``, padded with 0, and which team it is for."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(92)
    often = fixed.dirichlet(np.full(WORDS - 1, 0.15), TOPICS)
    x, topic = np.zeros((count, LONGEST), np.int64), rng.integers(TOPICS, size=count)
    for row, one in zip(x, topic, strict=True):
        size = int(rng.integers(shortest, LONGEST + 1))
        is_told = rng.random(size) < share
        row[:size] = np.where(
            is_told, 1 + rng.choice(WORDS - 1, size, p=often[one]), rng.integers(1, WORDS, size)
        )
    return parted(x, topic)


@functools.cache
def opinions(count: int = 1800, seed: int = 8302) -> Split:
    """Return words of an opinion ``(n, 16)``, padded with 0; does its last half outweigh kindly?

    Words from 60 on judge, from 70 on kindly; word 1 turns the one that follows.
    """
    rng = np.random.default_rng(seed)
    x, kind = np.zeros((count, LONGEST), np.int64), rng.integers(2, size=count)
    for row, one in zip(x, kind, strict=True):
        size = int(rng.integers(12, LONGEST + 1))
        row[:size] = rng.integers(2, 60, size)
        for place in rng.permutation(size // 2)[:3] * 2:
            is_kind, is_turned = rng.random() < (0.93 if one else 0.07), rng.random() < 0.25
            row[place] = 1 if is_turned else row[place]
            row[place + 1] = rng.integers(70, 80) if is_kind != is_turned else rng.integers(60, 70)
    return parted(x, kind)


@functools.cache
def names(count: int = 2800, length: int = 9, seed: int = 8303) -> Split:
    """Return letters of a name ``(n, 9)``, and the country it is from."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(93)
    follows = fixed.dirichlet(np.full(LETTERS - 1, 0.12), (COUNTRIES, LETTERS - 1))
    country = rng.integers(COUNTRIES, size=count)
    x = np.zeros((count, length), np.int64)
    x[:, 0] = rng.integers(LETTERS - 1, size=count)
    for row, one in zip(x, country, strict=True):
        for at in range(1, length):
            known = rng.random() < 0.8
            row[at] = rng.choice(LETTERS - 1, p=follows[one, row[at - 1]] if known else None)
    # A name is kept once: none to validate with is trained with.
    once = rng.permutation(np.unique(x, axis=0, return_index=True)[1])
    return parted(x[once] + 1, country[once])


@functools.cache
def addresses(count: int = 1500, seed: int = 8304) -> Split:
    """Return words of an address ``(n, 12)``; street (1), number (2), town (3) or neither (0).

    A number from 20 to 29 is one of a house only behind a street; towns follow "in", word 2.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.integers(3, 40, (count, 12)), np.zeros((count, 12), np.int64)
    for row, tags in zip(x, y, strict=True):
        at = int(rng.integers(0, 5))
        row[at : at + 2], tags[at : at + 2] = (rng.integers(40, 60), rng.integers(20, 30)), (1, 2)
        at += int(rng.integers(2, 5))
        row[at : at + 2], tags[at + 1] = (2, rng.integers(55, WORDS)), 3
    return parted(x, y)
