"""RuleFile: the source file of a rule, read once and parsed before any of it runs."""

import ast
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from rule_runner.errors import RuleSourceError
from rule_runner.text_files import decoded, read_regular_file, shown


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A parsed rule file that has not been run.

    Parameters
    ----------
    path
        Absolute, with links resolved: the rule imports modules from the folder of the real file.
    label
        Its path or address for messages, as the user gave it.
    sha256
        SHA-256 of the bytes that `code` was compiled from.
    classes
        The bases of every class at module level, as dotted origins; nested classes are left out.
    words
        Every name and string in the file; ``*`` if it imports all names of another module.
    fetched
        Whether it was fetched from S3, without the other files of its folder.
    """

    path: Path
    label: str
    sha256: str
    code: CodeType
    classes: Mapping[str, tuple[str, ...]]
    words: frozenset[str]
    fetched: bool = False

    @property
    def rule_classes(self) -> list[str]:
        """The classes that appear to derive from a rule, in source order."""
        return [name for name in self.classes if self._is_rule(name, ())]

    def _is_rule(self, name: str, below: tuple[str, ...]) -> bool:
        if name in self.classes:
            bases = () if name in below else self.classes[name]
            return any(self._is_rule(base, (*below, name)) for base in bases)
        return name.endswith("Rule") or name.startswith("builtin_rules.")

    def choose(self, class_name: str | None) -> str:
        """Return the name of the class to load: `class_name`, or the only rule class.

        Raises
        ------
        RuleSourceError
            If the file has no such class, or none or several to choose from. Bases of other rule
            classes of the file do not count.
        """
        if class_name is not None:
            if class_name not in self.classes and not self.words & {class_name, "*"}:
                raise self.missing(class_name)
            return class_name
        rules = self.rule_classes
        bases = {base for name in rules for base in self.classes[name]}
        candidates = [name for name in rules if name not in bases]
        match candidates:
            case [only]:
                return only
            case []:
                classes = f" Classes there: {_quoted(self.classes)}." if self.classes else ""
                msg = f"No class in {self.label} derives from smdebug.rules.Rule.{classes}"
            case _:
                msg = (
                    f"{len(candidates)} rule classes in {self.label}: {_quoted(candidates)}. "
                    f"Name the one to load, such as --rule {candidates[0]}."
                )
        raise RuleSourceError(msg)

    def missing(self, class_name: str) -> RuleSourceError:
        """Return the error that the file has no class of this name."""
        rules = self.rule_classes
        classes = f". Rule classes there: {_quoted(rules)}." if rules else ", nor any rule class."
        return RuleSourceError(f"No class {class_name!r} in {self.label}{classes}")


def read_rule_file(path: Path, uri: str | None = None) -> RuleFile:
    """Read a rule file once and parse it.

    Parameters
    ----------
    uri
        The address that it was fetched from, for messages; None for a local file.

    Raises
    ------
    RuleSourceError
        If the file does not exist, cannot be read, or is not Python.
    """
    label = shown(uri or path)
    subject = f"Rule file {label}"
    content = read_regular_file(path, subject, RuleSourceError)
    real = path.resolve()
    tree, code = _compile(_source_text(content, subject), str(real), subject)
    origins = _origins(tree)
    classes = {
        node.name: tuple(_origin(base, origins) for base in node.bases)
        for node in _statements(tree)
        if isinstance(node, ast.ClassDef)
    }
    sha256 = hashlib.sha256(content).hexdigest()
    return RuleFile(real, label, sha256, code, classes, frozenset(_words(tree)), uri is not None)


def _source_text(content: bytes, subject: str) -> str:
    text = decoded(content, subject, RuleSourceError)
    if "\0" in text:
        raise RuleSourceError(f"{subject} is not Python text: it holds a NUL byte.")
    if not text.strip():
        raise RuleSourceError(f"{subject} is empty.")
    return text


def _compile(text: str, filename: str, subject: str) -> tuple[ast.Module, CodeType]:
    try:
        with warnings.catch_warnings():
            # Such as an unknown escape in a pattern, which old rules may have.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename)
            return tree, compile(tree, filename, "exec", dont_inherit=True)
    except SyntaxError as err:
        raise RuleSourceError(f"{subject} does not parse: line {err.lineno}: {err.msg}.") from err
    except (RecursionError, MemoryError) as err:
        raise RuleSourceError(f"{subject} does not parse: it is nested too deeply.") from err


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is loaded, outside of classes and functions."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop(0)
        yield node
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.expr():
                pass
            case ast.If(test=ast.Compare(ast.Name("__name__"), _, [ast.Constant("__main__")])):
                pass
            case _:
                pending[:0] = ast.iter_child_nodes(node)


def _origins(tree: ast.Module) -> dict[str, str]:
    """Return the dotted origins of the module's names, from imports and plain assignments."""
    origins: dict[str, str] = {}
    for node in _statements(tree):
        match node:
            case ast.Import(names=names):
                origins |= {alias.asname: alias.name for alias in names if alias.asname}
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    origins[alias.asname or alias.name] = f"{module or ''}.{alias.name}"
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value
            ):
                origins[name] = _origin(value, origins)
            case _:
                pass
    return origins


def _origin(base: ast.expr, origins: Mapping[str, str]) -> str:
    """Return the dotted origin of a base such as ``Rule``, ``r.Rule`` or ``Rule[T]``."""
    name, dot, attributes = ast.unparse(base).partition("[")[0].partition(".")
    return f"{origins.get(name, name)}{dot}{attributes}"


def _words(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=str(word)) | ast.Constant(value=str(word)):
                yield word
            case ast.alias(name=name, asname=asname):
                yield asname or name
            case _:
                pass


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
