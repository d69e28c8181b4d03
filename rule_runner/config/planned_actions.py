"""The actions of a rule job: those of its action_json, of its parameters and of the operator."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.actions.actions import Actions
from rule_core.rules.actions.parsing import LIMIT
from rule_runner.errors import ParameterError, translated

if TYPE_CHECKING:
    from rule_core.rules.actions.base import Action
    from rule_runner.config.model import RuleJobConfig


def planned(
    job: "RuleJobConfig", arguments: Mapping[str, object], training_job: str | None
) -> "tuple[Action, ...]":
    """Return the actions of a rule job, in order.

    Parameters
    ----------
    arguments
        Arguments of the rule's constructor, some of which may be actions.
    training_job
        Name of the training job, for actions that stop one without naming it; None if unknown.

    Raises
    ------
    ParameterError
        If the JSON cannot be read, no training job is named, or there are too many.
    """
    name = job.loaded.name
    declared = job.loaded.rule_class.declared_actions(arguments)
    with translated(ParameterError, SMDebugValueError):
        own = [*Actions(job.actions, name).actions, *Actions(declared, name).actions]
    actions = [_named(action, name, training_job) for action in (*own, *job.operator_actions)]
    if len(actions) > LIMIT:
        raise ParameterError(
            f"Rule {job.configuration_name!r} takes at most {LIMIT} actions, got {len(actions)}."
        )
    return tuple(actions)


def _named(action: "Action", rule: str, training_job: str | None) -> "Action":
    """Return an action with the training job that it stops, if it stops one."""
    from rule_core.rules.actions.stop_training import StopTrainingAction

    if not isinstance(action, StopTrainingAction) or action.training_job_prefix:
        return action
    if not training_job:
        raise ParameterError(
            f"Rule {rule!r} is to stop a training job, and its name is not known. "
            "Give it to the action, or as --training-job-name."
        )
    return replace(action, training_job_prefix=training_job, exact=True)
