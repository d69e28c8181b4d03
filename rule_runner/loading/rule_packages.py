"""RulePackages: the rules of installed packages, which register them as entry points."""

import hashlib
import inspect
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from rule_core.rules.rule import Rule
from rule_runner.errors import RuleSourceError, user_code

GROUP: Final = "rule_runner.rules"  # of entry points


@dataclass(frozen=True, slots=True)
class PackagedRule:
    """A rule of an installed package, which is not imported yet."""

    entry_point: EntryPoint

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.entry_point.name

    @property
    def package(self) -> str:
        """The name and version of the package."""
        dist = self.entry_point.dist
        return f"{dist.name} {dist.version}" if dist is not None else "unknown"

    @property
    def origin(self) -> str:
        """The package, and the class in it."""
        return f"{self.package} ({self.entry_point.value})"

    def sha256(self) -> str:
        """Return the SHA-256 of the module's file, or of the origin if the file is elsewhere."""
        content = self.origin.encode()
        module = self.entry_point.module.replace(".", "/")
        dist = self.entry_point.dist
        for name in (f"{module}.py", f"{module}/__init__.py"):
            with suppress(OSError):
                content = Path(str(dist.locate_file(name) if dist else "")).read_bytes()
        return hashlib.sha256(content).hexdigest()

    def load(self) -> type[Rule]:
        """Import the class.

        Raises
        ------
        RuleSourceError
            If that fails, or it is not a rule of this name.
        """
        subject = f"Rule {self.name!r} of package {self.origin}"
        with user_code(RuleSourceError, subject, lambda _: "while it was loaded"):
            value = self.entry_point.load()
        if not (isinstance(value, type) and issubclass(value, Rule)) or inspect.isabstract(value):
            raise RuleSourceError(f"{subject} is not a rule. Derive it from smdebug.rules.Rule.")
        if value.__name__ != self.name:
            raise RuleSourceError(
                f"{subject} is called {value.__name__!r}. Give the entry point that name."
            )
        return value


@dataclass(frozen=True, slots=True)
class RulePackages:
    """The rules of installed packages.

    Attributes
    ----------
    by_name
        Those that can be named, in alphabetical order.
    problems
        A sentence on each of the others, by name.
    """

    by_name: dict[str, PackagedRule]
    problems: dict[str, str]

    def find(self, name: str) -> PackagedRule | None:
        """Return the rule of a name; the case is ignored if no name matches exactly.

        Raises
        ------
        RuleSourceError
            If the name is that of several packages.
        """
        if name in self.problems:
            raise RuleSourceError(self.problems[name])
        by_fold = {rule_name.casefold(): rule_name for rule_name in self.by_name}
        return self.by_name.get(name) or self.by_name.get(by_fold.get(name.casefold(), ""))


def rule_packages(
    builtin_names: Collection[str], plugins: Iterable[EntryPoint] | None = None
) -> RulePackages:
    """Return the rules that installed packages register; nothing of them is imported.

    A rule with the name of a built-in rule, or of a rule of another package, cannot be named.

    Parameters
    ----------
    plugins
        By default the entry points of the installed packages.
    """
    registered: dict[str, list[PackagedRule]] = {}
    for plugin in entry_points(group=GROUP) if plugins is None else plugins:
        registered.setdefault(plugin.name, []).append(PackagedRule(plugin))
    taken = {name.casefold() for name in builtin_names} | {"all", "auto"}
    by_name: dict[str, PackagedRule] = {}
    problems: dict[str, str] = {}
    for name, rules in sorted(registered.items()):
        origins = sorted({rule.origin for rule in rules})
        if name.casefold() in taken:
            problems[name] = (
                f"Rule {name!r} of package {origins[0]} is ignored: a built-in rule has this name."
            )
        elif len(origins) > 1:
            problems[name] = (
                f"Rule {name!r} is in several packages: {', '.join(origins)}. Uninstall all but "
                "one of them."
            )
        else:
            by_name[name] = rules[0]
    return RulePackages(by_name, problems)
