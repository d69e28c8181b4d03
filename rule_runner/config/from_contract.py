"""Makes the rule job that the parameters of a contract describe."""

import os
from typing import Final

from rule_core.rules.params import nearest
from rule_runner.config.defaults import ACTIONS
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.profiler_windows import judges_windows, over_windows
from rule_runner.config.request import ContainerRule
from rule_runner.config.sagemaker_contract import (
    RULE,
    SOURCE,
    STEPS,
    Contract,
    contract_of,
    is_platform,
    is_reserved,
)
from rule_runner.errors import ParameterError
from rule_runner.loading.loader import LoadedRule, load_from, load_named
from rule_runner.loading.parameters import accepts
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)


def container_job(rule: ContainerRule) -> RuleJobConfig:
    """Return the rule job of a rule container.

    Raises
    ------
    ClientError
        If the rule cannot be loaded, or a parameter of the runner is wrong.
    """
    job = rule_job(contract_of(rule.environment, rule.parameters), rule.name)
    return over_windows(job) if judges_windows(job.loaded, otherwise=rule.profiler) else job


def rule_job(contract: Contract, name: str, *, run: bool = True) -> RuleJobConfig:
    """Return the rule job of a contract, called `name`.

    Parameters
    ----------
    run
        Whether the rule's file is run here, or only parsed.

    Raises
    ------
    ClientError
        If the rule cannot be loaded, or a parameter of the runner is wrong.
    """
    loaded = _load(contract, run=run)
    # A parameter of the rule itself takes precedence.
    start, end = (None if accepts(loaded, key) else contract.step(key) for key in STEPS)
    actions = contract.environment.get(ACTIONS, "")
    parameters = _parameters(contract, loaded)
    return RuleJobConfig(
        name,
        loaded,
        parameters,
        actions,
        start,
        end,
        contract.mode,
        min_coverage=contract.min_coverage,
    )


def _load(contract: Contract, *, run: bool) -> LoadedRule:
    """Return the rule that a contract names; none is the user's error."""
    name, source = contract.environment.get(RULE), contract.environment.get(SOURCE)
    if source:
        return load_from(source, name or None, run=run)
    if not name:
        raise ParameterError(
            f"No rule is named. Give {RULE!r}, the class name of a rule, as a parameter."
        )
    return load_named(name, run=run)


def _parameters(contract: Contract, loaded: LoadedRule) -> dict[str, str]:
    """Return the rule's parameters: all that the job declares, or those the rule names."""
    if contract.declared is not None:
        return {
            name: value
            for name, value in contract.declared.items()
            if not is_platform(name) and (accepts(loaded, name) or not is_reserved(name))
        }
    parameters = {name: text for name, text in os.environ.items() if accepts(loaded, name)}
    names = [param.name for param in loaded.rule_class.PARAMS]
    for name in os.environ:
        near = None if name in names or is_reserved(name) else nearest(name, names)
        if near is not None and near not in parameters and not is_platform(name):
            _log.warning(
                "parameter_perhaps_misspelt",
                reason=f"Environment variable {name!r} is no parameter. Did you mean {near!r}?",
            )
    return parameters
