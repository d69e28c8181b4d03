import re
import subprocess
import sys

import pytest

from rule_core.exceptions import SMDebugValueError
from rule_core.model import patterns

SLOW = "(t|tt)+$"


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("loss", "my_loss_output_0", True),
        ("^loss", "my_loss", False),
        ("^(?!gradient).*weight", "gradient/fc.weight", False),
        ("[Ll]oss_(?!input).*output", "CrossEntropyLoss_output_0", True),
        ("", "anything", True),
        ("labels*", "label", True),
        ("a{e}", "b", False),
        ("a{e}", "a{e}", True),
        ("a{s<=1}", "b{s<=1}", False),
        (r"a\{d}", "a{d}", True),
        (r"\\{2}", "\\\\", True),
        (r"\N{DIGIT ONE}{2}[{]", "11{", True),
        ("^a{2}$", "aa", True),
        ("^a{,2}$", "aaa", False),
        ("^a{1,}$", "aaa", True),
        ("^a{10}$", "a" * 10, True),
        ("^a{,10}$", "a" * 10, True),
        ("^a{10,20}$", "a" * 20, True),
    ],
)
def test_patterns_are_searched_anywhere(pattern: str, name: str, expected: bool) -> None:
    assert patterns.search(pattern, name) is expected
    assert patterns.search(pattern, name) is (re.search(pattern, name) is not None)


def test_matching_keeps_the_order_of_the_names() -> None:
    assert patterns.matching(["b", "a", "c", "ab"], ["a", "^b$"]) == ["b", "a", "ab"]


def test_a_wrong_pattern_is_an_error_without_any_names() -> None:
    with pytest.raises(re.error, match="missing \\), unterminated subpattern"):
        patterns.matching([], ["("])


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("((a{1000}){1000}){1000}", r"repeats too much: 23000000000 parts\.$"),
        ("a{9999999}", r"repeats too much: \d+ parts\.$"),
        ("a{0,99999999999999}", r"cannot be used: the repetition number is too large\.$"),
        ("(" * 3000 + ")" * 3000, r"\.\.\.' cannot be used: maximum recursion depth exceeded"),
    ],
)
def test_patterns_that_take_all_memory_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        patterns.search(pattern, "a")


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_the_second_engine_may_refuse_what_the_first_accepts() -> None:
    message = r"^Pattern '\[\[:foo:\]\]' cannot be used: unknown property at position 8\.$"
    with pytest.raises(SMDebugValueError, match=message):
        patterns.search("[[:foo:]]", "x")


def test_a_pattern_that_takes_for_ever_is_refused() -> None:
    message = r"^Pattern '\(t\|tt\)\+\$' takes more than 0\.5 s on a name of 61 characters\."
    for _ in range(2):
        with pytest.raises(SMDebugValueError, match=message):
            patterns.search(SLOW, "t" * 60 + "!")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", ["a"]),
        (["a", ["b", ("c",)]], ["a", "b", "c"]),
        ({"a"}, ["a"]),
        (frozenset(["a"]), ["a"]),
        ([], []),
    ],
)
def test_nested_lists_become_one(given: object, expected: list[str]) -> None:
    assert patterns.flatten(given) == expected


@pytest.mark.parametrize("given", [1, None, ["a", 1], {"a": 1}])
def test_what_is_no_pattern_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match=r"^A pattern must be a string or a list of strings, got "):
        patterns.flatten(given)


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "^", "gradient/", "^gradient/.*", "loss.*", "a b-c:", ".*", "^loss$"),
        *(r"^layer\d+\.weight$", "[Ll]oss_(?!input).*output", r"\.weight$"),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        *("", "gradient/a", "x gradient/", "loss\nloss", "a b-c:", "LOSS", "loss", "loss\n"),
        *("layer1.weight", "layer12xweight", "Loss_input_output", "loss_1_output_0", "a.weight"),
    ],
)
def test_plain_patterns_match_what_regex_matches(pattern: str, name: str) -> None:
    expected = patterns.compiled(pattern).search(name) is not None
    assert patterns.search(pattern, name) == expected


def test_plain_patterns_need_no_regex() -> None:
    code = (
        "import sys\nfrom rule_core.model.patterns import search\n"
        "assert search('^gradient/.*', 'gradient/a') and search('[Ll]oss_(?!input).*t', 'loss_t')\n"
        "assert 'regex' not in sys.modules\n"
        "assert search('gradient|loss', 'loss') and 'regex' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        *((pattern, "a") for pattern in ("a.*a.*b", r"\d+\d+", "(a|a)+", "a?a?a", "(a+)+", "a{9}")),
        ("a.*b", (patterns.PLAIN_NAME + 1) * "a"),
    ],
)
def test_what_may_take_long_is_not_plain(pattern: str, name: str) -> None:
    code = (
        "import sys\nfrom rule_core.model.patterns import search\n"
        f"search({pattern!r}, {name!r})\nassert 'regex' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
