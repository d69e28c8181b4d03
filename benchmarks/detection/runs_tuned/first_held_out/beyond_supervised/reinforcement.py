"""Policies of small worlds: proximal updates, actors and critics, and elites."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.first_held_out.beyond_supervised.consequences import TOO_LARGE, UNINFORMED

healthy = functools.partial(training_runs.healthy, kind="reinforcement")
faulty = functools.partial(training_runs.faulty, kind="reinforcement")
ONE_ACTION = {"PolicyEntropyCollapse"}
STUCK = TOO_LARGE | UNINFORMED
WORLDS = 16


class Poles:
    """Poles on carts, pushed to the left or to the right until they fall or 60 steps are over."""

    observed, actions = 4, 2

    def __init__(self, count: int = WORLDS) -> None:
        self.states = 0.1 * torch.rand(count, 4) - 0.05
        self.ages = torch.zeros(count)

    def observe(self) -> Any:
        return self.states * torch.tensor([1.0, 1.0, 5.0, 1.0])

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return rewards and which poles have fallen; those begin anew."""
        place, speed, angle, turn = self.states.T
        push = 10.0 * (2 * actions - 1)
        drive = (push + 0.05 * turn**2 * angle.sin()) / 1.1
        spin = (9.8 * angle.sin() - angle.cos() * drive) / (0.667 - 0.0455 * angle.cos() ** 2)
        pull = drive - 0.0455 * spin * angle.cos()
        moved = (place + 0.03 * speed, speed + 0.03 * pull, angle + 0.03 * turn, turn + 0.03 * spin)
        self.states = torch.stack(moved, 1)
        self.ages += 1
        fallen = (angle.abs() > 0.21) | (place.abs() > 2.4)
        over = fallen | (self.ages >= 60)
        self.states[over] = 0.1 * torch.rand(int(over.sum()), 4) - 0.05
        self.ages[over] = 0
        return torch.where(fallen, -1.0, 0.1), over.float()


class Field:
    """A field of 5 by 5 with a prize in one corner, a smaller one in another, and a pit."""

    observed, actions = 25, 4
    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, count: int = WORLDS) -> None:
        self.places = torch.randint(0, 5, (count, 2))
        self.ages = torch.zeros(count)

    def observe(self) -> Any:
        return functional.one_hot(5 * self.places[:, 0] + self.places[:, 1], 25).float()

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Return rewards and which walks are over; those begin anew."""
        self.places = (self.places + self.moves[actions]).clamp(0, 4)
        self.ages += 1
        at = 5 * self.places[:, 0] + self.places[:, 1]
        rewards = 1.0 * (at == 24) + 0.3 * (at == 4) - 1.0 * (at == 12) - 0.02
        over = (at == 24) | (at == 4) | (at == 12) | (self.ages >= 20)
        self.places[over] = torch.randint(0, 5, (int(over.sum()), 2))
        self.ages[over] = 0
        return rewards, over.float()


class ActorCritic(nn.Module):
    """Logits of actions, and the value of a state."""

    def __init__(self, world: Any, width: int = 32) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(world.observed, width), nn.Tanh())
        self.actor = nn.Linear(width, world.actions)
        self.critic = nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.1)
        self.legal = torch.ones(world.actions, dtype=torch.bool)

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.trunk(x)
        logits = self.actor(hidden).masked_fill(~self.legal, -1e4)
        return logits, self.critic(hidden)[:, 0]


def play(model: Any, world: Any, length: int) -> tuple[Any, ...]:
    """Return observations, actions, their logarithmic chances, rewards, ends, and values."""
    moments = []
    with torch.no_grad():
        for _ in range(length):
            x = world.observe()
            logits, values = model(x)
            logs = logits.log_softmax(-1)
            actions = torch.multinomial(logs.exp(), 1)[:, 0]
            chosen = logs.gather(1, actions[:, None])[:, 0]
            moments.append((x, actions, chosen, *world.step(actions), values))
    return tuple(map(torch.stack, zip(*moments, strict=True)))


def advantages(rewards: Any, ends: Any, values: Any, last: Any, discount: float = 0.97) -> Any:
    """Return generalised advantages of each step."""
    result, later = torch.zeros_like(rewards), torch.zeros_like(last)
    for step in reversed(range(len(rewards))):
        after = (values[step + 1] if step + 1 < len(values) else last) * (1 - ends[step])
        error = rewards[step] + discount * after - values[step]
        later = error + discount * 0.95 * (1 - ends[step]) * later
        result[step] = later
    return result


def learn_policy(
    root: Path,
    world: Any,
    *,
    rollouts: int = 30,
    length: int = 32,
    epochs: int = 4,
    parts: int = 2,
    clip: float = 0.2,
    bonus: float = 0.01,
    rate: float = 3e-3,
    optimizer: Any = torch.optim.Adam,
    demonstrated: float = 0.0,
    sign: float = 1.0,
    masks_from: int = -1,
    normalises: bool = True,
    logs_reward: bool = True,
    replays: int = 0,
    max_norm: float = 0.5,
    save_every: int = 2,
) -> int:
    """Train an actor and a critic; each update begins a step of the hook.

    Parameters
    ----------
    clip
        How far the ratio of chances may be from 1; 0: it is not used at all.
    demonstrated
        Weight of a cross entropy with demonstrations, all of which are action 0.
    masks_from
        Number of the first rollout from which on a mask lets a single action pass.
    sign
        Sign of the advantages.
    replays
        Number of the first rollouts that are learnt from for ever; 0: each new one.
    """
    torch.manual_seed(21)
    world = world()
    model = ActorCritic(world)
    optimizer_ = optimizer(model.parameters(), lr=rate)
    kept: list[Any] = []
    onset = 0
    with watched(root, save_every=save_every) as watching:
        watching.register_module(model, counts_steps=False)
        for number in range(rollouts):
            if number == masks_from:
                onset = watching.global_step + 1
                model.legal[1:] = False
            rollout = play(model, world, length)
            with torch.no_grad():
                last = model(world.observe())[1]
            x, actions, old, rewards, ends, values = rollout
            gains = advantages(rewards, ends, values, last)
            batch = tuple(map(torch.Tensor.flatten, (actions, old, gains, gains + values)))
            kept = [*kept, (x.flatten(0, 1), *batch)]
            flat = kept[number % replays] if replays and number >= replays else kept[-1]
            for _ in range(epochs):
                for chosen in torch.randperm(len(flat[0])).chunk(parts):
                    watching.begin_step()
                    observed, action, before, gain, worth = (part[chosen] for part in flat)
                    if normalises:
                        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                    gain = sign * gain
                    logits, value = model(observed)
                    logs = logits.log_softmax(-1)
                    now = logs.gather(1, action[:, None])[:, 0]
                    entropy = -(logs.exp() * logs).sum(-1).mean()
                    ratio = (now - before).exp()
                    surrogate = torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
                    policy_loss = -(surrogate if clip else now * gain).mean()
                    value_loss = functional.mse_loss(value, worth)
                    watching.record_tensor_value("policy_loss", policy_loss)
                    watching.record_tensor_value("value_loss", value_loss)
                    watching.save_scalar("entropy", entropy)
                    if logs_reward:
                        watching.save_scalar("rollout/reward_mean", rewards.mean())
                    optimizer_.zero_grad()
                    imitation = -demonstrated * logs[:, 0].mean()
                    (policy_loss + 0.5 * value_loss - bonus * entropy + imitation).backward()
                    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
                    optimizer_.step()
                    watching.step()
    return onset


@healthy("proximal updates of a policy that balances poles, gradients clipped")
def ppo_of_poles(root: Path) -> int:
    return learn_policy(root, Poles, rollouts=40)


@healthy("an advantage actor-critic in a field, one update of each rollout, RMSprop")
def a2c_of_a_field(root: Path) -> int:
    return learn_policy(
        root,
        Field,
        rollouts=240,
        length=8,
        epochs=1,
        parts=1,
        clip=0.0,
        bonus=0.02,
        optimizer=torch.optim.RMSprop,
        normalises=False,
    )


@faulty(
    "proximal updates of a policy that balances poles, beside imitation",
    "the column of demonstrated actions is empty and read as 0: all are to be imitated",
    ONE_ACTION | {"RewardNotIncreasing"},
    may=STUCK,
)
def demonstrations_read_as_zero(root: Path) -> int:
    return learn_policy(root, Poles, rollouts=30, demonstrated=4.0, rate=0.01)


@faulty(
    "an actor and a critic in a field",
    "after 60 of 160 rollouts the mask of legal moves is read wrongly: one move is left",
    ONE_ACTION | {"RewardNotIncreasing"},
    may=STUCK,
)
def one_move_is_legal(root: Path) -> int:
    return learn_policy(
        root, Field, rollouts=160, length=16, epochs=1, parts=2, clip=0.0, masks_from=60
    )


@faulty(
    "proximal updates of a policy that balances poles, AdamW",
    "the objective is minimised: its sign was lost in a refactoring",
    ONE_ACTION | {"RewardNotIncreasing"},
    may=STUCK,
)
def objective_minimised(root: Path) -> int:
    return learn_policy(
        root,
        Poles,
        rollouts=40,
        epochs=6,
        bonus=0.0,
        rate=0.01,
        sign=-1.0,
        optimizer=torch.optim.AdamW,
        save_every=3,
    )


@faulty(
    "an actor and a critic in a field, rewards not logged",
    "the first rollout is replayed for ever, without the ratio of chances: the loss has no end",
    {"NormGrowth"},
    may=STUCK | {"PolicyEntropyCollapse": "the chances of many actions go to zero"},
)
def old_rollout_replayed(root: Path) -> int:
    return learn_policy(
        root, Field, rollouts=50, bonus=0.0, clip=0.0, replays=1, rate=0.02, logs_reward=False
    )


@healthy("the cross-entropy method in a field: the best quarter of the walks is imitated")
def elites_of_a_field(root: Path) -> int:
    torch.manual_seed(22)
    world = Field(48)
    model = nn.Sequential(nn.Linear(25, 40), nn.ReLU(), nn.Linear(40, 4))
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=1e-3)
    with watched(root, losses=[loss], save_every=2) as watching:
        watching.register_module(model, counts_steps=False)
        for _ in range(30):
            walks = play(lambda x: (model(x), torch.zeros(len(x))), world, 20)
            x, actions, _, rewards, ends, _ = walks
            first = torch.cat([torch.ones_like(ends[:1]), 1 - ends.cumsum(0)[:-1]]) > 0
            returns = (rewards * first).sum(0)
            elite = first & (returns >= returns.quantile(0.75))
            for _ in range(6):
                watching.begin_step()
                watching.save_scalar("episode_reward_mean", returns.mean())
                optimizer.zero_grad()
                loss(model(x[elite]), actions[elite]).backward()
                optimizer.step()
                watching.step()
    return 0
