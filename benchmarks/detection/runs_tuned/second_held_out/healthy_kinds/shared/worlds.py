"""Worlds: small problems of reinforcement learning, many of a kind at a time."""

from typing import Any

import torch
from torch.nn import functional


class Catch:
    """A ball falls through seven rows and five columns; a paddle moves left, right, or not."""

    observed, actions = 17, 3

    def __init__(self, count: int = 16) -> None:
        self.balls = torch.randint(0, 5, (count,))
        self.rows, self.paddles = torch.randint(0, 7, (count,)), torch.randint(0, 5, (count,))

    def observe(self) -> Any:
        sizes = ((self.balls, 5), (self.paddles, 5), (self.rows, 7))
        return torch.cat([functional.one_hot(part, size) for part, size in sizes], 1).float()

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return rewards and which balls are down; others fall then."""
        self.paddles = (self.paddles + actions - 1).clamp(0, 4)
        self.rows = self.rows + 1
        over = self.rows >= 6
        rewards = torch.where(self.paddles == self.balls, 1.0, -1.0) * over
        self.balls = torch.where(over, torch.randint(0, 5, self.balls.shape), self.balls)
        self.rows = torch.where(over, 0, self.rows)
        return rewards, over.float()


class Stock:
    """A store that orders up to four goods a day, pays for those in store, and loses customers."""

    observed, actions = 3, 5

    def __init__(self, count: int = 24) -> None:
        self.store = torch.randint(0, 9, (count,)).float()
        self.season = torch.rand(count) * 6.28

    def observe(self) -> Any:
        return torch.stack([self.store / 4 - 1, self.season.sin(), self.season.cos()], 1)

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return what was earned; a store never ends."""
        full = (self.store + actions).clamp(max=10)
        wanted = torch.poisson(2 + 1.2 * self.season.sin())
        sold = torch.minimum(full, wanted)
        self.store, self.season = full - sold, self.season + 0.3
        earned = sold - 0.3 * actions - 0.15 * self.store - 0.5 * (wanted - sold)
        return 0.5 * earned, torch.zeros_like(earned)


class Corridors:
    """Two corridors of eight places; a sign at the entrance tells where the prize is."""

    observed, actions = 18, 3

    def __init__(self, count: int = 24) -> None:
        self.signs, self.places = torch.randint(0, 2, (count,)), torch.full((count,), 7)
        self.ages = torch.zeros(count)

    def observe(self) -> Any:
        signs, places = functional.one_hot(self.signs, 2), functional.one_hot(self.places, 16)
        return torch.cat([signs, places], 1).float()

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return rewards and which walks are over; those begin anew."""
        slips = torch.rand(len(actions)) < 0.1
        self.places = (self.places + torch.where(slips, 0, actions - 1)).clamp(0, 15)
        self.ages = self.ages + 1
        ends = torch.where(self.signs == 1, 13, 2)
        found = self.places == ends
        over = found | (self.places == 15 - ends) | (self.ages >= 30)
        rewards = found.float() - 0.02
        self.signs = torch.where(over, torch.randint(0, 2, self.signs.shape), self.signs)
        self.places, self.ages = torch.where(over, 7, self.places), torch.where(over, 0, self.ages)
        return rewards, over.float()


class Arms:
    """Twelve arms; what each is worth depends on four numbers, and on luck."""

    observed, actions = 4, 12

    def __init__(self, count: int = 48) -> None:
        self.worth = torch.randn(4, 12, generator=torch.Generator().manual_seed(71))
        self.contexts = torch.randn(count, 4)

    def observe(self) -> Any:
        return self.contexts

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return rewards; each pull is an episode."""
        worth = (self.contexts @ self.worth).gather(1, actions[:, None])[:, 0]
        self.contexts = torch.randn_like(self.contexts)
        return worth + 0.5 * torch.randn_like(worth), torch.ones_like(worth)
