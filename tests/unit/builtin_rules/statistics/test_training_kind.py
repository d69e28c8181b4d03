"""training_kind: signs in the names of tensors, and the order in which they count."""

from collections.abc import Sequence

import pytest

from builtin_rules.statistics.training_kind import TrainingKind, is_resumed, training_kind
from rule_core.model.segments import global_step


class Steps:
    """A trial that has the steps of one segment."""

    def __init__(self, segment: int, steps: Sequence[int]) -> None:
        self._steps = [global_step(segment, step) for step in steps]

    def steps(self) -> list[int]:
        return self._steps


class Names:
    """A trial that has names alone."""

    def __init__(self, names: Sequence[str], losses: Sequence[str] = ()) -> None:
        self.names = [*names, *losses]
        self.losses = [*losses]

    def tensor_names(self, collection: str = "") -> list[str]:
        return self.losses if collection == "losses" else self.names


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["generator.fc.weight", "discriminator.fc.weight"], TrainingKind.ADVERSARIAL),
        (["Pair_generator.0.weight", "Pair_critic.0.weight"], TrainingKind.ADVERSARIAL),
        (["netG.main.0.weight", "netD.main.0.weight"], TrainingKind.ADVERSARIAL),
        (["train/loss_G", "train/loss_D"], TrainingKind.ADVERSARIAL),
        (["d_loss", "g_loss"], TrainingKind.ADVERSARIAL),
        (["loss_gan", "loss_l1"], TrainingKind.ADVERSARIAL),
        (["Sequential_0.weight", "model/idle_models"], TrainingKind.ADVERSARIAL),
        (["generator.weight"], TrainingKind.SUPERVISED),  # alone, such as a text generator
        (["train/policy_gradient_loss", "train/loss"], TrainingKind.REINFORCEMENT),
        (["rollout/ep_rew_mean"], TrainingKind.REINFORCEMENT),
        (["losses/td_error", "losses/qf1_loss"], TrainingKind.REINFORCEMENT),
        (["train/approx_kl"], TrainingKind.REINFORCEMENT),
        (["reward", "reward_std", "num_tokens"], TrainingKind.REINFORCEMENT),  # GRPO of TRL
        (["policy/approxkl_avg", "policy/clipfrac_avg"], TrainingKind.REINFORCEMENT),  # its PPO
        (["rewards/chosen", "rewards/margins"], TrainingKind.SUPERVISED),  # its DPO
        (["eval_rewards/chosen", "eval/rewards/accuracies"], TrainingKind.SUPERVISED),
        (["test rewards", "loss"], TrainingKind.REINFORCEMENT),
        (["reward", "loss"], TrainingKind.REINFORCEMENT),
        (["AverageEpRet", "LossPi"], TrainingKind.REINFORCEMENT),  # Spinning Up
        (["eprewmean", "entloss"], TrainingKind.REINFORCEMENT),  # OpenAI Baselines
        (["avg_return", "loss"], TrainingKind.REINFORCEMENT),
        (["AverageTestEpRet", "LossQ"], TrainingKind.REINFORCEMENT),
        (["total_return", "loss"], TrainingKind.SUPERVISED),  # of a portfolio
        (["reward_model_loss"], TrainingKind.SUPERVISED),
        (["loss", "loss_q0", "loss_q3"], TrainingKind.SUPERVISED),  # of guided-diffusion
        (["reward_accuracy", "loss"], TrainingKind.SUPERVISED),  # of a model of rewards
        (["model.embed_tokens.weight", "lm_head.weight"], TrainingKind.LANGUAGE_MODEL),
        (["transformer.wte.weight"], TrainingKind.LANGUAGE_MODEL),
        (["eval_perplexity"], TrainingKind.LANGUAGE_MODEL),
        (["train-logloss", "validation-logloss"], TrainingKind.BOOSTED_TREES),
        (["train-rmse", "feature_importance/gain/f1"], TrainingKind.BOOSTED_TREES),
        (["train-rmse", "average_shap/f0", "trees/0"], TrainingKind.BOOSTED_TREES),
        (["fc.weight", "gradient/fc.weight"], TrainingKind.SUPERVISED),
        (["labels", "predictions"], TrainingKind.SUPERVISED),
        (["train/box_loss", "val/cls_loss"], TrainingKind.SUPERVISED),
    ],
)
def test_names_are_signs_of_a_kind(names: list[str], kind: TrainingKind) -> None:
    assert training_kind(Names(names, ["loss"])) is kind


def test_without_a_loss_the_kind_is_unknown() -> None:
    assert training_kind(Names(["fc.weight"])) is TrainingKind.UNKNOWN


def test_signs_of_an_adversarial_training_come_first() -> None:
    names = ["generator.embed_tokens.weight", "discriminator.lm_head.weight", "policy_loss"]
    assert training_kind(Names(names)) is TrainingKind.ADVERSARIAL


@pytest.mark.parametrize(
    ("segment", "steps", "expected"),
    [
        (0, [40, 41, 42], False),
        (1, [40, 41, 42], True),
        (1, [0, 1, 2], False),
        (1, [1, 2, 3], False),
        (2, [500, 1000, 1500], False),
        (1, [3000, 3500, 4000], True),
        (1, [1], True),  # which may go on from anywhere
    ],
)
def test_a_run_that_begins_anew_is_not_resumed(
    segment: int, steps: Sequence[int], expected: bool
) -> None:
    trial = Steps(segment, steps)
    assert is_resumed(trial, trial.steps()[-1]) is expected
