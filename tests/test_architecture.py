"""Which few files may do what no other may; who may import whom is in pyproject.toml."""

import ast
import importlib.util
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("rule_core", "smdebug", "builtin_rules", "rule_runner")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
STANDARD = sys.stdlib_module_names


def within(folder: str) -> set[str]:
    """Return the files of a folder and those below it."""
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")}


EXTRA = {
    "rule_core/optional_imports.py",
    *within("rule_core/analysis"),
    *within("rule_core/profiler/python_profiles"),
}
# What only these files may import; import-linter holds boto3, docker and click.
ONLY_IN = {
    "regex": {"rule_core/model/patterns.py"},
    "google_crc32c": {"rule_core/format/tfrecord.py"},
    # The extra `profiler`.
    "pandas": EXTRA,
    "bokeh": EXTRA,
    "matplotlib": EXTRA,
}
# Packages that import the framework they are for: no other does. The first that fits counts.
FRAMEWORKS = (
    {"rule_core.frameworks.keras.tensorflow_gradients": ("keras", "tensorflow")}
    | {
        f"{parent}.{package}": frameworks
        for parent in ("rule_core.frameworks", "smdebug")
        for package, frameworks in {
            "pytorch": ("torch",),
            "lightning": ("torch", "lightning"),
            "transformers": ("torch", "transformers", "transformers.trainer_callback"),
            "xgboost": ("xgboost",),
            "keras": ("keras",),
        }.items()
    }
    | {
        "smdebug.tensorflow": ("keras",),
        "rule_runner.executors.dask_executor": ("dask", "distributed"),
        "rule_runner.executors.ray_executor": ("ray",),
        # The service counts itself by prometheus_client, which looks at its process when imported.
        **dict.fromkeys(
            ("rule_runner.service", "rule_runner.commands.serve"), ("prometheus_client",)
        ),
    }
)
# Decides without I/O: what it needs of the world, it is given.
SANS_IO = {"results/status", "results/state", "notify/event"}
NO_WORLD = {"os", "io", "pathlib", "time", "socket", "subprocess", "threading", "sys", "structlog"}

# What imports modules by their names.
LOADERS = {
    "rule_runner/__init__.py",
    "builtin_rules/rules_by_name.py",
    "rule_core/kernels/sweep.py",
    "rule_core/sources/formats.py",
    "rule_runner/cli/program/late_commands.py",
    "rule_runner/loading/loader.py",
    "rule_runner/loading/rule_imports.py",
    "smdebug/rules/extensions.py",
    "rule_runner/logs.py",  # configures structlog when it is imported
}


def name_of(path: Path) -> str:
    """Return a module's dotted name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=1)
def parsed(path: Path) -> ast.Module:
    """Return a file as a tree; a test asks for the same one several times."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, typing: bool = False) -> Iterator[str]:
    """Yield the dotted names that a file imports, wherever in it; of types only if `typing`."""
    tree = parsed(path)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        types_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if types_only and not typing:
            skipped |= {child for part in node.body for child in ast.walk(part)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            for alias in node.names:
                is_module = (
                    module == "importlib"
                    or (ROOT / module.replace(".", "/") / f"{alias.name}.py").exists()
                )
                yield f"{module}.{alias.name}" if is_module else module


def ids(path: Path) -> str:
    return name_of(path)


def dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_some_things_are_done_in_one_place(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    for module in imports(path, typing=True):
        package = module.split(".")[0]
        assert place in ONLY_IN.get(package, {place}), module
    dynamic = {one for one in imports(path) if one.startswith("importlib")}
    if place not in LOADERS:
        assert dynamic <= {"importlib.metadata"}
    names = {dotted(node) for node in ast.walk(parsed(path))}
    if place != "rule_core/clock.py":
        assert "time.sleep" not in names
    if place != "rule_runner/logs.py":
        assert names.isdisjoint({"structlog.configure", "logging.basicConfig"})
    if not place.startswith("rule_runner/commands/demo/"):
        assert names.isdisjoint({"pickle.loads", "marshal.loads", "eval", "exec", "os.system"})


@pytest.mark.parametrize("name", sorted(SANS_IO))
def test_what_decides_does_no_input_or_output(name: str) -> None:
    path = ROOT / "rule_runner" / f"{name}.py"
    found = set(imports(path))
    assert {one.split(".")[0] for one in found} & NO_WORLD == set()
    found -= {"rule_core.model.segments", "rule_core.rules.evidence", "rule_core.severity"}
    assert {one.split(".")[0] for one in found} - {*STANDARD, "msgspec", "rule_runner"} == set()


def test_binding_needs_types_and_texts_only() -> None:
    found = set(imports(ROOT / "rule_runner" / "loading" / "parameters.py"))
    assert {one.split(".")[0] for one in found} & NO_WORLD == set()


def test_every_file_opens_with_one_sentence() -> None:
    bad = []
    for path in SOURCES:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if not text or not text.partition("\n")[0].endswith("."):
            bad.append(name_of(path))
    assert bad == []


EFFECTS = """
import builtins, importlib, logging, os, socket, subprocess, sys, threading

frameworks, modules = sys.argv[1].split(), sys.argv[2:]
# What others do when they are imported is theirs.
for name in frameworks:
    importlib.import_module(name)
import click, google_crc32c, ml_dtypes, msgspec, numpy, regex, rich.console, structlog
import rich.progress, rich.table, rich.text, importlib.metadata, multiprocessing.connection

wrong = []
def seen(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        name = os.fsdecode(args[0])
        flags = args[2] if isinstance(args[2], int) else 0
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not name.endswith((".pyc",)) and "__pycache__" not in name:
            wrong.append((event, name))
        elif not name.endswith((".py", ".pyc", ".so")):
            wrong.append((event, name))
    elif event.startswith(("socket.", "subprocess.", "os.system", "os.putenv", "os.mkdir",
                           "_thread.start_new_thread", "os.fork")):
        if "__pycache__" not in str(args):
            wrong.append((event, str(args)))

state = (dict(os.environ), list(logging.getLogger().handlers), logging.getLogger().level,
         threading.active_count(), structlog.get_config())
sys.addaudithook(seen)
for name in modules:
    importlib.import_module(name)
now = (dict(os.environ), list(logging.getLogger().handlers), logging.getLogger().level,
       threading.active_count(), structlog.get_config())
print(wrong, [one for one, two in zip(state, now) if one != two])
print(sorted({"torch", "lightning", "transformers", "xgboost", "keras"} & set(sys.modules)))
"""


def effects(tmp_path: Path, modules: Sequence[str], frameworks: Sequence[str]) -> list[str]:
    """Return what importing modules does to the world, and which frameworks are there then."""
    found = subprocess.run(
        [sys.executable, "-c", EFFECTS, " ".join(frameworks), *modules],
        cwd=tmp_path,
        env={
            **os.environ,
            "KERAS_BACKEND": "torch",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.stderr, found.returncode) == ("", 0)
    assert list(tmp_path.iterdir()) == []
    return found.stdout.splitlines()


def framework_package(module: str) -> str:
    """Return the package for a framework that a module belongs to, or ""."""
    return next((name for name in FRAMEWORKS if f"{module}.".startswith(f"{name}.")), "")


NAMES = [name_of(path) for path in SOURCES if path.stem != "__main__"]


def test_importing_has_no_effect(tmp_path: Path) -> None:
    modules = [name for name in NAMES if not framework_package(name)]
    assert effects(tmp_path, modules, ()) == ["[] []", "[]"]


@pytest.mark.parametrize("frameworks", sorted(set(FRAMEWORKS.values())), ids=", ".join)
def test_importing_for_a_framework_has_no_effect(
    tmp_path: Path, frameworks: tuple[str, ...]
) -> None:
    for framework in frameworks:
        if importlib.util.find_spec(framework.partition(".")[0]) is None:
            pytest.skip(f"{framework} is not installed.")
    modules = [name for name in NAMES if FRAMEWORKS.get(framework_package(name)) == frameworks]
    assert modules
    assert effects(tmp_path, modules, frameworks)[0] == "[] []"


def test_every_file_beside_the_code_is_installed_with_it() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = declared["tool"]["setuptools"]["package-data"]
    sources = {
        path
        for package, names in declared["tool"]["setuptools"]["exclude-package-data"].items()
        for name in names
        for path in (ROOT / package.replace(".", "/")).glob(name)
    }
    for package in PACKAGES:
        found = {path for pattern in patterns[package] for path in (ROOT / package).glob(pattern)}
        others = {
            path
            for path in (ROOT / package).rglob("*")
            if path.is_file() and path.suffix not in {".py", ".pyc", ".so"}
        }
        assert others - found - sources == set()
