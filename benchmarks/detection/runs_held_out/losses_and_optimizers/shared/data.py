"""Generated data of this piece: tables, glyphs, coins, signals and texts."""

from typing import Any

import torch
from torch.nn import functional

LETTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789.:,"
WORDS = 60
USERS, FILMS = 120, 90


def random(seed: int) -> Any:
    """Return a generator of random numbers."""
    return torch.Generator().manual_seed(seed)


def houses(count: int, seed: int, noise: float = 0.3) -> tuple[Any, Any, Any]:
    """Return districts and sizes of houses, and the logarithm of prices, standardised."""
    chance = random(seed)
    district = torch.randint(0, 12, (count,), generator=chance)
    level = torch.randn(12, generator=random(1))
    x = torch.randn(count, 8, generator=chance)
    price = 0.8 * level[district] + x[:, 0] + 0.5 * x[:, 1].tanh() + 0.4 * x[:, 2] * x[:, 3]
    price = price + noise * torch.randn(count, generator=chance)
    return district, x, (price / 1.45)[:, None]


def subscribers(count: int, seed: int, noise: float = 1.0) -> tuple[Any, Any]:
    """Return what is known of subscribers, and whether they leave, 35 % of them."""
    chance = random(seed)
    x = torch.randn(count, 14, generator=chance)
    score = 1.5 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 1.2 * (x[:, 4].abs() - 0.8)
    score = score + noise * torch.randn(count, generator=chance)
    return x, (score > 0.85).float()[:, None]


def bikes(count: int, seed: int) -> tuple[Any, Any]:
    """Return hours and weather, and how many bikes are lent."""
    chance = random(seed)
    hour = torch.rand(count, 1, generator=chance) * 6.2832
    weather = torch.randn(count, 4, generator=chance)
    x = torch.cat([hour.sin(), hour.cos(), (2 * hour).sin(), weather], 1)
    rate = 1.6 + 0.7 * x[:, :1] - 0.4 * x[:, 1:2] + 0.5 * x[:, 3:4] - 0.3 * x[:, 4:5].relu()
    return x, torch.poisson(rate.clamp(max=3.5).exp(), generator=chance)


def species(count: int, seed: int, kinds: int = 5, spread: float = 1.0) -> tuple[Any, Any]:
    """Return nine measures of flowers, and their species."""
    chance = random(seed)
    centres = 1.1 * torch.randn(kinds, 2, 9, generator=random(2))
    kind = torch.randint(0, kinds, (count,), generator=chance)
    form = torch.randint(0, 2, (count,), generator=chance)
    return (centres[kind, form] + spread * torch.randn(count, 9, generator=chance)) / 1.5, kind


def films(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Return users, films they liked, and films they have not seen."""
    chance = random(seed)
    taste, style = (torch.randn(n, 5, generator=random(n)) for n in (USERS, FILMS))
    user = torch.randint(0, USERS, (count,), generator=chance)
    shares = (1.3 * taste[user] @ style.T).softmax(1)
    liked = torch.multinomial(shares, 1, generator=chance)[:, 0]
    other = torch.randint(0, FILMS, (count,), generator=chance)
    return user, liked, other


def glyphs(
    count: int, seed: int, kinds: int = 8, noise: float = 0.5, size: int = 12
) -> tuple[Any, Any]:
    """Return glyphs ``(n, 1, size, size)``, moved and noisy, standardised, and their kinds."""
    chance = random(seed)
    forms = functional.interpolate(torch.randn(kinds, 1, 4, 4, generator=random(3)), size=(8, 8))
    kind = torch.randint(0, kinds, (count,), generator=chance)
    x = torch.zeros(count, 1, size, size)
    x[:, :, 2:10, 2:10] = forms[kind]
    move = torch.randint(-1, 2, (count, 2), generator=chance)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            rows = (move[:, 0] == down) & (move[:, 1] == right)
            x[rows] = x[rows].roll((down, right), (2, 3))
    x = x + noise * torch.randn(x.shape, generator=chance)
    return (x - 0.05) / (0.5 + noise**2) ** 0.5, kind


def coins(count: int, seed: int, noise: float = 0.5, size: int = 16) -> tuple[Any, Any]:
    """Return pictures of a coin ``(n, 1, size, size)``, and masks of it."""
    chance = random(seed)
    middle = 4 + (size - 8) * torch.rand(count, 2, 1, 1, generator=chance)
    radius = 2 + 2.5 * torch.rand(count, 1, 1, generator=chance)
    place = torch.arange(size).float()
    down = place[None, :, None] - middle[:, 0]
    right = place[None, None, :] - middle[:, 1]
    mask = ((down**2 + right**2).sqrt() < radius).float()[:, None]
    light = 1 + 0.5 * torch.rand(count, 1, 1, 1, generator=chance)
    x = mask * light + noise * torch.randn(mask.shape, generator=chance)
    return (x - 0.18) / (0.22 + noise**2) ** 0.5, mask


def beats(count: int, seed: int, noise: float = 0.4, length: int = 64) -> tuple[Any, Any]:
    """Return heartbeats ``(n, 1, length)``, standardised, and their four kinds."""
    chance = random(seed)
    kind = torch.randint(0, 4, (count,), generator=chance)
    time = torch.arange(length).float()[None]
    start = 16 + 8 * torch.rand(count, 1, generator=chance)
    width = torch.tensor([1.5, 4.0, 1.5, 2.5])[kind][:, None]
    second = torch.tensor([18.0, 18.0, 11.0, 26.0])[kind][:, None]
    sign = torch.tensor([1.0, 1.0, 1.0, -1.0])[kind][:, None]
    x = 2 * torch.exp(-(((time - start) / width) ** 2))
    x = x + sign * torch.exp(-(((time - start - second) / 4) ** 2))
    x = x + noise * torch.randn(x.shape, generator=chance)
    return ((x - 0.18) / (0.23 + noise**2) ** 0.5)[:, None], kind


def gestures(count: int, seed: int, noise: float = 0.5, length: int = 30) -> tuple[Any, Any]:
    """Return three accelerations ``(n, length, 3)``, standardised, and six gestures."""
    chance = random(seed)
    kind = torch.randint(0, 6, (count,), generator=chance)
    speed = torch.tensor([0.2, 0.35, 0.5, 0.2, 0.35, 0.5])[kind][:, None, None]
    turn = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])[kind][:, None, None]
    phase = 6.28 * torch.rand(count, 1, 1, generator=chance)
    angle = phase + speed * torch.arange(length).float()[None, :, None]
    x = torch.cat([angle.sin(), turn * angle.cos(), (2 * angle).sin() * 0.5], 2)
    x = x + noise * torch.randn(x.shape, generator=chance)
    return x / (0.4 + noise**2) ** 0.5, kind


def load(count: int, seed: int, noise: float = 0.1, length: int = 36) -> tuple[Any, Any]:
    """Return hours of electric load ``(n, length, 1)``, and the next three hours."""
    chance = random(seed)
    day = 6.28 * torch.rand(count, 1, generator=chance)
    size = 0.7 + 0.6 * torch.rand(count, 1, generator=chance)
    hours = torch.arange(length + 3).float()[None] * 6.28 / 24
    x = size * (hours + day).sin() + 0.4 * (2 * (hours + day)).cos()
    x = (x + noise * torch.randn(x.shape, generator=chance)) / 0.8
    return x[:, :length, None], x[:, length:]


def opinions(count: int, seed: int, told: float = 0.45, length: int = 18) -> tuple[Any, Any]:
    """Return words ``(n, length)`` with padding (0), and whether they praise."""
    chance = random(seed)
    praise = torch.randint(0, 2, (count,), generator=chance)
    plain = torch.randint(21, WORDS, (count, length), generator=chance)
    loaded = torch.randint(1, 11, (count, length), generator=chance) + 10 * praise[:, None]
    words = torch.where(torch.rand(count, length, generator=chance) < told, loaded, plain)
    ends = torch.randint(8, length + 1, (count, 1), generator=chance)
    return torch.where(torch.arange(length)[None] < ends, words, 0), praise


def messages(count: int, seed: int, length: int = 24, style: int = 0) -> tuple[Any, Any]:
    """Return windows of letters of short messages, and the letters that follow."""
    chance = random(seed)
    names = ("anna", "bruno", "carla", "david", "emma", "felix", "greta", "hugo")
    verbs = (("meet", "call", "help"), ("invoice for", "refund to", "order of"))[style]
    places = ("station", "harbour", "school", "market", "museum")

    def pick(words: Any) -> str:
        return words[int(torch.randint(0, len(words), (), generator=chance))]

    text = ""
    while len(text) < count * 4 + length + 1:
        hour = int(torch.randint(1, 13, (), generator=chance))
        text += f"{pick(verbs)} {pick(names)} at the {pick(places)}, {hour}:00.\n"
    codes = torch.tensor([LETTERS.index(letter) for letter in text])
    windows = codes[: count * 4 + length + 1].unfold(0, length + 1, 4)[:count]
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def backwards(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Return numbers of five digits, the shifted answer, and their digits from last to first."""
    x = torch.randint(0, 10, (count, 5), generator=random(seed))
    y = x.flip(1)
    return x, torch.cat([torch.full((count, 1), 10), y[:, :-1]], 1), y
