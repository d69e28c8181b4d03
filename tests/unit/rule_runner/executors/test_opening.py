import re
import sys

import pytest
from executed_calls import doubled

from rule_runner.errors import TemporaryError, UsageError
from rule_runner.executors import open_executor, opening
from rule_runner.executors.opening import FORMS, opener


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "locals",
        "local:0",
        "local:two",
        "local:-1",
        "local:99999",
        "tcp://host",
        "ray://",
        "http://h:1",
    ],
)
def test_misspelt_executor_is_refused_with_the_forms(spec: str) -> None:
    with (
        pytest.raises(UsageError, match=re.escape(f"An executor is {FORMS}, got {spec!r}.")),
        open_executor(spec),
    ):
        pass


def test_end_of_the_block_waits_for_all_calls() -> None:
    with open_executor("local:1") as executor:
        future = executor.submit(doubled, 21)
    assert future.result(0) == 42


@pytest.mark.parametrize(("spec", "name"), [("ray:2", "ray"), ("tcp://h:1", "dask")])
def test_library_that_is_not_installed_is_named(
    spec: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"rule_runner.executors.{name}_executor", None)
    with (
        pytest.raises(UsageError, match=re.escape(f"pip install 'rule-runner[{name}]'")),
        open_executor(spec),
    ):
        pass


def test_cluster_that_does_not_answer_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        reason = "no\n answer"
        raise ConnectionError(reason)

    monkeypatch.setattr(opening, "_class_of", lambda _: refuse)
    with (
        pytest.raises(TemporaryError, match=r"Executor 'tcp://h:1' cannot be reached: no answer\."),
        open_executor("tcp://h:1"),
    ):
        pass


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("dask:2", {"workers": 2, "attempts": 1}),
        ("ray", {"workers": None, "attempts": 1}),
        ("ray://h:1", {"address": "ray://h:1", "attempts": 1}),
        ("tls://h:1", {"address": "tls://h:1", "attempts": 1}),
    ],
)
def test_attempts_reach_the_library(
    spec: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, object]] = []
    monkeypatch.setattr(opening, "_class_of", lambda _: lambda **chosen: opened.append(chosen))
    opener(spec, attempts=1)()
    assert opened == [options]
