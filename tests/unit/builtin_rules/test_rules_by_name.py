"""RulesByName: what is listed is not imported; what is asked for is."""

import subprocess
import sys
from pathlib import Path

import pytest

import builtin_rules
from builtin_rules import RULES
from builtin_rules.profiler_table import PROFILER_RULES
from builtin_rules.rules_by_name import RulesByName
from smdebug.rules import Rule

ROOT = Path(__file__).parents[3]
LISTING = """
import sys
from builtin_rules import RULES
from builtin_rules.profiler_table import PROFILER_RULES

every = RULES | PROFILER_RULES
assert len(every) == len(RULES) + len(PROFILER_RULES) == len(list(every))
assert "AllZero" in every and "ProfilerReport" in every and "Zebra" not in every
every["AllZero"]
print(*(name for name in sys.modules if name.startswith("builtin_rules.tensors.")))
"""


def test_only_what_is_asked_for_is_imported() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", LISTING], cwd=ROOT, capture_output=True, text=True, check=True
    )
    gradients = "builtin_rules.tensors.gradients"
    assert listed.stdout.split() == [gradients, f"{gradients}.all_zero"]


def test_both_tables_hold_their_rules_in_order() -> None:
    every = RULES | PROFILER_RULES
    assert list(every) == [*RULES, *PROFILER_RULES]
    assert [rule.__name__ for rule in every.values()] == list(every)


def test_what_is_not_listed_is_a_key_error_and_an_attribute_error() -> None:
    rules = RulesByName[Rule]({"AllZero": "tensors.gradients.all_zero"})
    with pytest.raises(KeyError, match="Zebra"):
        rules["Zebra"]
    with pytest.raises(AttributeError, match=r"^module 'builtin_rules' has no attribute 'Zebra'$"):
        _ = builtin_rules.Zebra


def test_the_package_has_the_rules_of_the_table() -> None:
    assert all(getattr(builtin_rules, name) is RULES[name] for name in RULES)
