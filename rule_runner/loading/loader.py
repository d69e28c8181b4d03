"""Loads a rule class: a built-in rule, one of an installed package, or one of a rule file."""

import hashlib
import inspect
import sys
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rule_core.failures import OnError
from rule_core.rules.evidence import Explanation, Finding
from rule_core.rules.params import nearest
from rule_core.rules.rule import Rule
from rule_core.storage.uri import is_s3
from rule_runner.errors import ENDS_ITSELF, RuleSourceError, UnknownRuleError, line_of, user_code
from rule_runner.loading.process_state import ProcessState
from rule_runner.results.schema import RuleSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rule_runner.loading.rule_file import RuleFile
    from rule_runner.loading.s3_fetch import Fetched


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
        The rule file, absolute; None for a built-in rule and for one of a package.
    source_sha256
        SHA-256 of the file that defines the rule, in hexadecimal digits.
    fetched
        The origin of a rule file that was fetched from S3.
    process_state
        The process-wide settings of a custom rule, as its file left them.
    package
        The installed package of the rule, with its version, and the class in it; "" if the rule
        is built-in or in a file.
    """

    name: str
    rule_class: type[Rule]
    builtin: bool
    source: Path | None
    source_sha256: str
    fetched: "Fetched | None" = None
    process_state: ProcessState = field(default_factory=ProcessState, compare=False, repr=False)
    package: str = ""

    @property
    def declares_parameters(self) -> bool:
        """Whether its parameters are those in `Rule.PARAMS`, not the constructor's arguments."""
        return self.builtin or (self.package != "" and bool(self.rule_class.PARAMS))

    def explain(self, finding: Finding, where: str, step: str) -> Explanation:
        """Return what a finding says: a rule of a user has the summary only, which is its note.

        Parameters
        ----------
        where
            The tensor and the worker, as far as they are known.
        step
            The step of the finding, such as ``step 115 (training step 99)``.
        """
        if self.builtin:
            from builtin_rules.rule_page import finding_texts

            texts = finding_texts(self.name)
            if texts.sentences:
                return texts.explain(finding, where, step)
        tensor = f" for {where}" if where else ""
        return Explanation(finding.note or f"The condition is met{tensor} at {step}.")


def every_builtin() -> "Mapping[str, type[Rule]]":
    """Return all built-in rules by name: tensor rules first, then profiler rules.

    Each is imported when it is asked for.
    """
    from builtin_rules import RULES
    from builtin_rules.profiler_table import PROFILER_RULES

    return RULES | PROFILER_RULES


def load_builtin(name: str) -> LoadedRule:
    """Return the built-in rule `name`; the case is ignored if no name matches exactly.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    from builtin_rules import RULES

    rules: Mapping[str, type[Rule]] = RULES if name in RULES else every_builtin()
    by_fold = {rule_name.casefold(): rule_name for rule_name in rules}
    rule_name = name if name in rules else by_fold.get(name.casefold())
    if rule_name is None:
        near = nearest(name, rules)
        names = ", ".join(map(repr, rules))
        hint = f"Did you mean {near!r}?" if near else f"Built-in rules: {names}."
        raise UnknownRuleError(f"Unknown rule {name!r}. {hint}")
    rule_class = rules[rule_name]
    source = Path(inspect.getfile(rule_class)).read_bytes()
    return LoadedRule(rule_name, rule_class, True, None, hashlib.sha256(source).hexdigest())


def load_named(name: str, *, run: bool = True) -> LoadedRule:
    """Return a rule by its name: a built-in rule, or one of an installed package.

    Parameters
    ----------
    run
        Whether to import the package in this process; if not, the class is `PlaceholderRule`.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    RuleSourceError
        If it is in several packages, or its package cannot be imported.
    """
    try:
        return load_builtin(name)
    except UnknownRuleError as err:
        from rule_runner.loading.rule_packages import rule_packages

        packages = rule_packages(every_builtin())
        rule = packages.find(name)
        if rule is None:
            if not packages.by_name:
                raise
            names = ", ".join(map(repr, packages.by_name))
            raise UnknownRuleError(f"{err} Rules of installed packages: {names}.") from err
    process_state = ProcessState()
    rule_class = process_state.call(rule.load) if run else _placeholder()
    return LoadedRule(
        rule.name,
        rule_class,
        builtin=False,
        source=None,
        source_sha256=rule.sha256(),
        process_state=process_state,
        package=rule.origin,
    )


def _placeholder() -> type[Rule]:
    from rule_runner.loading.placeholder_rule import PlaceholderRule

    return PlaceholderRule


def load_from(address: str, class_name: str | None = None, *, run: bool = True) -> LoadedRule:
    """Return a rule class of the file at a path, a ``file://`` or an ``s3://`` address.

    Parameters
    ----------
    run
        Whether to run the file in this process; if not, the class is `PlaceholderRule`.

    Raises
    ------
    RuleSourceError
        If it cannot be fetched or loaded; see `load_source`.
    """
    source = _located(address)
    if run:
        return load_source(source, class_name)
    file, fetched = _read(source)
    return LoadedRule(
        file.choose(class_name), _placeholder(), False, file.path, file.sha256, fetched
    )


def _read(source: "Path | Fetched") -> "tuple[RuleFile, Fetched | None]":
    """Read a rule file; return it, and its origin if it was fetched."""
    from rule_runner.loading.rule_file import read_rule_file

    if isinstance(source, Path):
        return read_rule_file(source), None
    return read_rule_file(source.path, source.uri), source


def _located(address: str) -> "Path | Fetched":
    """Return the path of a rule file, after fetching it if it is in S3."""
    if is_s3(address):
        from rule_runner.loading.s3_fetch import fetch_rule_file

        return fetch_rule_file(address)
    scheme, slashes, _ = address.partition("://")
    if not slashes or "/" in scheme:
        return Path(address)
    if scheme.lower() == "file":
        return Path(unquote(urlsplit(address).path))
    raise RuleSourceError(
        f"Rule files at {scheme}:// addresses cannot be fetched, got {address!r}. "
        "Give a path, or an address in S3: s3://bucket/rules/my_rule.py."
    )


def load_source(source: "Path | Fetched", class_name: str | None = None) -> LoadedRule:
    """Return a rule class of a file, without considering the built-in rules.

    The file is parsed before any of it runs. For the lifetime of the process it can import the
    modules in its folder, and no other code can. Nothing is written into its folder.

    Parameters
    ----------
    source
        A Python file of any name. A fetched file is alone in its folder.
    class_name
        None means the only rule class of the file from which no other rule class there derives.

    Raises
    ------
    RuleSourceError
        If there is no such file or class, the file does not parse or raises while it is loaded,
        or the class is not a rule.
    """
    from rule_runner.loading.rule_imports import new_package

    file, fetched = _read(source)
    name = file.choose(class_name)
    package, process_state = new_package(file.path.parent), ProcessState()
    with OnError(_forget, package):
        module = process_state.call(_execute, file, package)
        rule_class = _checked(vars(module).get(name), name, file)
    sha256 = file.sha256
    return LoadedRule(name, rule_class, False, file.path, sha256, fetched, process_state)


def _forget(package: str) -> None:
    """Remove a package and its modules from `sys.modules`."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _checked(value: object, name: str, file: "RuleFile") -> type[Rule]:
    """Return `value` if it is a rule class that can be constructed."""
    if value is None or value is Rule:
        raise file.missing(name)
    if not (isinstance(value, type) and issubclass(value, Rule)):
        raise RuleSourceError(
            f"{name!r} in {file.label} is not a rule. Derive it from smdebug.rules.Rule."
        )
    if inspect.isabstract(value):
        missing = ", ".join(sorted(value.__abstractmethods__))
        raise RuleSourceError(f"Rule {name!r} in {file.label} is abstract: it lacks {missing}.")
    return value


def _execute(file: "RuleFile", package: str) -> ModuleType:
    """Run the file as a module of `package`, which is in `sys.modules` while it runs."""
    from rule_runner.loading.rule_imports import FolderLoader

    name = f"{package}.{file.path.name.removesuffix('.py').replace('.', '_')}"
    loader = FolderLoader(name, str(file.path), file.code)
    spec = ModuleSpec(name, loader, origin=str(file.path))
    spec.has_location = True
    module = sys.modules[name] = module_from_spec(spec)
    subject = f"Rule file {file.label}"

    def where(err: BaseException) -> str:
        return f"{line_of(err, file.path)} while it is loaded"

    def hint(err: BaseException) -> str:
        is_alone = file.fetched and isinstance(err, ImportError)
        return " Only this file was fetched from S3, not its folder." if is_alone else ""

    with user_code(RuleSourceError, subject, where, hint):
        try:
            loader.exec_module(module)
        except SystemExit as err:
            raise RuleSourceError(
                f"{subject} ends the program {where(err)}. {ENDS_ITSELF}"
            ) from err
    return module


def rule_source(loaded: LoadedRule) -> RuleSource | None:
    """Return the origin of a rule's file or package; None for a built-in rule."""
    if loaded.package:
        return RuleSource(location=loaded.package, sha256=loaded.source_sha256)
    if loaded.source is None:
        return None
    sha256, fetched = loaded.source_sha256, loaded.fetched
    if fetched is None:
        return RuleSource(location=str(loaded.source), sha256=sha256)
    version_id, etag = fetched.version_id, fetched.etag
    return RuleSource(location=fetched.uri, sha256=sha256, version_id=version_id, etag=etag)
