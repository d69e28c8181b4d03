"""The base configuration of ProfilerReport, which takes the parameters of all other rules."""

from dataclasses import fields
from typing import Any, Final

from rule_runner.debugger import profiler_rule_configs as configs
from rule_runner.debugger.checks import require

OPT_OUT: Final = "opt_out_telemetry"
RULES: Final = {
    rule.__name__.lower(): rule
    for rule in (
        configs.BatchSize,
        configs.CPUBottleneck,
        configs.Dataloader,
        configs.GPUMemoryIncrease,
        configs.IOBottleneck,
        configs.LoadBalancing,
        configs.LowGPUUtilization,
        configs.MaxInitializationTime,
        configs.OverallFrameworkMetrics,
        configs.OverallSystemUsage,
        configs.StepOutlier,
    )
}


class ProfilerReport(configs.ProfilerRuleBase):
    """A report on all that the profiler rules find.

    Parameters
    ----------
    rule_parameters
        ``<RuleName>_<parameter>=value``, names in any case, each value as the class of that rule
        takes it; and `opt_out_telemetry`: a boolean, or the string of one.

    Raises
    ------
    AssertionError
        If the rule is unknown, or rejects the value.
    TypeError
        If the rule has no such parameter, or the value is not a number.
    """

    def __init__(self, **rule_parameters: Any) -> None:
        for key, value in rule_parameters.items():
            _check(key, value)
        self._take(rule_parameters)


def _check(key: str, value: Any) -> None:
    if key.lower() == OPT_OUT:
        booleans = {"true", "false"}
        require(str(value).lower() in booleans, OPT_OUT, "True or False", value)
        return
    rule_name, underscore, name = key.lower().partition("_")
    require(bool(underscore), "names", "<rule_name>_<parameter_name>", key)
    names = ", ".join(rule.__name__ for rule in RULES.values())
    require(rule_name in RULES, "names", f"<rule name>_..., a rule name one of {names}", key)
    kinds = {item.name: item.metadata[configs.KIND] for item in fields(RULES[rule_name])}
    if name not in kinds:
        rule = RULES[rule_name].__name__
        msg = f"Rule {rule} has no parameter {name!r}. Its parameters: {', '.join(kinds)}."
        raise TypeError(msg)
    configs.check(name, kinds[name], value)
