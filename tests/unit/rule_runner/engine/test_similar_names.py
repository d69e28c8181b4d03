"""Nearest names: suggestions for a rule, cheap and few."""

import pytest

from rule_runner.engine.similar_names import KINDS, nearest_names


@pytest.mark.parametrize(
    ("missed", "names", "expected"),
    [
        pytest.param(
            ["collection 'gradients'"],
            ["loss", "gradient/fc.weight", "gradient/fc.bias", "fc.weight"],
            ["gradient/fc.bias", "gradient/fc.weight", "fc.weight", "loss"],
            id="collection",
        ),
        pytest.param(
            ["pattern ['relu_output', 'tanh']"],
            ["loss", "net.relu", "ReLU_output_0", "conv_output_0"],
            ["ReLU_output_0", "net.relu", "conv_output_0", "loss"],
            id="the-likest-of-several-patterns",
        ),
        pytest.param(
            ["tensor 'los'"], [f"layer{at}.w" for at in range(9)], ["layer0.w"], id="digits"
        ),
        pytest.param(["tensor 'a'"], list("bcdefgh"), list("bcdef"), id="five-at-most"),
        pytest.param(["tensor 'a'"], ["a" * 999], ["a" * 100 + "..."], id="long"),
        pytest.param([], ["a"], [], id="nothing-was-looked-for"),
        pytest.param(["pattern '[0-9]+'"], ["a"], [], id="no-words"),
        pytest.param(["tensor 'a'"], [], [], id="no-names"),
        pytest.param(["tensor 'a'"], ["0"], ["0"], id="name-without-letters"),
    ],
)
def test_nearest_names(missed: list[str], names: list[str], expected: list[str]) -> None:
    assert expected == nearest_names(missed, names)


def test_of_very_many_names_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    likeness = nearest_names.__globals__["_likeness"]
    monkeypatch.setitem(
        nearest_names.__globals__,
        "_likeness",
        lambda sought, name: asked.append(name) or likeness(sought, name),
    )
    letters = "abcdefghij"
    names = [f"w{a}{b}{c}{d}" for a in letters for b in letters for c in letters for d in letters]
    assert len(nearest_names(["tensor 'loss'"], names)) == 5
    assert (len(names), len(asked)) == (10_000, KINDS)
