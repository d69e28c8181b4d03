"""SourceOptions: which of two sets of options counts."""

from rule_core.sources.options import LogPattern, NameRule, SourceOptions


def test_options_are_completed_by_those_that_do_not_contradict_them() -> None:
    first = SourceOptions((NameRule("a"),), (), "", ("loss=x",), ("eval=v*",))
    second = SourceOptions(
        (NameRule("b"),), (LogPattern("n", "p"),), "when", ("lr=x", "lr=y"), ("train=v*", "eval=w")
    )
    assert first.over(second) == SourceOptions(
        (NameRule("a"), NameRule("b")),
        (LogPattern("n", "p"),),
        "when",
        ("loss=x", "lr=y"),
        ("eval=v*", "eval=w"),
    )
    assert second.over(first).map == ("lr=x", "lr=y")
    assert SourceOptions(step_column="row").over(second).step_column == "row"
