"""smdebug holds the promised names and `smdebug.rules.extensions`, and nothing else."""

import ast
import importlib
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from recorded import MISSING, shared_folder

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "smdebug"
EXTENSIONS = "smdebug.rules.extensions"
# Names by module: those that the documents, the old library and public rule files import.
PROMISED: dict[str, list[str]] = json.loads(
    (ROOT / "tests" / "data" / "promised_names.json").read_text(encoding="utf-8")
)
FRAMEWORKS = {
    "keras": "keras",
    "lightning": "lightning",
    "pytorch": "torch",
    "tensorflow": "keras",
    "transformers": "transformers",
    "xgboost": "xgboost",
}
FENCE = re.compile(r"```(?:python|py)?\n(.*?)```", re.DOTALL)
IMPORT = re.compile(r"^\s*from (smdebug[\w.]*) import \(?([\w, \n]+?)\)?$", re.MULTILINE)


def modules() -> Iterator[str]:
    """Yield the dotted names of smdebug's modules."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def require_framework(module: str) -> None:
    framework = FRAMEWORKS.get(module.split(".")[1]) if "." in module else None
    if framework is not None and find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed.")


def exported(module: ModuleType) -> list[str]:
    """Return the names that type checkers let users import: those of ``import X as X`` too."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {alias.asname for node in imports for alias in node.names if alias.asname}
    defined = names | {*getattr(module, "__all__", ()), *({"__version__"} & {*vars(module)})}
    return sorted(defined)


def test_there_are_the_promised_modules_and_one_of_extensions() -> None:
    assert [*modules()] == sorted([*PROMISED, EXTENSIONS])


@pytest.mark.parametrize("module", PROMISED)
def test_a_module_exports_its_promised_names_and_no_others(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_framework(module)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    imported = importlib.import_module(module)
    assert exported(imported) == sorted(PROMISED[module])
    assert [name for name in PROMISED[module] if not hasattr(imported, name)] == []


@pytest.mark.parametrize("module", PROMISED)
def test_a_module_defines_nothing_of_its_own(module: str) -> None:
    path = PACKAGE.parent / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    defined = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    # The package itself imports trials lazily and names the version that it stands for.
    assert [node.name for node in defined] == (["__getattr__"] if module == "smdebug" else [])


def test_every_import_of_the_documents_works() -> None:
    folder = shared_folder() / "documents"
    if not folder.is_dir():
        pytest.skip(MISSING)
    missing = []
    for document in sorted(folder.glob("*.md")):
        code = "\n".join(FENCE.findall(document.read_text(encoding="utf-8")))
        for module, names in IMPORT.findall(code):
            for name in re.findall(r"\w+", names):
                promised = name in PROMISED.get(module, []) or f"{module}.{name}" in PROMISED
                if not promised and name not in {"as", "smd"}:
                    missing.append(f"{module}.{name}")
    assert missing == []
