"""Reinforcement learning: policies and values of small problems, healthy and collapsed."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.faulty.learning import BLOWN_UP

healthy = functools.partial(training_runs.healthy, kind="reinforcement")
faulty = functools.partial(training_runs.faulty, kind="reinforcement")
COLLAPSED = BLOWN_UP | {
    "StalledParameters": "a policy without choice gets no gradient",
    "NormGrowth": "logits grow",
    "GradientNormSpike": "a wrong step",
    "LossSpike": "a wrong step",
}
ENTROPY = {"PolicyEntropyCollapse"}
STATES, ACTIONS = 8, 4


class Policy(nn.Module):
    """Logits of actions by state."""

    def __init__(self, outs: int = ACTIONS) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(STATES, 32), nn.Tanh())
        self.logits = nn.Linear(32, outs)

    def forward(self, states: Any) -> Any:
        return self.logits(self.hidden(states))


def rewards(states: Any, actions: Any, generator: Any) -> Any:
    """Return noisy rewards: the best action is the state modulo the number of actions."""
    noise = torch.randn(len(states), generator=generator)
    return (states % ACTIONS == actions).float() + 0.5 * noise


def policy_gradient(
    root: Path,
    *,
    steps: int = 240,
    rate: float = 3e-3,
    bonus: float = 0.05,
    reward_scale: float = 1.0,
    baseline: bool = True,
    value: bool = False,
    save_every: int = 2,
    at: int = -1,
    change: Any = lambda *_: None,
) -> int:
    """Train a policy by its gradient; return the step of the fault."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model, critic = Policy(), Policy(1)
    parameters = [*model.parameters(), *(critic.parameters() if value else [])]
    optimizer = torch.optim.Adam(parameters, rate)
    models = (model, critic) if value else (model,)
    onset = 0
    with watched(root, *models, save_every=save_every) as watching:
        for step in range(steps):
            if step == at:
                onset = watching.global_step + 1
                change(model, optimizer)
            states = torch.randint(0, STATES, (64,), generator=random)
            observed = functional.one_hot(states, STATES).float()
            chances = functional.softmax(model(observed), -1)
            actions = torch.multinomial(chances, 1, generator=random)[:, 0]
            reward = reward_scale * rewards(states, actions, random)
            logs = (chances + 1e-9).log()
            chosen = logs.gather(1, actions[:, None])[:, 0]
            entropy = -(chances * logs).sum(-1).mean()
            advantage = reward - reward.mean() if baseline else reward
            loss = torch.zeros(())
            if value:
                values = critic(observed)[:, 0]
                advantage = reward - values.detach()
                loss = functional.mse_loss(values, reward)
                watching.record_tensor_value("value_loss", loss)
            policy_loss = -(advantage * chosen).mean()
            watching.record_tensor_value("policy_loss", policy_loss)
            watching.save_scalar("policy_entropy", entropy)
            watching.save_scalar("episode_reward", reward.mean())
            optimizer.zero_grad()
            (policy_loss + 0.5 * loss - bonus * entropy).backward()
            optimizer.step()
    return onset


@healthy("a contextual bandit by REINFORCE with a baseline")
def bandit(root: Path) -> int:
    return policy_gradient(root)


@healthy("a contextual bandit by REINFORCE without a baseline: noisy losses")
def bandit_without_baseline(root: Path) -> int:
    return policy_gradient(root, baseline=False, rate=2e-3)


@healthy("an actor and a critic")
def actor_critic(root: Path) -> int:
    return policy_gradient(root, value=True, steps=240)


@healthy("a bandit with a strong bonus for entropy, every tenth step saved")
def bandit_seldom_saved(root: Path) -> int:
    return policy_gradient(root, bonus=0.2, steps=500, save_every=10)


def temporal_difference(
    root: Path, *, steps: int = 400, every: int = 50, rate: float = 2e-3, save_every: int = 4
) -> int:
    """Learn values of a walk along states from replayed transitions and a target network."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model, target = Policy(2), Policy(2)
    target.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), rate)
    with watched(root, model, save_every=save_every) as watching:
        for step in range(steps):
            if step % every == 0:
                target.load_state_dict(model.state_dict())
            states = torch.randint(0, STATES - 1, (32,), generator=random)
            actions = torch.randint(0, 2, (32,), generator=random)
            following = (states + 2 * actions - 1).clamp(0, STATES - 1)
            reward = (following == STATES - 1).float()
            with torch.no_grad():
                best = target(functional.one_hot(following, STATES).float()).max(-1).values
                goal = reward + 0.9 * best * (1 - reward)
            values = model(functional.one_hot(states, STATES).float())
            loss = functional.smooth_l1_loss(values.gather(1, actions[:, None])[:, 0], goal)
            watching.record_tensor_value("td_loss", loss)
            watching.save_scalar("episode_reward", reward.mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return 0


@healthy("values by temporal differences, a target network that follows every 50 steps")
def deep_q(root: Path) -> int:
    return temporal_difference(root)


@healthy("values by temporal differences, a target network that follows every 10 steps")
def deep_q_fast_target(root: Path) -> int:
    return temporal_difference(root, every=10, rate=5e-3)


@faulty(
    "a bandit",
    "the bonus for entropy has the wrong sign",
    ENTROPY | {"RewardNotIncreasing"},
    may=COLLAPSED,
)
def entropy_of_wrong_sign(root: Path) -> int:
    return policy_gradient(root, bonus=-1.0, rate=0.01)


@faulty(
    "a bandit",
    "rewards are in cents: a hundred times too large",
    ENTROPY | {"RewardNotIncreasing"},
    may=COLLAPSED,
)
def rewards_in_cents(root: Path) -> int:
    return policy_gradient(root, reward_scale=100.0, rate=0.05, bonus=0.01)


@faulty(
    "a bandit by REINFORCE without a baseline",
    "a learning rate of 0.5 and no bonus: the first lucky action stays",
    ENTROPY | {"RewardNotIncreasing"},
    may=COLLAPSED | {"LearningRate": "a rate that is too high"},
)
def lucky_action(root: Path) -> int:
    return policy_gradient(root, rate=0.5, bonus=0.0, baseline=False)


@faulty(
    "an actor and a critic",
    "at step 100 the logits' bias is overwritten: one action is chosen for ever",
    ENTROPY | {"RewardNotIncreasing"},
    may=COLLAPSED,
)
def action_stuck(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model.logits.bias[0] = 30.0

    return policy_gradient(root, value=True, at=100, change=change, save_every=1)


@faulty(
    "a bandit",
    "the learning rate jumps from 3e-3 to 1 at step 120",
    ENTROPY | {"LearningRate"},
    may=COLLAPSED,
)
def policy_rate_jumps(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 1.0

    return policy_gradient(root, at=120, change=change, save_every=1, bonus=0.0)
