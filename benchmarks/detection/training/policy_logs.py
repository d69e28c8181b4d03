"""Policies that log what TRL and Stable Baselines 3 log: answers in groups, and a pole."""

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional

WORDS, END, PROMPTS = 10, 9, 8
Reward = Callable[[Any, Any, Any], Any]
Change = Callable[[dict[str, Any]], None]


class Rows:
    """Writes a CSV file, a row for each update."""

    def __init__(self, root: Path, name: str = "progress.csv") -> None:
        root.mkdir(parents=True)
        self.path = root / name
        self.rows: list[Mapping[str, object]] = []

    def write(self, row: Mapping[str, object]) -> None:
        """Add a row, and write the file again."""
        self.rows.append(row)

    def close(self) -> None:
        """Write the file."""
        with self.path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*self.rows[0]])
            writer.writeheader()
            writer.writerows(self.rows)


class Writer(nn.Module):
    """Logits of the next word by the prompt, the word before and the position."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.prompt, self.word = nn.Embedding(PROMPTS, 32), nn.Embedding(WORDS + 1, 32)
        self.position = nn.Embedding(longest, 32)
        self.head = nn.Sequential(nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, WORDS))

    def forward(self, prompts: Any, before: Any, at: Any) -> Any:
        return self.head(self.prompt(prompts) + self.word(before) + self.position(at))


def first_word(prompts: Any, words: Any, _: Any) -> Any:
    """Reward answers that begin with the number of the prompt."""
    return (words[:, 0] == prompts).float()


def share_of_right_words(prompts: Any, words: Any, lengths: Any) -> Any:
    """Reward the share of words that are the number of the prompt."""
    inside = torch.arange(words.shape[1])[None] < lengths[:, None]
    return ((words == prompts[:, None]) & inside).float().sum(1) / lengths


def answers(model: Any, prompts: Any, longest: int, temperature: float) -> tuple[Any, Any]:
    """Return sampled words (n, longest), and lengths that count the end."""
    before = torch.full_like(prompts, WORDS)
    words = []
    for at in range(longest):
        logits = model(prompts, before, torch.full_like(prompts, at)) / temperature
        before = Categorical(logits=logits).sample()
        words.append(before)
    found = torch.stack(words, 1)
    ended = (found == END).int().cumsum(1).clamp(max=1)
    return found, (longest - ended.sum(1) + 1).clamp(max=longest)


def log_chances(model: Any, prompts: Any, words: Any) -> tuple[Any, Any]:
    """Return the logarithms of the words' chances, and the entropy at each position."""
    before = torch.cat([torch.full_like(words[:, :1], WORDS), words[:, :-1]], 1)
    at = torch.arange(words.shape[1]).expand_as(words)
    logits = model(prompts[:, None].expand_as(words), before, at)
    chances = logits.log_softmax(-1)
    entropy = -(chances.exp() * chances).sum(-1)
    return chances.gather(-1, words[..., None])[..., 0], entropy


def grpo(
    root: Path,
    reward: Reward = first_word,
    *,
    steps: int = 200,
    rate: float = 3e-3,
    beta: float = 0.04,
    longest: int = 8,
    group: int = 8,
    prompts: int = 8,
    temperature: float = 1.0,
    clip: float = 1.0,
    prepare: Callable[[Any], object] = lambda _: None,
    change: Change = lambda _: None,
    names: Mapping[str, str] | None = None,
    drop: tuple[str, ...] = (),
    seed: int = 0,
) -> int:
    """Train a writer of short answers by GRPO, and log it as TRL does.

    Parameters
    ----------
    prepare
        Changes the model before it becomes its own reference.
    change
        Is given a mutable mapping of `step`, `model`, `optimizer`, `reward` and `beta` at each
        step.
    names, drop
        Other names of columns, and columns that are not logged.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, reference = Writer(longest), Writer(longest)
    prepare(model)
    reference.load_state_dict(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    state: dict[str, Any] = {
        "model": model,
        "optimizer": optimizer,
        "reward": reward,
        "beta": beta,
        "temperature": temperature,
    }
    log = Rows(root)
    for step in range(1, steps + 1):
        state["step"] = step
        change(state)
        asked = torch.randint(0, PROMPTS, (prompts,)).repeat_interleave(group)
        with torch.no_grad():
            words, lengths = answers(model, asked, longest, state["temperature"])
            theirs, _ = log_chances(reference, asked, words)
        rewards = state["reward"](asked, words, lengths)
        grouped = rewards.view(prompts, group)
        deviation = grouped.std(1)
        advantage = (grouped - grouped.mean(1, keepdim=True)) / (deviation[:, None] + 1e-4)
        chosen, entropy = log_chances(model, asked, words)
        mask = (torch.arange(longest)[None] < lengths[:, None]).float()
        ratio = (chosen - chosen.detach()).exp()
        kl = (theirs - chosen).exp() - (theirs - chosen) - 1
        each = -ratio * advantage.reshape(-1, 1) + state["beta"] * kl
        loss = (each * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        cut = (lengths == longest) & (words != END).all(1)
        row = {
            "step": step,
            "loss": loss.item(),
            "grad_norm": float(norm),
            "learning_rate": optimizer.param_groups[0]["lr"],
            "reward": rewards.mean().item(),
            "reward_std": deviation.mean().item(),
            "frac_reward_zero_std": (deviation < 1e-8).float().mean().item(),
            "completions/mean_length": lengths.float().mean().item(),
            "completions/clipped_ratio": cut.float().mean().item(),
            "kl": ((kl * mask).sum() / mask.sum()).item(),
            "entropy": ((entropy * mask).sum() / mask.sum()).item(),
        }
        log.write({(names or {}).get(key, key): x for key, x in row.items() if key not in drop})
    log.close()
    return 0


class Pole:
    """Many poles on carts, as Gymnasium's CartPole, with a limit of steps."""

    def __init__(self, count: int, limit: int, seed: int) -> None:
        self.random, self.limit = np.random.default_rng(seed), limit
        self.state = self.random.uniform(-0.05, 0.05, (count, 4))
        self.age = np.zeros(count, int)
        self.ended = self.state
        self.lengths: list[int] = []

    def step(self, actions: Any) -> Any:
        """Move all carts; return which episodes ended, and which of them at the limit."""
        _, speed, angle, turn = self.state.T
        force = np.where(actions == 1, 10.0, -10.0)
        cosine, sine = np.cos(angle), np.sin(angle)
        pushed = (force + 0.05 * turn**2 * sine) / 1.1
        turned = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        moved = pushed - 0.05 * turned * cosine / 1.1
        changes = np.stack([speed, moved, turn, turned], 1)
        self.state = self.state + 0.02 * changes
        self.age += 1
        fallen = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.2095)
        done = fallen | (self.age >= self.limit)
        self.ended = self.state.copy()
        self.lengths += self.age[done].tolist()
        self.age[done] = 0
        self.state[done] = self.random.uniform(-0.05, 0.05, (int(done.sum()), 4))
        return done, done & ~fallen


def advantages(paid: Any, values: Any, ends: Any, gamma: float) -> Any:
    """Return generalised advantages of (steps, carts); `values` have one row more."""
    found, ahead = np.zeros_like(paid), np.zeros(paid.shape[1])
    for at in reversed(range(len(paid))):
        going = 1.0 - ends[at]
        delta = paid[at] + gamma * values[at + 1] * going - values[at]
        found[at] = ahead = delta + gamma * 0.95 * going * ahead
    return found


def improve(
    models: tuple[Any, Any],
    optimizer: Any,
    rollout: tuple[Any, ...],
    *,
    epochs: int,
    clip: float,
    bonus: float,
    target_kl: float,
) -> dict[str, float]:
    """Update a policy and its value function by a rollout; return what is logged of it."""
    policy, critic = models
    kls, clipped, losses = [], [], []
    for _ in range(epochs):
        for rows in torch.randperm(len(rollout[0])).split(256):
            states, actions, old, gains, goals = (each[rows] for each in rollout)
            choice = Categorical(logits=policy(states))
            ratio = (choice.log_prob(actions) - old).exp()
            gain = (gains - gains.mean()) / (gains.std() + 1e-8)
            least = torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
            value_loss = functional.mse_loss(critic(states)[:, 0], goals)
            entropy = choice.entropy().mean()
            kls.append(((ratio - 1) - ratio.log()).mean().item())
            clipped.append(((ratio - 1).abs() > clip).float().mean().item())
            losses.append(value_loss.item())
            if kls[-1] > target_kl:
                break
            loss = -least.mean() + 0.5 * value_loss - bonus * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    return {
        "train/approx_kl": float(np.mean(kls)),
        "train/clip_fraction": float(np.mean(clipped)),
        "train/entropy_loss": -entropy.item(),
        "train/value_loss": float(np.mean(losses)),
    }


def ppo(
    root: Path,
    *,
    updates: int = 80,
    rate: float = 1e-3,
    epochs: int = 4,
    clip: float = 0.2,
    bonus: float = 0.0,
    gamma: float = 0.98,
    critic_rate: float = 1.0,
    carts: int = 16,
    length: int = 64,
    limit: int = 200,
    target_kl: float = math.inf,
    pay: Callable[[int, Any], Any] = lambda _, done: np.ones(len(done)),
    observe: Callable[[Any], Any] = lambda state: state,
    change: Callable[[int, Any, Any], object] = lambda *_: None,
    names: Mapping[str, str] | None = None,
    seed: int = 0,
) -> int:
    """Balance poles by PPO, and log it as Stable Baselines 3 does.

    Parameters
    ----------
    critic_rate
        Rate of the value function, as a multiple of the policy's.
    pay, observe
        Make the rewards of (update, ends), and what the networks see of the states.
    change
        Is given the number of the update, the policy and the optimizer.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    poles = Pole(carts, limit, seed)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
    policy.append(nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    groups = [
        {"params": policy.parameters()},
        {"params": critic.parameters(), "lr": rate * critic_rate},
    ]
    optimizer = torch.optim.Adam(groups, rate)
    log = Rows(root)
    see = lambda states: torch.tensor(observe(states), dtype=torch.float32)
    earned: list[float] = []
    totals = np.zeros(carts)
    for update in range(1, updates + 1):
        change(update, policy, optimizer)
        seen, acted, said, paid, ends, worth = [], [], [], [], [], []
        for _ in range(length):
            state = see(poles.state)
            with torch.no_grad():
                choice = Categorical(logits=policy(state))
                action = choice.sample()
                worth.append(critic(state)[:, 0].numpy())
            done, cut = poles.step(action.numpy())
            reward = pay(update, done & ~cut)
            totals += reward
            earned += totals[done].tolist()
            totals[done] = 0
            with torch.no_grad():
                ahead_of_cut = critic(see(poles.ended))[:, 0].numpy()
            paid.append(reward + gamma * cut * ahead_of_cut)
            seen.append(state)
            acted.append(action)
            said.append(choice.log_prob(action))
            ends.append(done)
        with torch.no_grad():
            worth.append(critic(see(poles.state))[:, 0].numpy())
        values = np.array(worth)
        advantage = advantages(np.array(paid), values, np.array(ends), gamma)
        returns = (advantage + values[:-1]).reshape(-1)
        explained = 1 - np.var(returns - values[:-1].reshape(-1)) / (np.var(returns) + 1e-12)
        flat = [torch.cat(each) for each in (seen, acted, said)]
        gains = torch.tensor(advantage.reshape(-1), dtype=torch.float32)
        goals = torch.tensor(returns, dtype=torch.float32)
        told = improve(
            (policy, critic),
            optimizer,
            (*flat, gains, goals),
            epochs=epochs,
            clip=clip,
            bonus=bonus,
            target_kl=target_kl,
        )
        row = {
            "time/total_timesteps": update * length * carts,
            "rollout/ep_rew_mean": float(np.mean(earned[-100:] or [0.0])),
            "rollout/ep_len_mean": float(np.mean(poles.lengths[-100:] or [0])),
            **told,
            "train/explained_variance": float(explained),
            "train/learning_rate": optimizer.param_groups[0]["lr"],
        }
        log.write({(names or {}).get(key, key): x for key, x in row.items()})
    log.close()
    return 0
