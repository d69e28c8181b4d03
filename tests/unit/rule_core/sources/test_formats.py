"""Formats of other packages, and those that cannot be loaded."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import plugin_source
import pytest

from rule_core.sources.formats import GROUP, MODULES, format_named, formats, load_formats
from smdebug.exceptions import SMDebugValueError


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_format_of_another_package_comes_first() -> None:
    loaded = load_formats([entry("numbers", "plugin_source:FORMAT")])
    assert loaded.by_kind["numbers"] is plugin_source.FORMAT
    assert next(iter(loaded.by_kind)) == "numbers"
    assert not loaded.problems


def test_class_of_another_package_is_called() -> None:
    loaded = load_formats([entry("numbers", "plugin_source:NumbersFormat")])
    assert isinstance(loaded.by_kind["numbers"], plugin_source.NumbersFormat)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("gone", "no_such_package:FORMAT", "cannot be loaded: ModuleNotFoundError: No module"),
        ("gone", "plugin_source:NOTHING", "cannot be loaded: AttributeError: module 'plugin"),
        ("gone", "plugin_source:NumbersSource", "cannot be loaded: TypeError: NumbersSource"),
        ("gone", "math:pi", "is not a SourceFormat: it lacks 'kind'"),
        ("other", "plugin_source:FORMAT", "calls itself 'numbers'. Give the entry point that name"),
        ("csv", "plugin_source:FORMAT", "is ignored: a format of rule-runner has the same name"),
    ],
)
def test_broken_format_is_named_in_a_sentence(name: str, value: str, reason: str) -> None:
    problem = load_formats([entry(name, value)]).problems[name]
    assert problem.startswith(f"Format {name!r} of the entry point {value!r} {reason}")
    assert problem.endswith(".")


def test_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin_source.install(tmp_path)
    plugin_source.install(tmp_path, "no_such_package:FORMAT", "broken")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    formats.cache_clear()
    try:
        assert format_named("numbers") is plugin_source.FORMAT
        with pytest.raises(SMDebugValueError, match=r"^Format 'broken' .* cannot be loaded"):
            format_named("broken")
    finally:
        formats.cache_clear()


def test_format_that_is_not_installed() -> None:
    with pytest.raises(SMDebugValueError, match=r"^Format 'hdf5' is not installed\.$"):
        format_named("hdf5")


def test_every_format_of_this_package_has_its_kind() -> None:
    loaded = load_formats([]).by_kind
    assert list(loaded) == [kind for kind in MODULES if kind in loaded]
    assert all(kind == source_format.kind for kind, source_format in loaded.items())
