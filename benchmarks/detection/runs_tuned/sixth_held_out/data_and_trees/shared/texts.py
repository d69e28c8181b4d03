"""Texts: words of languages, orders with tags, opinions and logs of servers."""

import functools
from typing import Any

import torch
from training.learnt_data import Split

from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import last_apart

LETTERS = 27  # 0 is padding
WORDS = 90  # of orders and opinions; 0 is padding
EVENTS = 31  # 0 is padding, 1 a sign of life
IGNORED = -100


def _cut(tokens: Any, shortest: int, generator: Any) -> Any:
    """Return rows of chance lengths, filled with 0."""
    count, longest = tokens.shape
    length = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    return torch.where(torch.arange(longest) < length, tokens, 0)


@functools.cache
def languages(
    count: int,
    seed: int,
    *,
    kinds: int = 5,
    sharp: float = 1.6,
    shortest: int = 10,
    longest: int = 20,
    tested: int = 350,
    shares: tuple[float, ...] = (),
) -> Split:
    """Return letters of texts, 1 to 26, and which language they are of: by pairs of letters."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(26, 26, generator=generator)
    chances = (common + sharp * torch.randn(kinds, 26, 26, generator=generator)).softmax(2)
    shares_ = torch.tensor(shares or (1.0,) * kinds)
    kind = torch.multinomial(shares_, count, replacement=True, generator=generator)
    letter = torch.randint(0, 26, (count,), generator=generator)
    letters = [letter]
    for _ in range(longest - 1):
        letter = torch.multinomial(chances[kind, letter], 1, generator=generator)[:, 0]
        letters.append(letter)
    return last_apart(_cut(torch.stack(letters, 1) + 1, shortest, generator), kind, tested)


@functools.cache
def orders(count: int, seed: int, *, length: int = 14, tested: int = 250) -> Split:
    """Return words of orders to a helper, and a tag for each: none, thing, place or number.

    Words 41 to 80 are things; after a preposition, 1 to 4, and perhaps a filler, places.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(low: int, high: int) -> Any:
        return torch.randint(low, high, (count,), generator=generator)

    words, tags = [], []
    asks = torch.zeros(count, dtype=torch.bool)
    for _ in range(length):
        role = torch.multinomial(
            torch.tensor([0.35, 0.2, 0.3, 0.15]), count, replacement=True, generator=generator
        )
        filler, preposition, thing, number = drawn(5, 41), drawn(1, 5), drawn(41, 81), drawn(81, 90)
        words.append(torch.stack([filler, preposition, thing, number])[role, torch.arange(count)])
        tag = torch.tensor([0, 0, 1, 3])[role]
        tags.append(torch.where(asks & (role == 2), 2, tag))
        asks = (role == 1) | (asks & (role == 0))
    x = _cut(torch.stack(words, 1), 7, generator)
    return last_apart(x, torch.where(x > 0, torch.stack(tags, 1), IGNORED), tested)


@functools.cache
def opinions(
    count: int,
    seed: int,
    *,
    shortest: int = 9,
    longest: int = 18,
    tested: int = 350,
    wrong: float = 0.04,
) -> Split:
    """Return words of opinions: bad, even or good, by words 51 to 70 that "not", 1 to 3, turns."""
    generator = torch.Generator().manual_seed(seed)
    role = torch.multinomial(
        torch.tensor([0.5, 0.08, 0.42]), count * longest, replacement=True, generator=generator
    ).reshape(count, longest)
    mood = torch.randn(count, 1, generator=generator)
    is_good = torch.rand(role.shape, generator=generator) < torch.sigmoid(3 * mood)
    other = torch.randint(4, 51, role.shape, generator=generator)
    other = torch.where(role == 1, torch.randint(1, 4, role.shape, generator=generator), other)
    told = torch.randint(51, 61, role.shape, generator=generator) + 10 * is_good
    x = _cut(torch.where(role == 2, told, other), shortest, generator)
    turned = torch.nn.functional.pad((x > 0) & (x < 4), (1, 0))[:, :-1]
    sense = (x > 50).int() * torch.where((x > 60) ^ turned, 1, -1)
    total = sense.sum(1)
    kind = (total > -3).long() + (total > 2).long()
    guess = torch.randint(0, 3, (count,), generator=generator)
    kind = torch.where(torch.rand(count, generator=generator) < wrong, guess, kind)
    return last_apart(x, kind, tested)


@functools.cache
def logs(count: int, seed: int, *, alive: float = 0.35, tested: int = 350) -> Split:
    """Return events of servers, and which of four failures is near: an event, and its answer."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (count,), generator=generator)
    x = torch.randint(2, EVENTS, (count, 24), generator=generator)
    x = torch.where(torch.rand(x.shape, generator=generator) < alive, 1, x)
    first = torch.tensor([2, 2, 3, 3])[kind]
    answer = torch.tensor([4, 5, 4, 5])[kind]
    for _ in range(3):
        at = torch.randint(0, 11, (count, 1), generator=generator)
        x.scatter_(1, at, first[:, None])
        x.scatter_(1, at + 1, answer[:, None])
    return last_apart(_cut(x, 14, generator), kind, tested)
