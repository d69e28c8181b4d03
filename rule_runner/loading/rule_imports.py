"""Lets a rule file, and no other code, import modules from its folder."""

import builtins
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

# Prefix of the packages for folders of rule files: one for each load, so that names never collide.
_PACKAGE: Final = "_rule_folder_"
_NUMBERS: Final = itertools.count(1)
# Absolute imports never take these from a rule's folder: a rule file `statistics.py` may import the
# standard library's module, and a rule file in a checkout of this project must use the same Rule.
_ELSEWHERE: Final = sys.stdlib_module_names | {"smdebug", "builtin_rules", "rule_runner"}


def new_package(folder: Path) -> str:
    """Create a package for the modules in `folder`, and return its name."""
    spec = ModuleSpec(f"{_PACKAGE}{next(_NUMBERS)}", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[spec.name] = module_from_spec(spec)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    return spec.name


class FolderLoader(SourceFileLoader):
    """Loads a module of a rule's folder: writes no bytecode, and imports from the folder first."""

    def __init__(self, fullname: str, path: str, code: CodeType | None = None) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, compiling it unless it was passed in."""
        path = self.get_filename(fullname)
        return self._code or self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with an ``__import__`` that searches its folder."""
        package = module.__name__.partition(".")[0]
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _importer(package)}
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules of the packages for rule folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(_PACKAGE):
            return None
        for folder in path:
            spec = FileFinder(
                folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (FolderLoader, SOURCE_SUFFIXES)
            ).find_spec(fullname, target)
            if spec is not None:
                return spec
        return None


_FINDER: Final = _Finder()


@cache
def _is_beside(package: str, name: str) -> bool:
    """Return whether to import the top-level module `name` from the package's folder.

    A folder without `__init__.py` is used only if nothing else has the name.
    """
    if name in _ELSEWHERE:
        return False
    spec = _FINDER.find_spec(f"{package}.{name}", sys.modules[package].__path__)
    if spec is None or spec.has_location:
        return spec is not None
    return name not in sys.modules and PathFinder.find_spec(name) is None


def _importer(package: str) -> Callable[..., ModuleType]:
    """Return the `__import__` function of the modules in the folder of `package`."""

    def import_(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the name in __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002 - likewise
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or not _is_beside(package, top):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(f"{package}.{name}", globals, locals, fromlist or ())
        return module if fromlist else sys.modules[f"{package}.{top}"]

    return import_
