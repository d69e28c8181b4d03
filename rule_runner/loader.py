"""Loads a rule class: from the table of built-in rules, or from a file of the user's."""

import builtins
import hashlib
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from urllib.parse import unquote, urlsplit

from rule_runner.errors import RuleSourceError, UnknownRuleError
from rule_runner.fetch import Fetched, fetch_rule_file
from rule_runner.rule_file import RuleFile, read_rule_file
from rule_runner.surroundings import Surroundings
from rule_runner.unopened import Unopened
from rule_runner.wording import raised
from smdebug.rules.params import nearest
from smdebug.rules.rule import Rule
from smdebug.storage.uri import is_s3

# The packages that stand for the folders of rule files: one a load, so that nothing collides.
_PACKAGE: Final = "_rule_folder_"
_NUMBERS: Final = itertools.count(1)
# Never taken from a rule's folder by an absolute import: a rule file called `statistics.py` may
# use the standard library's, and one beside a checkout of this project must see the one Rule.
_ELSEWHERE: Final = sys.stdlib_module_names | {"smdebug", "builtin_rules", "rule_runner"}


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule class and where it came from.

    Parameters
    ----------
    name
        The name in the table of built-in rules, or the class name.
    rule_class
        The class, not abstract.
    builtin
        Whether it came from the table.
    source
        The rule file, absolute; None for a built-in rule.
    source_sha256
        Of the file that defines the rule, in hexadecimal digits.
    fetched
        Where the rule file came from, if not from this machine.
    surroundings
        What a rule of the user's has to itself of this process, and what its file left of it.
    """

    name: str
    rule_class: type[Rule]
    builtin: bool
    source: Path | None
    source_sha256: str
    fetched: Fetched | None = None
    surroundings: Surroundings = field(default_factory=Surroundings, compare=False, repr=False)


def load_builtin(name: str) -> LoadedRule:
    """Return the built-in rule `name`; another case is accepted if the exact name is not there.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    from builtin_rules import RULES  # noqa: PLC0415 - imports every rule; a file needs none

    folded = {known.casefold(): known for known in RULES}
    found = name if name in RULES else folded.get(name.casefold())
    if found is None:
        near = nearest(name, RULES)
        names = ", ".join(map(repr, RULES))
        hint = f"Did you mean {near!r}?" if near else f"Built-in rules: {names}."
        msg = f"Unknown rule {name!r}. {hint}"
        raise UnknownRuleError(msg)
    rule_class = RULES[found]
    source = Path(inspect.getfile(rule_class)).read_bytes()
    return LoadedRule(found, rule_class, True, None, hashlib.sha256(source).hexdigest())


def load_from(place: str, class_name: str | None = None, *, run: bool = True) -> LoadedRule:
    """Return a rule class of the file at a path, a ``file://`` or an ``s3://`` address.

    Parameters
    ----------
    run
        Whether the file is run here; if not, its class is `Unopened`.

    Raises
    ------
    RuleSourceError
        If it cannot be fetched or loaded; see `load_source`.
    """
    source = _located(place)
    if run:
        return load_source(source, class_name)
    file, fetched = _read(source)
    return LoadedRule(file.choose(class_name), Unopened, False, file.path, file.sha256, fetched)


def look_at(place: str, class_name: str | None = None) -> str:
    """Return the name of the rule class that `load_from` would load, and run nothing of the file.

    Raises
    ------
    RuleSourceError
        If it cannot be fetched, does not parse, or seems to have no such class.
    """
    return _read(_located(place))[0].choose(class_name)


def _read(source: Path | Fetched) -> tuple[RuleFile, Fetched | None]:
    """Return what is known of a rule file, and where it was fetched from."""
    if isinstance(source, Fetched):
        return read_rule_file(source.path, source.uri), source
    return read_rule_file(source), None


def _located(place: str) -> Path | Fetched:
    """Return the path of a rule file; from S3 it is fetched."""
    if is_s3(place):
        return fetch_rule_file(place)
    scheme, slashes, _ = place.partition("://")
    if not slashes or "/" in scheme:
        return Path(place)
    if scheme.lower() == "file":
        return Path(unquote(urlsplit(place).path))
    msg = (
        f"Rule files at {scheme}:// addresses cannot be fetched, got {place!r}. "
        "Give a path, or an address in S3: s3://bucket/rules/my_rule.py."
    )
    raise RuleSourceError(msg)


def load_source(source: Path | Fetched, class_name: str | None = None) -> LoadedRule:
    """Return a rule class of a file; the table of built-in rules is not looked at.

    The file is parsed before anything of it runs. What is beside it can be imported by it, and by
    nothing else, for as long as the process lives. Nothing is written into its folder.

    Parameters
    ----------
    source
        A Python file of any name. One that was fetched has nothing beside it to import.
    class_name
        None: the only rule class of the file that no other rule class there derives from.

    Raises
    ------
    RuleSourceError
        If there is no such file or class, or the file does not parse, raises while it is loaded,
        or the class is no rule.
    """
    file, fetched = _read(source)
    name = file.choose(class_name)
    package, surroundings = _new_package(file.path.parent), Surroundings()
    try:
        run = surroundings.call(_execute, file, package)
        rule_class = _checked(vars(run).get(name), name, file)
    except BaseException:
        for module in [m for m in sys.modules if m.partition(".")[0] == package]:
            del sys.modules[module]
        raise
    sha256 = file.sha256
    return LoadedRule(name, rule_class, False, file.path, sha256, fetched, surroundings)


def _checked(found: object, name: str, file: RuleFile) -> type[Rule]:
    """Return `found` if it is a class that can judge a step."""
    if found is None or found is Rule:
        raise file.missing(name)
    if not (isinstance(found, type) and issubclass(found, Rule)):
        msg = f"{name!r} in {file.shown} is not a rule. Derive it from smdebug.rules.Rule."
        raise RuleSourceError(msg)
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        msg = f"Rule {name!r} in {file.shown} is abstract: it lacks {lacking}."
        raise RuleSourceError(msg)
    return found


def _execute(file: RuleFile, package: str) -> ModuleType:
    """Run the file as a module of `package`, in `sys.modules` before it runs."""
    name = f"{package}.{file.path.name.removesuffix('.py').replace('.', '_')}"
    loader = _Loader(name, str(file.path), file.code)
    spec = ModuleSpec(name, loader, origin=str(file.path))
    spec.has_location = True
    module = sys.modules[name] = module_from_spec(spec)
    try:
        loader.exec_module(module)
    except SystemExit as err:
        msg = (
            f"Rule file {file.shown} ends the program {_where(err, file)}. "
            "Do that only if __name__ == '__main__'."
        )
        raise RuleSourceError(msg) from err
    except Exception as err:
        msg = raised(f"Rule file {file.shown}", err, _where(err, file))
        if file.fetched and isinstance(err, ImportError):
            msg += " Of S3 only this file was fetched, nothing beside it."
        raise RuleSourceError(msg) from err
    return module


def _where(err: BaseException, file: RuleFile) -> str:
    """Return the line of the file that was at work when `err` was raised."""
    lines = [
        f.lineno for f in traceback.extract_tb(err.__traceback__) if f.filename == str(file.path)
    ]
    return f"at line {lines[-1]} while it is loaded"


def _new_package(folder: Path) -> str:
    """Make a package that stands for `folder`, and return its name."""
    spec = ModuleSpec(f"{_PACKAGE}{next(_NUMBERS)}", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[spec.name] = module_from_spec(spec)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    return spec.name


class _Loader(SourceFileLoader):
    """Runs a module of a rule's folder: keeps no bytecode, and imports from the folder first."""

    def __init__(self, fullname: str, path: str, code: CodeType | None = None) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self._code or self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _importer(package)}
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules of the packages that stand for rule folders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(_PACKAGE):
            return None
        for folder in path:
            spec = FileFinder(
                folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Loader, SOURCE_SUFFIXES)
            ).find_spec(fullname, target)
            if spec is not None:
                return spec
        return None


_FINDER: Final = _Finder()


@cache
def _is_beside(package: str, name: str) -> bool:
    """Say whether the top-level module `name` is meant to be the one in the package's folder.

    A mere folder, without `__init__.py`, is meant if nothing else has the name.
    """
    if name in _ELSEWHERE:
        return False
    spec = _FINDER.find_spec(f"{package}.{name}", sys.modules[package].__path__)
    if spec is None or spec.has_location:
        return spec is not None
    return name not in sys.modules and PathFinder.find_spec(name) is None


def _importer(package: str) -> Callable[..., ModuleType]:
    """Return the `__import__` of the modules in the folder that `package` stands for."""

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
