"""Each unit test stands where the module it tests stands: tests/unit mirrors the packages."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"
PACKAGES = {"rule_core", "smdebug", "builtin_rules", "rule_runner"}


def source_of(test: Path) -> Path | None:
    """Return the module or package with the longest name that a test's name starts with."""
    folder = ROOT / test.parent.relative_to(UNIT)
    words = test.stem.removeprefix("test_").split("_")
    for length in range(len(words), 0, -1):
        name = "_".join(words[:length])
        for path in (folder / f"{name}.py", folder / name / "__init__.py"):
            if path.exists():
                return path
    return None


def test_every_unit_test_has_its_source() -> None:
    tests = sorted(UNIT.rglob("test_*.py"))
    assert tests
    assert [str(test.relative_to(UNIT)) for test in tests if source_of(test) is None] == []


def test_every_folder_of_unit_tests_is_a_folder_of_sources() -> None:
    folders = {test.parent.relative_to(UNIT) for test in UNIT.rglob("test_*.py")}
    assert {folder.parts[0] for folder in folders} <= PACKAGES
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").exists()} == set()


@pytest.mark.parametrize(
    ("test", "source"),
    [
        ("rule_core/test_clock_any_aspect.py", "rule_core/clock.py"),
        ("rule_runner/test_cli_any_aspect.py", "rule_runner/cli/__init__.py"),
        ("rule_core/test_nothing.py", None),
    ],
)
def test_a_source_is_found_by_the_longest_name(test: str, source: str | None) -> None:
    assert source_of(UNIT / test) == (ROOT / source if source else None)
