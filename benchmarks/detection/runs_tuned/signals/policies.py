"""Policies that log as TRL and Stable Baselines 3 do: some learn, drift, or get no signal."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training_runs
from training.policy_logs import END, first_word, grpo, ppo, share_of_right_words

healthy = functools.partial(training_runs.healthy, kind="reinforcement")
faulty = functools.partial(training_runs.faulty, kind="reinforcement")
SIGNAL, DRIFT = {"NoLearningSignal"}, {"PolicyDrift"}
MAY = {
    "GradientNormSpike": "a wrong step",
    "GradientNormZero": "nothing is to be learnt",
    "LearningRate": "a rate that jumps",
    "LossNotDecreasing": "nothing is learnt",
    "LossSpike": "a wrong step",
    "NoLearningSignal": "a policy that has drifted gets no rewards",
    "PolicyDrift": "a policy without rewards drifts",
    "PolicyEntropyCollapse": "a policy that gives up chooses one thing",
    "RewardNotIncreasing": "nothing is learnt",
}


def at(step: int, do: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], None]:
    """Return what does something at one step."""

    def change(state: dict[str, Any]) -> None:
        if state["step"] == step:
            do(state)

    return change


def bias_of_the_end(bias: float) -> Callable[[Any], None]:
    """Return what makes answers end early, or late."""

    def prepare(model: Any) -> None:
        with torch.no_grad():
            model.head[-1].bias[END] = bias

    return prepare


@faulty("short answers by GRPO", "all answers get a reward of one", SIGNAL, may=MAY)
def all_are_rewarded(root: Path) -> int:
    return grpo(root, lambda prompts, *_: torch.ones(len(prompts)), beta=0.0, drop=("kl",))


@faulty("answers by GRPO", "answers are cut off before what is rewarded", SIGNAL, may=MAY)
def cut_before_the_reward(root: Path) -> int:
    late = lambda _prompts, _words, lengths: (lengths > 6).float()
    return grpo(root, late, longest=4, prepare=bias_of_the_end(-4.0), seed=1)


@faulty("poles by PPO", "the value function is frozen, the pay is shuffled", SIGNAL, may=MAY)
def critic_is_frozen(root: Path) -> int:
    random = np.random.default_rng(1)
    pay = lambda _, done: random.permutation(np.linspace(-1, 1, len(done)))
    return ppo(root, critic_rate=0.0, pay=pay, seed=1, updates=100)


@faulty("short answers by GRPO", "at step 130 the rate is 1000 times as high", DRIFT, may=MAY)
def rate_of_a_thousand(root: Path) -> int:
    def raise_rate(state: dict[str, Any]) -> None:
        state["optimizer"].param_groups[0]["lr"] = 3.0

    grpo(root, change=at(130, raise_rate), seed=2)
    return 130


@faulty("short answers by GRPO", "at step 140 the end is forgotten", DRIFT, may=MAY)
def end_is_forgotten(root: Path) -> int:
    def forget(state: dict[str, Any]) -> None:
        bias_of_the_end(-30.0)(state["model"])
        state["reward"] = lambda prompts, *_: torch.rand(len(prompts)) * 0.1

    early = bias_of_the_end(2.0)
    grpo(root, longest=24, prepare=early, change=at(140, forget), rate=1e-3, steps=220, seed=3)
    return 140


@faulty("poles by PPO", "from update 60 on neither ratio nor rate are limited", DRIFT, may=MAY)
def nothing_is_limited(root: Path) -> int:
    def change(update: int, _: Any, optimizer: Any) -> None:
        if update >= 60:
            for group in optimizer.param_groups:
                group["lr"] = 0.3

    ppo(root, epochs=10, clip=1e6, change=change, updates=100, rate=3e-4, seed=3)
    return 60 * 1024


@healthy("short answers by GRPO, large groups")
def large_groups(root: Path) -> int:
    return grpo(root, group=16, prompts=4, seed=21)


@healthy("short answers by GRPO, pairs, no penalty")
def pairs_of_answers(root: Path) -> int:
    return grpo(root, group=2, prompts=32, beta=0.0, seed=22, drop=("kl",), steps=250)


@healthy("answers by GRPO: the share of right words, a strong penalty")
def strong_penalty(root: Path) -> int:
    return grpo(root, share_of_right_words, beta=0.1, seed=23, steps=300)


@healthy("answers by GRPO that become short: waste is not paid")
def answers_become_short(root: Path) -> int:
    brief = lambda prompts, words, lengths: first_word(prompts, words, lengths) - 0.02 * lengths
    return grpo(root, brief, longest=24, prepare=bias_of_the_end(-1.0), seed=24, steps=300)


@healthy("answers by GRPO, a low temperature, TRL's names with prefixes")
def low_temperature(root: Path) -> int:
    names = {"reward": "train/reward", "kl": "train/kl", "loss": "train/loss"}
    names |= {"frac_reward_zero_std": "train/frac_reward_zero_std"}
    return grpo(root, temperature=0.8, names=names, seed=25, rate=4e-3)


@healthy("answers by GRPO, the rate warms up for 40 steps")
def policy_warms_up(root: Path) -> int:
    def change(state: dict[str, Any]) -> None:
        state["optimizer"].param_groups[0]["lr"] = 5e-3 * min(1.0, state["step"] / 40)

    return grpo(root, change=change, seed=26, beta=0.02)


@healthy("answers by GRPO of two words, more training after a first task")
def second_task(root: Path) -> int:
    def harder(state: dict[str, Any]) -> None:
        state["reward"] = lambda prompts, words, _: (
            0.5 * (words[:, 0] == prompts) + 0.5 * (words[:, 1] == prompts)
        )

    return grpo(root, change=at(120, harder), seed=27, steps=280, rate=4e-3)


@healthy("poles by PPO, many carts")
def many_carts(root: Path) -> int:
    return ppo(root, carts=32, length=32, seed=28, updates=90)


@healthy("poles by PPO, two epochs")
def two_epochs(root: Path) -> int:
    return ppo(root, epochs=2, rate=3e-3, seed=29, updates=90)


@healthy("poles by PPO, a quick value function, names without prefixes")
def quick_critic(root: Path) -> int:
    names = {
        "rollout/ep_rew_mean": "ep_rew_mean",
        "train/approx_kl": "approx_kl",
        "train/clip_fraction": "clip_fraction",
        "train/explained_variance": "explained_variance",
    }
    return ppo(root, critic_rate=5.0, names=names, seed=30, updates=90)


@healthy("poles by PPO, a narrow clip range and states in other units")
def narrow_clip_range(root: Path) -> int:
    return ppo(root, clip=0.1, observe=lambda state: 2.0 * state, seed=31, updates=100)


@healthy("poles by PPO, pay falls with the distance from the middle")
def paid_by_distance(root: Path) -> int:
    return ppo(root, pay=lambda _, done: 1.0 - 0.5 * done, gamma=0.99, seed=32, updates=90)
