import re

import pytest

from executed_calls import doubled
from rule_runner.errors import UsageError
from rule_runner.fleet.executors import open_executor


@pytest.mark.parametrize("spec", ["", "locals", "local:0", "local:two", "local:-1", "local:99999"])
def test_misspelt_executor_is_refused_with_the_forms(spec: str) -> None:
    with (
        pytest.raises(UsageError, match=re.escape(f"An executor is local[:N], got {spec!r}.")),
        open_executor(spec),
    ):
        pass


def test_end_of_the_block_waits_for_all_calls() -> None:
    with open_executor("local:1") as executor:
        future = executor.submit(doubled, 21)
    assert future.result(0) == 42
