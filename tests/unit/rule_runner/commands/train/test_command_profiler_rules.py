"""Rules of a training that is profiled: those over tensors, and those over the profile."""

from rule_runner.commands.train.command import split_request
from rule_runner.config.request import EvaluationRequest, RuleRequest


def request(*names: str, **fields: tuple[str, ...]) -> EvaluationRequest:
    chosen = [
        RuleRequest(id=name.partition("=")[0] if "=" in name else None, name=name.split("=")[-1])
        for name in names
    ]
    return EvaluationRequest(rules=tuple(chosen), **fields)


def names(part: EvaluationRequest) -> list[str | None]:
    return [rule.id or rule.name for rule in part.rules]


def test_without_rules_the_profile_has_a_report() -> None:
    tensors, profile = split_request(request())
    assert (names(tensors), names(profile)) == ([], ["ProfilerReport"])


def test_rules_go_where_they_judge() -> None:
    tensors, profile = split_request(
        request(
            *("Overfit", "slow=stepoutlier", "CPUBottleneck"),
            parameters=("slow.stddev=2", "CPUBottleneck.threshold=9", "Overfit.patience=1"),
            modes=("observe", "slow=enforce"),
            actions=("slow=webhook:http://x", "email:a@b"),
        )
    )
    assert names(tensors) == ["Overfit"]
    assert names(profile) == ["ProfilerReport", "slow", "CPUBottleneck"]
    assert tensors.parameters == ("Overfit.patience=1",)
    assert profile.parameters == ("slow.stddev=2", "CPUBottleneck.threshold=9")
    assert (tensors.modes, profile.modes) == (("observe",), ("slow=enforce", "observe"))
    assert (tensors.actions, profile.actions) == (("email:a@b",), ("slow=webhook:http://x",))


def test_a_source_is_a_rule_over_tensors() -> None:
    own = RuleRequest(name="StepOutlier", source="mine.py")
    tensors, profile = split_request(EvaluationRequest(rules=(own,)))
    assert (tensors.rules, names(profile)) == ((own,), ["ProfilerReport"])
