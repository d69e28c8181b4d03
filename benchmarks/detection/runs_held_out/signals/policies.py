"""Policies that log as TRL, verl and Stable Baselines 3 do: four faults, and healthy ones."""

import functools
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


def impossible(prompts: Any, *_: Any) -> Any:
    """Reward nothing: the template of the answer is never met."""
    return torch.zeros(len(prompts))


@faulty("short answers by GRPO", "the template that rewards look for never occurs", SIGNAL, may=MAY)
def template_never_met(root: Path) -> int:
    return grpo(root, impossible, names={"reward": "rewards/format/mean"})


@faulty("poles by PPO", "the value function sees zeros and the pay is noise", SIGNAL, may=MAY)
def critic_sees_nothing(root: Path) -> int:
    random = np.random.default_rng(0)
    pay = lambda _, done: random.normal(size=len(done))
    return ppo(root, observe=np.zeros_like, pay=pay, updates=100)


@faulty("poles by PPO", "from update 70 on the rate is 100 times as high", DRIFT, may=MAY)
def rate_of_a_hundred(root: Path) -> int:
    def change(update: int, _: Any, optimizer: Any) -> None:
        if update == 70:
            for group in optimizer.param_groups:
                group["lr"] *= 100

    ppo(root, rate=5e-4, change=change, updates=100)
    return 70 * 1024


@faulty(
    "long answers by GRPO, no penalty",
    "from step 150 on the end is rewarded by mistake",
    DRIFT,
    may=MAY,
)
def end_is_rewarded(root: Path) -> int:
    ends = lambda _prompts, _words, lengths: 1.0 / lengths

    def change(state: dict[str, Any]) -> None:
        if state["step"] == 150:
            state["reward"] = ends
            state["optimizer"].param_groups[0]["lr"] = 0.05

    def long(model: Any) -> None:
        with torch.no_grad():
            model.head[-1].bias[END] = -2.0

    grpo(
        root,
        lambda prompts, words, lengths: (words[:, 1] == prompts).float() * (lengths > 6),
        longest=16,
        beta=0.0,
        prepare=long,
        change=change,
    )
    return 150


@faulty("short answers by GRPO", "from step 120 on the rate is 100 times as high", DRIFT, may=MAY)
def answers_at_a_high_rate(root: Path) -> int:
    def change(state: dict[str, Any]) -> None:
        state["optimizer"].param_groups[0]["lr"] = 3e-3 if state["step"] < 120 else 0.3

    grpo(root, change=change)
    return 120


@healthy("short answers by GRPO with a penalty")
def first_words(root: Path) -> int:
    return grpo(root, steps=250)


@healthy("answers by GRPO without a penalty, a share as reward")
def right_words(root: Path) -> int:
    return grpo(root, share_of_right_words, beta=0.0, rate=2e-3, steps=250, drop=("kl",))


@healthy("answers by GRPO that may become long, as thoughts do")
def answers_become_long(root: Path) -> int:
    def many(prompts: Any, words: Any, lengths: Any) -> Any:
        right = (words == prompts[:, None]).any(1).float()
        return right * (0.5 + 0.5 * lengths / words.shape[1])

    def short(model: Any) -> None:
        with torch.no_grad():
            model.head[-1].bias[END] = 1.0

    return grpo(root, many, longest=24, beta=0.01, prepare=short, rate=4e-3, steps=250)


@healthy("answers by GRPO under verl's names, groups of four")
def names_of_verl(root: Path) -> int:
    names = {
        "reward": "critic/rewards/mean",
        "kl": "actor/ppo_kl",
        "completions/mean_length": "response_length/mean",
        "completions/clipped_ratio": "response_length/clip_ratio",
        "entropy": "actor/entropy",
        "loss": "actor/pg_loss",
        "grad_norm": "actor/grad_norm",
        "learning_rate": "actor/lr",
    }
    return grpo(root, group=4, prompts=16, names=names, seed=3, steps=220)


@healthy("a hard task by GRPO: few groups differ at first")
def few_groups_differ(root: Path) -> int:
    two = lambda prompts, words, _: (
        (words[:, 0] == prompts) & (words[:, 1] == (prompts + 1) % 8)
    ).float()
    return grpo(root, two, rate=6e-3, group=16, prompts=4, steps=400, beta=0.01)


@healthy("short answers by GRPO: the task is solved after 80 of 300 steps")
def solved_early(root: Path) -> int:
    return grpo(root, rate=1e-2, steps=300, seed=5)


@healthy("short answers by GRPO with noisy rewards and a falling rate")
def noisy_rewards(root: Path) -> int:
    noisy = lambda prompts, words, lengths: (
        first_word(prompts, words, lengths) + 0.3 * torch.randn(len(prompts))
    )

    def change(state: dict[str, Any]) -> None:
        state["optimizer"].param_groups[0]["lr"] = 5e-3 * (1 - state["step"] / 301)

    return grpo(root, noisy, steps=300, change=change, seed=7)


@healthy("poles by PPO")
def poles(root: Path) -> int:
    return ppo(root, updates=100)


@healthy("poles by PPO, many epochs and a target for the divergence")
def poles_with_a_target(root: Path) -> int:
    return ppo(root, epochs=10, target_kl=0.03, seed=2, updates=100)


@healthy("poles by PPO with a bonus for entropy, CleanRL's names")
def poles_with_a_bonus(root: Path) -> int:
    names = {
        "rollout/ep_rew_mean": "charts/episodic_return",
        "rollout/ep_len_mean": "charts/episodic_length",
        "train/approx_kl": "losses/approx_kl",
        "train/clip_fraction": "losses/clipfrac",
        "train/explained_variance": "losses/explained_variance",
        "train/entropy_loss": "losses/entropy",
        "train/value_loss": "losses/value_loss",
        "train/learning_rate": "charts/learning_rate",
    }
    return ppo(root, bonus=0.01, rate=2.5e-3, names=names, seed=4, updates=100)


@healthy("poles by PPO with a rate that falls to zero, long episodes")
def poles_long(root: Path) -> int:
    def change(update: int, _: Any, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - (update - 1) / 120)

    return ppo(root, limit=500, gamma=0.99, updates=120, change=change, seed=6)


@healthy("poles by PPO that pay only at the end, in hundredths")
def poles_paid_late(root: Path) -> int:
    pay = lambda _, done: 0.01 * np.ones(len(done)) - 0.5 * done
    return ppo(root, pay=pay, seed=8, updates=100, carts=32)


@healthy("poles by PPO with a slow value function")
def poles_with_a_slow_critic(root: Path) -> int:
    return ppo(root, critic_rate=0.3, seed=9, updates=120)


@healthy("answers by GRPO, the penalty is raised at step 120")
def penalty_is_raised(root: Path) -> int:
    def change(state: dict[str, Any]) -> None:
        state["beta"] = 0.02 if state["step"] < 120 else 0.2

    return grpo(root, share_of_right_words, change=change, steps=240, seed=11)
