"""Loading rules: the built-in table, files looked at before they run, and what is beside them."""

import codecs
import hashlib
import inspect
import os
import pickle
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import builtin_rules
from builtin_rules import RULES, AllZero, VanishingGradient
from builtin_rules.rules_by_name import RulesByName
from rule_core.rules.evidence import Finding
from rule_runner.errors import RuleSourceError, UnknownRuleError
from rule_runner.loading.loader import LoadedRule, load_builtin, load_source
from smdebug.rules import Rule

RULE = """
from smdebug.rules import Rule

class MyRule(Rule):
    def invoke_at_step(self, step):
        return {answer}
"""
STEP = "step 7"
SILENT = {"CreateXgboostReport"}
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes files below the test's folder, and returns the first."""

    def write(**files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / (name.replace("__in__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / (next(iter(files)).replace("__in__", "/") + ".py")

    return write


@pytest.fixture(autouse=True)
def same_interpreter() -> Iterator[None]:
    """Fail a test after which the search path, or a module of the program, is another."""
    codecs.lookup("utf-8-sig")  # Python imports a codec at its first use
    path, random_module = [*sys.path], sys.modules["random"]
    yield
    assert path == sys.path
    assert random_module is sys.modules["random"]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = ("tensors.gradients.all_zero", "tensors.gradients.vanishing_gradient")
    rules = RulesByName[Rule](dict(zip(("AllZero", "VanishingGradient"), modules, strict=True)))
    monkeypatch.setattr(builtin_rules, "RULES", rules)


def answer(loaded: LoadedRule, step: int = 0) -> Any:
    return loaded.rule_class(SimpleNamespace()).invoke_at_step(step)


def refused(path: Path, sentence: str, class_name: str | None = None) -> None:
    with pytest.raises(RuleSourceError, match=f"^{re.escape(sentence)}$"):
        load_source(path, class_name)


# --- the table of built-in rules


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("name", ["VanishingGradient", "vanishinggradient"])
def test_builtin_by_name(name: str) -> None:
    digest = hashlib.sha256(Path(inspect.getfile(VanishingGradient)).read_bytes()).hexdigest()
    expected = LoadedRule("VanishingGradient", VanishingGradient, True, None, digest)
    assert expected == load_builtin(name)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "VanishingGradent",
            r"^Unknown rule 'VanishingGradent'\. Did you mean 'VanishingGradient'\?$",
        ),
        (
            "Zebra",
            r"^Unknown rule 'Zebra'\. Built-in rules: 'AllZero', 'VanishingGradient', 'Batch",
        ),
        ("", r"^Unknown rule ''\. Built-in rules: 'AllZero', 'VanishingGradient', 'BatchSize', "),
    ],
    ids=["near", "far", "empty"],
)
def test_unknown_builtin(name: str, sentence: str) -> None:
    with pytest.raises(UnknownRuleError, match=sentence):
        load_builtin(name)


def test_exact_name_comes_before_another_case(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"AllZero": AllZero, "ALLZERO": VanishingGradient}
    monkeypatch.setattr(builtin_rules, "RULES", rules)
    assert load_builtin("AllZero").rule_class is AllZero
    assert load_builtin("ALLZERO").rule_class is VanishingGradient


# --- which class


def test_rule_from_a_file(write: Write) -> None:
    path = write(rule=RULE.format(answer="step == 3"))
    loaded = load_source(path, "MyRule")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded == LoadedRule("MyRule", loaded.rule_class, False, path, digest)
    assert [answer(loaded, step) for step in (2, 3)] == [False, True]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("from smdebug.rules import Rule\nclass A(Rule):", id="package"),
        pytest.param("from smdebug.rules.rule import Rule\nclass A(Rule):", id="module"),
        pytest.param("from smdebug.rules import Rule as R\nclass A(R):", id="alias"),
        pytest.param("import smdebug.rules\nclass A(smdebug.rules.Rule):", id="dotted"),
        pytest.param("import smdebug.rules.rule as r\nclass A(r.Rule):", id="module-alias"),
        pytest.param("from smdebug import rules\nclass A(rules.rule.Rule):", id="from-package"),
        pytest.param("import smdebug.rules\nB = smdebug.rules.Rule\nclass A(B):", id="assigned"),
        pytest.param("from smdebug.rules import *\nclass A(Rule):", id="star"),
        pytest.param(
            "from smdebug.rules import Rule\nclass M: pass\nclass A(M, Rule):", id="mixin"
        ),
        pytest.param(
            "from smdebug.rules import Rule\nclass Base(Rule): pass\nclass A(Base):", id="own-base"
        ),
        pytest.param(
            "from builtin_rules import ExplodingTensor\nclass A(ExplodingTensor):", id="built-in"
        ),
        pytest.param(
            "from typing import Generic, TypeVar\nfrom smdebug.rules import Rule\n"
            "T = TypeVar('T')\nclass Base(Rule, Generic[T]): pass\nclass A(Base[int]):",
            id="generic",
        ),
        pytest.param(
            "try:\n    from smdebug.rules import Rule\nexcept ImportError:\n"
            "    class Rule: pass\nclass A(Rule):",
            id="fallback",
        ),
        pytest.param(
            "from smdebug.rules import Rule\nclass XRule: pass\nclass YRule(XRule): pass\n"
            "class Loop:\n    class Inner(Rule): pass\n"
            "def make():\n    class Local(Rule): pass\nclass A(Rule):",
            id="decoys",
        ),
    ],
)
def test_the_only_rule_class_is_found(write: Write, head: str) -> None:
    loaded = load_source(write(rule=f"{head}\n    def invoke_at_step(self, step): return 'A'\n"))
    assert (loaded.name, answer(loaded)) == ("A", "A")


def test_rule_within_a_condition(write: Write) -> None:
    text = "import sys\nif sys.argv is not None:\n" + RULE.format(answer=1).replace("\n", "\n    ")
    assert load_source(write(rule=text)).name == "MyRule"


def test_long_expressions_are_no_obstacle(write: Write) -> None:
    text = f"if {'+'.join('1' * 900)} == 900:\n    pass\n" + RULE.format(answer=1)
    assert load_source(write(rule=text)).name == "MyRule"


def test_several_rule_classes(write: Write) -> None:
    path = write(rule=RULE.format(answer=1) + "class Second(MyRule): pass\nclass Third(MyRule): 0")
    refused(
        path,
        f"2 rule classes in {path}: 'Second', 'Third'. "
        "Name the one to load, such as --rule Second.",
    )
    assert load_source(path, "MyRule").name == "MyRule"
    assert load_source(path, "Third").name == "Third"


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("class XRule: pass\nclass Other(dict): pass", " Classes there: 'XRule', 'Other'."),
        ("class A(A): pass\nclass B(C): pass\nclass C(B): pass", " Classes there: 'A', 'B', 'C'."),
        ("from smdebug.rules import Rule", ""),
        ("# nothing", ""),
        ("from smdebug.rules import Rule\nif __name__ == '__main__':\n class A(Rule): pass", ""),
    ],
    ids=["decoys", "circles", "imported-rule", "comment", "main-block"],
)
def test_no_rule_class(write: Write, text: str, classes: str) -> None:
    path = write(rule=text)
    refused(path, f"No class in {path} derives from smdebug.rules.Rule.{classes}")


def test_missing_class_is_reported_before_the_file_runs(write: Write) -> None:
    path = write(rule="raise SystemExit('ran')\n" + RULE.format(answer=1))
    refused(path, f"No class 'Other' in {path}. Rule classes there: 'MyRule'.", "Other")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = 1", id="no-class"),
        pytest.param("from smdebug.rules import Rule", id="rule-itself"),
        pytest.param(
            "from smdebug.rules import Rule\nclass A:\n    class Rule(Rule): pass", id="nested"
        ),
        pytest.param("from math import *", id="star"),
        pytest.param("Rule = None", id="none"),
    ],
)
def test_missing_class_without_others(write: Write, text: str) -> None:
    path = write(rule=text)
    refused(path, f"No class 'Rule' in {path}, nor any rule class.", "Rule")


@pytest.mark.usefixtures("table")
def test_the_table_is_not_looked_at_for_a_file(write: Write) -> None:
    path = write(rule=RULE.format(answer=1).replace("MyRule", "VanishingGradientRule"))
    refused(
        path,
        f"No class 'VanishingGradient' in {path}. Rule classes there: 'VanishingGradientRule'.",
        "VanishingGradient",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("from helper import MyRule", id="imported"),
        pytest.param("from helper import MyRule as Mine\nMyRule = Mine", id="assigned"),
        pytest.param("from helper import *", id="star"),
        pytest.param("import helper\nglobals()['MyRule'] = helper.MyRule", id="globals"),
        pytest.param("import helper\nclass MyRule(helper.MyRule): pass", id="derived"),
        pytest.param("from helper import make\nclass MyRule(make()): pass", id="called-base"),
    ],
)
def test_class_that_shows_only_at_run_time(write: Write, text: str) -> None:
    helper = RULE.format(answer="'helper'") + "def make(): return MyRule"
    assert answer(load_source(write(rule=text, helper=helper), "MyRule")) == "helper"


def test_not_a_rule(write: Write) -> None:
    path = write(rule="class XRule: pass\ny = 3")
    refused(path, f"'XRule' in {path} is not a rule. Derive it from smdebug.rules.Rule.", "XRule")
    refused(path, f"'y' in {path} is not a rule. Derive it from smdebug.rules.Rule.", "y")


def test_abstract_rule(write: Write) -> None:
    path = write(rule="from smdebug.rules import Rule\nclass MyRule(Rule): pass")
    refused(path, f"Rule 'MyRule' in {path} is abstract: it lacks invoke_at_step.")


# --- the file


def test_no_such_file(tmp_path: Path) -> None:
    refused(tmp_path / "no.py", f"Rule file {tmp_path}/no.py does not exist.")
    (tmp_path / "file").touch()
    refused(tmp_path / "file/no.py", f"Rule file {tmp_path}/file/no.py does not exist.")


def test_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path, tmp_path / "pipe.py"):
        refused(path, f"Rule file {path} is not a regular file.")


def test_unreadable_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(rule="x = 1")

    def deny(self: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied", f"{self} {mode}")

    monkeypatch.setattr(Path, "open", deny)
    refused(path, f"Rule file {path} cannot be read: Permission denied.")


def test_path_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(RuleSourceError, match=r"^Rule file 'a\\x00b' cannot be read: .*null.*\.$"):
        load_source(Path("a\0b"))
    long = tmp_path / ("x" * 300)
    refused(long, f"Rule file {long} cannot be read: File name too long.")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty."),
        (b" \n\t\n", "is empty."),
        (b"x = 1\0", "is not Python text: it holds a NUL byte."),
        (b"# ok\n# caf\xe9", "is not UTF-8 text: byte 0xe9 in line 2."),
        (b"\nx = = 1\n", "does not parse: line 2: invalid syntax."),
        (b"\n\nreturn 1", "does not parse: line 3: 'return' outside function."),
        (
            b"try:\nx",
            "does not parse: line 2: expected an indented block after 'try' statement on line 1.",
        ),
        (b"-" * 100_000 + b"1", "does not parse: it is nested too deeply."),
    ],
    ids=["empty", "blank", "nul", "latin-1", "syntax", "compile", "indent", "deep"],
)
def test_file_that_is_not_python(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "rule.py"
    path.write_bytes(data)
    refused(path, f"Rule file {path} {problem}")


def test_control_characters_of_a_path_are_escaped(tmp_path: Path) -> None:
    with pytest.raises(RuleSourceError, match=r"^Rule file '.*/a\\x1b\[31m\.py' does not exist"):
        load_source(tmp_path / "a\x1b[31m.py")


@pytest.mark.parametrize(
    "name", ["my rule.py", "my-rule.py", "règle 規則.py", "my.rule.v2.py", "rule.txt", "class", "0"]
)
def test_file_of_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = "from .helper import x\n" + RULE.format(answer="x, __file__")
    path.write_text(text, encoding="utf-8")
    (tmp_path / "helper.py").write_text("x = 1")
    assert answer(load_source(path)) == (1, str(path))


def test_byte_order_mark_and_careless_escapes(tmp_path: Path) -> None:
    path = tmp_path / "rule.py"
    path.write_bytes(b"\xef\xbb\xbf" + RULE.format(answer=r"'\d' is '\d'").encode())
    assert answer(load_source(path)) is True


def test_linked_file_sees_the_files_beside_the_real_one(write: Write, tmp_path: Path) -> None:
    text = "import helper\n" + RULE.format(answer="helper.x")
    real = write(a__in__rule=text, a__in__helper="x = 7")
    (tmp_path / "link.py").symlink_to(real)
    assert answer(load_source(tmp_path / "link.py")) == 7


def test_relative_path(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(rule="import helper\n" + RULE.format(answer="helper.x"), helper="x = 8")
    monkeypatch.chdir(path.parent)
    loaded = load_source(Path("rule.py"))
    assert (path, 8) == (loaded.source, answer(loaded))


# --- running it


def test_the_main_block_does_not_run(write: Write) -> None:
    text = RULE.format(answer=1) + "if __name__ == '__main__':\n    raise SystemExit(3)"
    assert load_source(write(rule=text)).name == "MyRule"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "raised ZeroDivisionError at line 7 while it is loaded: division by zero."),
        ("raise KeyError", "raised KeyError at line 7 while it is loaded."),
        (
            "raise ValueError('two\\nlines.')",
            "raised ValueError at line 7 while it is loaded: two lines.",
        ),
        (
            "import helper",
            "raised ZeroDivisionError at line 7 while it is loaded: integer modulo by zero.",
        ),
        (
            "import nosuch",
            "raised ModuleNotFoundError at line 7 while it is loaded: No module named 'nosuch'.",
        ),
        (
            "raise ModuleNotFoundError('No bokeh', name='bokeh.plotting')",
            (
                "raised ModuleNotFoundError at line 7 while it is loaded: No bokeh. "
                "Install it, or use the variant 'full' of the image."
            ),
        ),
        (
            "class UnknownServiceError(Exception): ...\nraise UnknownServiceError('sqs')",
            (
                "raised UnknownServiceError at line 8 while it is loaded: sqs. "
                "In the image, its variant 'full' knows every service of AWS."
            ),
        ),
        (
            "class E(Exception):\n  def __str__(self): 1 / 0\nraise E",
            "raised E at line 9 while it is loaded.",
        ),
        (
            "import sys; sys.exit()",
            (
                "ends the program at line 7 while it is loaded. "
                "Do that only if __name__ == '__main__'."
            ),
        ),
    ],
    ids=["error", "no-text", "lines", "helper", "import", "full", "aws", "bad-error", "exit"],
)
def test_file_that_raises(write: Write, text: str, told: str) -> None:
    before = set(sys.modules)
    path = write(rule=RULE.format(answer=1) + text, helper="1 % 0", good="")
    refused(path, f"Rule file {path} {told}")
    assert before == set(sys.modules)


def test_interrupt_is_no_error_of_the_file(write: Write) -> None:
    before = set(sys.modules)
    text = RULE.format(answer=1) + "import good\nraise KeyboardInterrupt"
    with pytest.raises(KeyboardInterrupt):
        load_source(write(rule=text, good=""))
    assert before == set(sys.modules)


def test_dataclasses_and_pickles(write: Write) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass, field\n"
        "from typing import ClassVar\nfrom smdebug.rules import Rule\n"
        "@dataclass\nclass Limits:\n    low: float = 0.5\n    seen: ClassVar[int] = 0\n"
        "@dataclass(eq=False)\nclass MyRule(Rule):\n    base_trial: object\n"
        "    limits: Limits = field(default_factory=Limits)\n"
        "    def __post_init__(self): super().__init__(self.base_trial)\n"
        "    def invoke_at_step(self, step): return self.limits\n"
    )
    loaded = load_source(write(rule=text))
    limits = answer(loaded)
    copied = pickle.loads(pickle.dumps((limits, loaded.rule_class)))
    assert copied == (limits, loaded.rule_class)


def test_loaded_twice_is_two_modules(write: Write) -> None:
    path = write(rule="import helper\n" + RULE.format(answer="helper.n"), helper="n = []")
    first, second = load_source(path), load_source(path)
    assert first.rule_class is not second.rule_class
    assert answer(first) is answer(first)
    assert answer(first) is not answer(second)


# --- what is beside it


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("import helper", "helper.x"),
        ("import helper as h", "h.x"),
        ("from helper import x", "x"),
        ("from helper import x as y", "y"),
        ("from helper import *", "x"),
        ("from .helper import x", "x"),
        ("from . import helper", "helper.x"),
        ("import pack", "pack.name"),
        ("import pack.sub", "pack.sub.x"),
        ("import pack.sub as s", "s.x"),
        ("from pack import sub", "sub.x"),
        ("from pack.sub import x", "x"),
        ("from .pack.sub import x", "x"),
        ("from pack.sub import up", "up"),
        ("import plain.deep", "plain.deep.x"),
        ("from plain.deep import x", "x"),
        ("__import__('helper')", "__import__('helper').x"),
        ("import rule", "rule.MyRule.x"),
    ],
)
@pytest.mark.parametrize("lazily", [False, True], ids=["at-load", "lazily"])
def test_imports_from_beside(write: Write, statement: str, value: str, lazily: bool) -> None:
    if lazily and "*" in statement:
        statement = "from helper import x"
    lines = RULE.format(answer=f"{value}\n    x = 'beside'").splitlines()
    where, indent = (5, "        ") if lazily else (0, "")
    lines.insert(where, indent + statement)
    path = write(
        rule="\n".join(lines),
        helper="x = 'beside'",
        pack__in____init__="name = 'beside'",
        pack__in__sub="import helper\nfrom . import name as x\nfrom ..helper import x as up",
        plain__in__deep="x = 'beside'",
    )
    assert answer(load_source(path)) == "beside"


def test_two_folders_with_the_same_helper(write: Write) -> None:
    text = "from helper import x\n" + RULE.format(answer="x, late()")
    text += "\ndef late():\n    import helper\n    return helper.x\n"
    one = write(one__in__rule=text, one__in__helper="x = 1")
    two = write(two__in__rule=text, two__in__helper="x = 2")
    first, second = load_source(one), load_source(two)
    assert [answer(rule) for rule in (first, second, first)] == [(1, 1), (2, 2), (1, 1)]
    assert "helper" not in sys.modules


def test_beside_comes_before_an_installed_module(write: Write) -> None:
    path = write(rule="import pytest\n" + RULE.format(answer="pytest.x"), pytest="x = 'beside'")
    assert answer(load_source(path)) == "beside"
    assert sys.modules["pytest"] is pytest


def test_a_mere_folder_does_not_come_before_an_installed_module(write: Write) -> None:
    path = write(rule="import pytest\n" + RULE.format(answer="pytest"), pytest__in__x="")
    assert answer(load_source(path)) is pytest


def test_the_standard_library_comes_before_what_is_beside(write: Write) -> None:
    text = "import random\nimport helper\n" + RULE.format(
        answer="(random.__name__, helper.random.__name__, x)"
    )
    path = write(
        random=text.replace("import helper", "import helper\nfrom .string import x"),
        string="x = 'beside'",
        helper="import random, tempfile",
    )
    assert answer(load_source(path)) == ("random", "random", "beside")
    assert hasattr(random, "random")


def test_a_checkout_of_this_project_beside_it_is_not_taken(write: Write) -> None:
    path = write(rule=RULE.format(answer=1), smdebug__in____init__="1 / 0")
    assert issubclass(load_source(path).rule_class, Rule)


def test_nothing_is_written_beside_it(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = write(
        rule="import helper, pack\n" + RULE.format(answer="helper.x"),
        helper="x = 1",
        pack__in____init__="",
    )
    before = sorted(path.parent.rglob("*"))
    for folder in (path.parent, path.parent / "pack"):
        folder.chmod(0o555)
    try:
        assert answer(load_source(path)) == 1
        assert before == sorted(path.parent.rglob("*"))
    finally:
        for folder in (path.parent, path.parent / "pack"):
            folder.chmod(0o755)


def test_bytecode_beside_it_is_not_trusted(write: Write) -> None:
    path = write(rule="import helper\n" + RULE.format(answer="helper.x"), helper="x = 1")
    cache = path.parent / "__pycache__"
    cache.mkdir()
    (cache / f"helper.{sys.implementation.cache_tag}.pyc").write_bytes(b"junk")
    assert answer(load_source(path)) == 1


def test_helper_that_appears_later_is_seen(write: Write) -> None:
    path = write(rule=RULE.format(answer="__import__('late').x"))
    loaded = load_source(path)
    write(late="x = 5")
    assert answer(loaded) == 5


@pytest.mark.parametrize("name", sorted({*RULES} - SILENT))
def test_every_finding_of_a_built_in_rule_has_a_sentence_with_its_step_and_a_remedy(
    name: str,
) -> None:
    said = load_builtin(name).explain(Finding(7, "t", measured=0.5, limit=0.1), "t", STEP)
    assert said.summary.endswith(".")
    assert STEP in said.summary
    assert said.advice.endswith((".", "?"))


def test_the_note_tells_the_state_before_the_quantity_does() -> None:
    rule = load_builtin("LossNotDecreasing")
    note = "Never learned for 100 rows. It fell by 1.2 percent since the start."
    finding = Finding(7, "loss", measured=2.5, limit=2.4, note=note, quantity="loss")
    said = rule.explain(finding, "loss", STEP)
    assert said.summary == "loss has hardly fallen since the start, up to step 7."
    assert said.advice.startswith("Check that the optimizer has all parameters")


def test_the_quantity_tells_which_of_two_limits_was_passed() -> None:
    finding = Finding(7, "fc", measured=3e-9, limit=1e-8, quantity="small update")
    said = load_builtin("WeightUpdateRatio").explain(finding, "fc of worker_1", STEP)
    assert said.summary == (
        "Updates are too small: at step 7, that of fc of worker_1 is 3e-09 times the size of the "
        "weight."
    )


def test_shares_are_percentages_and_an_absent_tensor_is_called_by_its_kind() -> None:
    finding = Finding(7, measured=0.5, limit=0.1, quantity="evaluated rows that were trained with")
    assert "50% of its rows" in load_builtin("RepeatedBatches").explain(finding, "", STEP).summary
    diverged = Finding(7, measured=12.5, limit=1.0, note="Diverged for 18 rows.")
    said = load_builtin("LossNotDecreasing").explain(diverged, "", STEP)
    assert said.summary == "The loss has diverged: it is 12.5 at step 7."


@pytest.mark.parametrize(
    ("note", "where", "summary"),
    [
        ("It is odd.", "loss", "It is odd."),
        (None, "loss", "The condition is met for loss at step 7."),
        (None, "", "The condition is met at step 7."),
    ],
)
def test_a_rule_of_a_user_speaks_for_itself_whatever_its_name(
    tmp_path: Path, note: str | None, where: str, summary: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(RULE.replace("MyRule", "LossNotDecreasing"))
    rule = load_source(path, "LossNotDecreasing")
    assert rule.explain(Finding(7, note=note), where, STEP) == (summary, None)
