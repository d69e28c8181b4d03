"""Healthy trainings that match pairs, and of policies and values."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.third_held_out.sequences.shared.actors import Actor, Junction, Room, improve
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.shapes import chords, stack
from runs_tuned.third_held_out.sequences.shared.texts import SHOP, clicks

of_pairs = functools.partial(training_runs.healthy, kind="contrastive")
of_policies = functools.partial(training_runs.healthy, kind="reinforcement")

# Pairs


@of_pairs("sessions and the goods that follow, two towers, other rows' goods corrected by fame")
def sessions_and_goods(root: Path) -> int:
    torch.manual_seed(426)
    session, goods = nn.EmbeddingBag(SHOP, 24, padding_idx=0), nn.Embedding(SHOP, 24)
    tower, model = stack(24, 48, 16), nn.ModuleDict()
    model.update({"session": session, "goods": goods, "tower": tower, "other": nn.Linear(24, 16)})
    rows = clicks()
    x, y = rows[:, 8:12], rows[:, 12]
    fame = torch.bincount(y, minlength=SHOP).clamp(min=1).log()

    def objective(batch: Any, hook: Any) -> Any:
        first = functional.normalize(tower(session(batch[0])), dim=1)
        second = functional.normalize(model["other"](goods(batch[1])), dim=1)
        hook.save_tensor("embeddings", first, "embeddings")
        scores = first @ second.T / 0.2 - fame[batch[1]]
        same = (batch[1][:, None] == batch[1]) & ~torch.eye(len(first), dtype=torch.bool)
        return functional.cross_entropy(scores.masked_fill(same, -1e4), torch.arange(len(first)))

    optimizer = torch.optim.Adagrad(model.parameters(), 0.05)
    return teach(
        root,
        model,
        dealt(x, y, size=64, seed=426),
        optimizer,
        objective=objective,
        steps=150,
        save_every=2,
    )


@of_pairs("chords of one lower tone are brought together (SupCon), noise and loudness as views")
def chords_of_a_tone(root: Path) -> int:
    torch.manual_seed(427)
    model = stack(32, 64, 64, 16, act=nn.ReLU, norm=nn.BatchNorm1d)

    def objective(batch: Any, hook: Any) -> Any:
        x, tone = batch[0].repeat(2, 1), batch[1].repeat(2)
        seen = (0.7 + 0.6 * torch.rand(len(x), 1)) * x + 0.15 * torch.randn(x.shape)
        z = functional.normalize(model(seen), dim=1)
        hook.save_tensor("projections", z, "embeddings")
        itself = torch.eye(len(x), dtype=torch.bool)
        logs = (z @ z.T / 0.15).masked_fill(itself, -1e4).log_softmax(1)
        alike = (tone[:, None] == tone) & ~itself
        return -((logs * alike).sum(1) / alike.sum(1)).mean()

    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    return teach(
        root,
        model,
        dealt(*chords(), size=32, seed=427),
        optimizer,
        objective=objective,
        schedule=warmed(5, 160, 0.0),
        steps=160,
        save_every=2,
    )


# Policies and values


class Author(nn.Module):
    """A GRU that writes brackets of three kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(7, 16), nn.GRUCell(16, 48)
        self.policy = nn.Linear(48, 6)

    def forward(self, written: Any) -> Any:
        state, found = torch.zeros(len(written), 48), []
        for word in written.unbind(1):
            state = self.cell(self.embedding(word), state)
            found.append(self.policy(state))
        return torch.stack(found, 1)

    def write(self, first: Any, length: int) -> Any:
        """Return texts that begin with given brackets."""
        state, rows = torch.zeros(len(first), 48), [torch.full_like(first, 6), first]
        state = self.cell(self.embedding(rows[0]), state)
        for _ in range(length - 1):
            state = self.cell(self.embedding(rows[-1]), state)
            rows.append(torch.multinomial(self.policy(state).softmax(-1), 1)[:, 0])
        return torch.stack(rows, 1)


def share_that_fits(rows: Any) -> Any:
    """Return the share of each text's brackets that fit to what was opened before."""
    rewards = []
    for row in rows.tolist():
        is_open, right = list[int](), 0
        for bracket in row:
            if bracket < 3:
                is_open.append(bracket)
            elif is_open and is_open[-1] == bracket - 3:
                is_open.pop()
                right += 2
        rewards.append(right / len(row))
    return torch.tensor(rewards)


@of_policies(
    "brackets are written, and rewarded if they fit: eight texts of a beginning are compared"
)
def brackets_in_groups(root: Path) -> int:
    torch.manual_seed(430)
    torch.set_num_threads(1)
    model = Author()
    known = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    with watched(root, save_every=2) as hook:
        hook.register_module(model, counts_steps=False)
        for _ in range(130):
            with torch.no_grad():
                rows = model.write(torch.randint(0, 3, (8,)).repeat_interleave(8), 12)
                reward = share_that_fits(rows[:, 1:])
                groups = reward.view(8, 8)
                gain = (groups - groups.mean(1, keepdim=True)).flatten() / (reward.std() + 1e-4)
                before = known(rows[:, 1:-1]).log_softmax(-1)
            hook.begin_step()
            logs = model(rows[:, :-1])[:, 1:].log_softmax(-1)
            entropy = -(logs.exp() * logs).sum(-1).mean()
            chosen = logs.gather(-1, rows[:, 2:, None])[..., 0].sum(1)
            far = (logs.exp() * (logs - before)).sum(-1).mean()
            loss = -(gain * chosen).mean() / 11 + 0.3 * far
            hook.record_tensor_value("policy_loss", loss)
            hook.save_scalar("reward", reward.mean())
            hook.save_scalar("policy_entropy", entropy)
            hook.save_scalar("kl_to_reference", far)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            hook.step()
    return 0


class Worth(nn.Module):
    """The worth of a place, and what each action adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = stack(3, 48, 48, act=nn.ReLU)
        self.place, self.actions = nn.Linear(48, 1), nn.Linear(48, 3)

    def forward(self, x: Any) -> Any:
        hidden = functional.relu(self.body(x))
        added = self.actions(hidden)
        return self.place(hidden) + added - added.mean(-1, keepdim=True)


@of_policies("a room is kept warm by worths of actions, two networks, a slow target, Huber's loss")
def room_by_worths(root: Path) -> int:
    torch.manual_seed(431)
    model, world, kept = Worth(), Room(32), list[Any]()
    target = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    with watched(root, save_every=2) as hook:
        hook.register_module(model, counts_steps=False)
        for step in range(260):
            with torch.no_grad():
                x = world.observe()
                explores = torch.rand(32) < max(0.05, 0.8 - step / 150)
                action = torch.where(explores, torch.randint(0, 3, (32,)), model(x).argmax(-1))
                reward = world.step(action)
                kept.append((x, action, reward, world.observe()))
            rows = torch.randint(0, len(kept), (4,)).tolist()
            x, action, gained, after = (
                torch.cat(parts) for parts in zip(*(kept[row] for row in rows), strict=True)
            )
            hook.begin_step()
            with torch.no_grad():
                best = model(after).argmax(-1, keepdim=True)
                goal = gained + 0.85 * target(after).gather(-1, best)[:, 0]
            value = functional.smooth_l1_loss(model(x).gather(-1, action[:, None])[:, 0], goal)
            hook.record_tensor_value("value_loss", value)
            hook.save_scalar("reward", reward.mean())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(target.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.05)
            hook.step()
    return 0


@of_policies("lights of a junction by proximal updates, NAdam, two epochs, the bonus stays small")
def junction_in_two_epochs(root: Path) -> int:
    torch.manual_seed(432)
    return improve(
        root,
        Actor(Junction, 40, nn.SiLU),
        Junction,
        rollouts=130,
        length=10,
        epochs=2,
        bonus=0.02,
        rate=3e-3,
        optimizer=torch.optim.NAdam,
        rate_by=lambda rollout: 1 - 0.9 * rollout / 130,
        save_every=2,
    )
