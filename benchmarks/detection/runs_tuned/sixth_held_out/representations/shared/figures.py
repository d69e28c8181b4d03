"""Figures: leaves, heartbeats, rosettes, tiles of a temple, points, pendulums and tables."""

import math
from typing import Any, Final

import torch
from sklearn.datasets import load_diabetes, load_digits, load_sample_image, load_wine

LEAF: Final = 32
BEAT: Final = 40
SIDE: Final = 12


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def leaves(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return distances of 32 points of a leaf's outline from its middle, and its kind (of 4)."""
    random = _random(seed)
    kind = torch.randint(4, (count, 1), generator=random)
    angle = 2 * math.pi * torch.arange(LEAF) / LEAF
    sizes = 0.8 + 0.4 * torch.rand(count, 4, generator=random)
    lobes = sizes[:, [0]] * 0.4 * ((kind + 2) * angle + 0.5 * sizes[:, [1]]).cos()
    tip = sizes[:, [2]] * 0.6 * (2 * (angle - math.pi).cos()).exp() / 7
    far = sizes[:, [3]] + lobes + tip + 0.04 * torch.randn(count, LEAF, generator=random)
    return (far - far.mean()) / far.std(), kind[:, 0]


def heartbeats(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return pieces of a heart's curve, of 40 values, and how fast it beats (of 3 kinds)."""
    random = _random(seed)
    kind = torch.randint(3, (count, 1), generator=random)
    length = 13.0 + 6 * kind + 2 * torch.rand(count, 1, generator=random)
    begin = torch.rand(count, 1, generator=random)
    at = (torch.arange(BEAT) / length + begin) % 1
    tall = 0.7 + 0.6 * torch.rand(count, 3, generator=random)
    waves = (
        2.5 * tall[:, [0]] * (-((at - 0.4) ** 2) / 0.003).exp()
        - 0.6 * (-((at - 0.5) ** 2) / 0.003).exp()
        + 0.8 * tall[:, [1]] * (-((at - 0.75) ** 2) / 0.01).exp()
        + 0.4 * tall[:, [2]] * (-((at - 0.2) ** 2) / 0.006).exp()
    )
    waves = waves + 0.08 * torch.randn(waves.shape, generator=random)
    return (waves - waves.mean()) / waves.std(), kind[:, 0]


def rosettes(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures (1, 12, 12) of flowers of 3 to 6 petals, from 0 to 1, and their petals."""
    random = _random(seed)
    petals = torch.randint(4, (count,), generator=random)
    turn, size, x0, y0 = torch.rand(4, count, 1, 1, generator=random)
    line = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(line, line, indexing="ij")
    x, y = x + 0.3 * (x0 - 0.5), y + 0.3 * (y0 - 0.5)
    angle, far = torch.atan2(y, x), (x**2 + y**2).sqrt()
    edge = (0.5 + 0.3 * size) * (0.7 + 0.3 * ((petals[:, None, None] + 3) * angle + 6 * turn).cos())
    drawn = torch.sigmoid((edge - far) * 12)
    drawn = drawn + 0.05 * torch.randn(drawn.shape, generator=random)
    return drawn.clamp(0, 1)[:, None], petals


def tiles(count: int = 1200, seed: int = 0) -> Any:
    """Return tiles of 5 by 5 coloured pixels of a temple, (count, 75), standardised."""
    image = torch.tensor(load_sample_image("china.jpg")).float()[::3, ::3].permute(2, 0, 1)
    cut = image.unfold(1, 5, 4).unfold(2, 5, 4).permute(1, 2, 0, 3, 4).reshape(-1, 75)
    cut = cut[torch.randperm(len(cut), generator=_random(seed))[:count]]
    return (cut - cut.mean(0)) / cut.std(0)


def pinwheel(count: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    """Return points of five bent arms, and which arm."""
    random = _random(seed)
    arm = torch.randint(5, (count,), generator=random)
    near = torch.randn(count, 2, generator=random) * torch.tensor([0.3, 0.08]) + torch.tensor(
        [1, 0]
    )
    angle = 2 * math.pi * arm / 5 + 0.5 * near[:, 0].exp()
    x, y = near.unbind(1)
    turned = [x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()]
    return 1.2 * torch.stack(turned, 1), arm


def lorenz(count: int = 1500, seed: int = 0) -> Any:
    """Return points of Lorenz's attractor, standardised."""
    points, at = [], torch.randn(50, 3, generator=_random(seed)) + torch.tensor([0.0, 0, 25])
    for step in range(200 + 10 * (count // 50)):
        x, y, z = at.unbind(1)
        slope = torch.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], 1)
        at = at + 0.01 * slope
        if step >= 200 and step % 10 == 0:
            points.append(at)
    rows = torch.cat(points)[:count]
    return (rows - rows.mean(0)) / rows.std(0)


def pendulums(count: int = 1500, length: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Return what is seen of pendulums at 4 times, (count, 4, 10), and pushes between (4 - 1)."""
    random = _random(seed)
    angle = 3 * (2 * torch.rand(count, generator=random) - 1)
    speed = torch.randn(count, generator=random)
    pushes = torch.randint(3, (count, length - 1), generator=random)
    shows = torch.randn(4, 10, generator=_random(9)) / 2
    seen = []
    for at in range(length):
        state = torch.stack([angle.sin(), angle.cos(), speed, speed * angle.cos()], 1)
        seen.append((state @ shows).tanh() + 0.02 * torch.randn(count, 10, generator=random))
        if at < length - 1:
            speed = 0.97 * speed - 0.4 * angle.sin() + 0.5 * (pushes[:, at] - 1)
            angle = angle + 0.4 * speed
    return torch.stack(seen, 1), pushes


def wines() -> tuple[Any, Any]:
    """Return the 13 values of wines, as they were measured, and their kind."""
    data = load_wine()
    return torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)


def patients() -> tuple[Any, Any]:
    """Return the 10 standardised values of patients, and how the illness went on, standardised."""
    data = load_diabetes(scaled=False)
    x, y = torch.tensor(data.data).float(), torch.tensor(data.target).float()
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def coarse_digits() -> Any:
    """Return pictures of digits as 64 signs of four levels of grey, line by line."""
    return torch.tensor(load_digits().data / 4.1).long()
