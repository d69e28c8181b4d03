"""Healthy policies that keep an entropy, or lose some of it as they learn."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.contrastive import matching_loss
from runs_tuned.first_held_out.beyond_supervised.reinforcement import Poles
from runs_tuned.second_held_out.healthy_kinds.shared.actors import Actor, entropy_of, improve
from runs_tuned.second_held_out.healthy_kinds.shared.experts import Routed, balance, units
from runs_tuned.second_held_out.healthy_kinds.shared.teams import learn
from runs_tuned.second_held_out.healthy_kinds.shared.worlds import Arms, Catch, Corridors, Stock

healthy = functools.partial(training_runs.healthy, kind="reinforcement")


@healthy("balls that fall are caught: proximal updates, three epochs of each rollout, clipped")
def ppo_of_catch(root: Path) -> int:
    return improve(
        root,
        Catch,
        lambda: Actor(Catch),
        optimizer=adam(5e-3),
        rounds=45,
        length=20,
        epochs=3,
        parts=2,
        clip_ratio=0.2,
        clip=0.5,
    )


@healthy("poles, REINFORCE with a learnt baseline, no bonus: the entropy falls as it learns")
def baseline_of_poles(root: Path) -> int:
    return improve(
        root,
        Poles,
        lambda: Actor(Poles, 24),
        optimizer=adam(6e-3, torch.optim.RMSprop),
        rounds=160,
        length=16,
        bonus=lambda _: 0.0,
        clip=1.0,
        name="losses/entropy",
    )


@healthy("a store orders goods: an advantage actor-critic on two workers with stores of their own")
def a2c_of_stores(root: Path) -> int:
    return improve(
        root,
        Stock,
        lambda: Actor(Stock, 32),
        optimizer=adam(4e-3),
        rounds=110,
        length=12,
        bonus=lambda _: 0.03,
        discount=0.8,
        size=2,
    )


@healthy("corridors, the bonus of the entropy falls to zero; views of a place are matched (CURL)")
def matched_views_of_corridors(root: Path) -> int:
    def more(model: Any, x: Any, watching: Any) -> Any:
        first, second = (model.body(x * (torch.rand_like(x) > 0.1)) for _ in range(2))
        watching.save_tensor("embeddings", first, "embeddings")
        return 0.1 * matching_loss(first, second, 0.3)

    return improve(
        root,
        Corridors,
        lambda: Actor(Corridors, 40, lambda ins, width: nn.Sequential(units(ins, 40, width))),
        optimizer=adam(3e-3, torch.optim.NAdam),
        rounds=100,
        bonus=lambda number: 0.05 * (1 - number / 100),
        more=more,
        clip=1.0,
    )


class Foreseen(nn.Module):
    """A body whose hidden state is to be foreseen from a noisy observation."""

    def __init__(self, ins: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(ins, width), nn.LayerNorm(width), nn.ELU())
        self.predictor = units(width, 24)

    def forward(self, x: Any) -> Any:
        return self.layers(x)


@healthy(
    "balls that fall are caught: a hidden state is foreseen beside, the target has no gradient"
)
def foreseen_states_of_catch(root: Path) -> int:
    def more(model: Any, x: Any, watching: Any) -> Any:
        state = model.body(x)
        watching.save_tensor("representations", state, "embeddings")
        guess = model.body.predictor(model.body(x + 0.1 * torch.randn_like(x)))
        return 0.2 * (1 - functional.cosine_similarity(guess, state.detach()).mean())

    return improve(
        root,
        Catch,
        lambda: Actor(Catch, 32, Foreseen),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.01),
        rounds=60,
        length=20,
        epochs=2,
        clip_ratio=0.15,
        bonus=lambda _: 0.02,
        more=more,
        name="train/policy_entropy",
    )


def imitating() -> Any:
    """Return an actor that has learnt from a teacher who catches most balls."""
    model = Actor(Catch, 32)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(40):
        world = Catch(128)
        best = 1 + (world.balls - world.paddles).sign()
        shown = torch.where(torch.rand(128) < 0.3, torch.randint(0, 3, (128,)), best)
        optimizer.zero_grad()
        functional.nll_loss(model(world.observe())[0], shown).backward()
        optimizer.step()
    return model


@healthy("balls that fall are caught by an actor that has imitated a teacher, and now improves")
def imitator_of_catch(root: Path) -> int:
    return improve(
        root,
        Catch,
        imitating,
        optimizer=adam(3e-3),
        rounds=60,
        length=20,
        epochs=2,
        kl=0.2,
        bonus=lambda _: 0.02,
        clip=0.5,
    )


class ByExperts(nn.Module):
    """A body of experts, one for each observation."""

    def __init__(self, ins: int, width: int) -> None:
        super().__init__()
        self.begin = nn.Sequential(nn.Linear(ins, width), nn.LayerNorm(width), nn.SiLU())
        self.mixture = Routed(width, 3, 1, hidden=24)

    def forward(self, x: Any) -> Any:
        x = self.begin(x)
        return x + self.mixture(x)


@healthy("corridors, a policy of three balanced experts on two workers, proximal updates")
def experts_in_corridors(root: Path) -> int:
    return improve(
        root,
        Corridors,
        lambda: Actor(Corridors, 24, ByExperts),
        optimizer=adam(4e-3),
        rounds=36,
        length=20,
        epochs=2,
        clip_ratio=0.2,
        bonus=lambda number: 0.15 * (1 - number / 40),
        more=lambda model, *_: 0.05 * balance(model),
        size=2,
        clip=0.5,
    )


@healthy("twelve arms whose worth depends on a context, gradient bandit, plain SGD, strong bonus")
def bandit_of_twelve_arms(root: Path) -> int:
    return improve(
        root,
        Arms,
        lambda: Actor(Arms, 32),
        optimizer=functools.partial(torch.optim.SGD, lr=0.2),
        rounds=260,
        length=2,
        bonus=lambda _: 0.05,
        discount=0.0,
        name="actor_entropy",
    )


@healthy("poles, gradients scaled: the loss scale grows every 20 updates, a penalty of divergence")
def scaled_policy_of_poles(root: Path) -> int:
    return improve(
        root,
        Poles,
        lambda: Actor(Poles, 48),
        optimizer=adam(4e-3),
        rounds=50,
        length=24,
        epochs=3,
        kl=0.5,
        bonus=lambda _: 0.005,
        scaler={"init_scale": 2.0**10, "growth_interval": 20},
        clip=1.0,
        save_every=1,
    )


class Imagining(nn.Module):
    """A body of latent units that tell what is seen."""

    def __init__(self, ins: int, width: int) -> None:
        super().__init__()
        self.moments, self.tell = units(ins, 32, 12), units(6, 32, ins)
        self.act = nn.Sequential(nn.Linear(6, width), nn.Tanh())

    def forward(self, x: Any) -> Any:
        return self.act(self.moments(x).chunk(2, -1)[0])


@healthy("a store orders goods, a policy of what a variational autoencoder sees, both learn")
def latent_policy_of_stores(root: Path) -> int:
    def more(model: Any, x: Any, watching: Any) -> Any:
        mean, log_variance = model.body.moments(x).chunk(2, -1)
        watching.save_tensor("mu", mean, "latent_means")
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        nats = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return functional.mse_loss(model.body.tell(code), x) + 0.002 * nats

    return improve(
        root,
        Stock,
        lambda: Actor(Stock, 32, Imagining),
        optimizer=adam(4e-3),
        rounds=110,
        length=12,
        bonus=lambda _: 0.02,
        discount=0.8,
        more=more,
        clip=1.0,
    )


class Soft(nn.Module):
    """A policy, and two critics of all actions; the weight of the entropy is learnt, too."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = units(Catch.observed, 40, Catch.actions)
        self.critics = nn.ModuleList(units(Catch.observed, 40, Catch.actions) for _ in range(2))
        self.log_weight = nn.Parameter(torch.tensor(-2.5))


@healthy("balls that fall are caught: a soft actor-critic of actions, two critics, learnt weight")
def soft_actor_critic_of_catch(root: Path) -> int:
    world = Catch(32)
    memory: list[Any] = []
    goal = 0.35

    def feed(_: int) -> Any:
        while True:
            parts = list(map(torch.cat, zip(*memory, strict=True)))
            chosen = torch.randint(0, len(parts[0]), (96,))
            yield [part[chosen] for part in parts]

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x, action, reward, end, after = batch
        weight = model.log_weight.exp()
        with torch.no_grad():
            logs = model.policy(after).log_softmax(-1)
            lower = torch.min(*(critic(after) for critic in model.critics))
            later = (logs.exp() * (lower - weight * logs)).sum(1)
            target = reward + 0.9 * (1 - end) * later
        worth = [critic(x) for critic in model.critics]
        errors = [
            functional.mse_loss(one.gather(1, action[:, None])[:, 0], target) for one in worth
        ]
        logs = model.policy(x).log_softmax(-1)
        best = torch.min(*worth).detach()
        policy_loss = (logs.exp() * (weight.detach() * logs - best)).sum(1).mean()
        entropy = entropy_of(logs)
        watching.save_scalar("policy_entropy", entropy)
        watching.save_scalar("episode_reward", torch.stack([one[2] for one in memory]).mean())
        play(model)
        return sum(errors) + policy_loss + model.log_weight * (entropy.detach() - goal)

    def play(model: Any) -> None:
        with torch.no_grad():
            x = world.observe()
            action = torch.multinomial(model.policy(x).softmax(-1), 1)[:, 0]
            reward, end = world.step(action)
            memory.append((x, action, reward, end, world.observe()))
            del memory[:-150]

    def make() -> Any:
        model = Soft()
        for _ in range(10):
            play(model)
        return model

    return learn(root, make, feed, objective, optimizer=adam(5e-3), steps=400, save_every=4)
