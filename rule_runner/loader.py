"""Loads a rule class: from the table of built-in rules, or from a file of the user's."""

import hashlib
import inspect
import sys
import traceback
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rule_runner.errors import RuleSourceError, UnknownRuleError
from rule_runner.fetch import Fetched, fetch_rule_file
from rule_runner.rule_file import RuleFile, read_rule_file
from rule_runner.rule_folder import FolderLoader, new_package
from rule_runner.surroundings import Surroundings
from rule_runner.unopened import Unopened
from rule_runner.wording import raised
from smdebug.rules.params import nearest
from smdebug.rules.rule import Rule
from smdebug.storage.uri import is_s3

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def every_builtin() -> dict[str, type[Rule]]:
    """Return all built-in rules by name: those over tensors, then those over profiler data."""
    from builtin_rules import RULES  # noqa: PLC0415 - imports every rule; a file needs none
    from builtin_rules.profiler import PROFILER_RULES  # noqa: PLC0415 - likewise

    return {**RULES, **PROFILER_RULES}


def load_builtin(name: str) -> LoadedRule:
    """Return the built-in rule `name`; another case is accepted if the exact name is not there.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    from builtin_rules import RULES  # noqa: PLC0415 - imports every rule; a file needs none

    known: Mapping[str, type[Rule]] = RULES if name in RULES else every_builtin()
    folded = {one.casefold(): one for one in known}
    found = name if name in known else folded.get(name.casefold())
    if found is None:
        near = nearest(name, known)
        names = ", ".join(map(repr, known))
        hint = f"Did you mean {near!r}?" if near else f"Built-in rules: {names}."
        msg = f"Unknown rule {name!r}. {hint}"
        raise UnknownRuleError(msg)
    rule_class = known[found]
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
    package, surroundings = new_package(file.path.parent), Surroundings()
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
    loader = FolderLoader(name, str(file.path), file.code)
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
