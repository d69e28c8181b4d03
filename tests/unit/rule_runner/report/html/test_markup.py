"""Html: what is put into a page stays text."""

import json

import pytest

from rule_runner.report.html.markup import NOTHING, Html, html, html_if, script_json

HOSTILE = "</script><b a='1' c=\"2\">&amp; {0} {name}"
ESCAPED = "&lt;/script&gt;&lt;b a=&#39;1&#39; c=&#34;2&#34;&gt;&amp;amp; {0} {name}"


def test_values_are_escaped_and_their_braces_are_text() -> None:
    assert html("<p>{name}</p>", name=HOSTILE) == f"<p>{ESCAPED}</p>"


def test_html_is_put_in_as_it_is() -> None:
    inner = html("<b>{name}</b>", name=HOSTILE)
    assert html("<p>{inner}{none}</p>", inner=inner, none=NOTHING) == f"<p><b>{ESCAPED}</b></p>"
    items = html("{items}", items=[inner, Html("<br>"), "<"])
    assert items == f"<b>{ESCAPED}</b><br>&lt;"


def test_what_is_made_of_html_is_html_only_by_these_functions() -> None:
    value = html("<b>{x}</b>", x="<")
    assert isinstance(html_if(value, "{x}", x=[value]), Html)
    assert html_if("", "<i>") == NOTHING
    assert not isinstance(value + "<i>", Html)
    assert html("{text}", text=value.upper()) == "&lt;B&gt;&amp;LT;&lt;/B&gt;"


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (None, "None"), (1.5, "1.5"), (True, "True")]
)
def test_other_values_are_texts(value: object, text: str) -> None:
    assert html("{value}", value=value) == text


def test_json_in_a_script_cannot_end_it_and_reads_back() -> None:
    value = {"b": [1, None, "</script><!--'&"], "a": "\u2028"}
    text = script_json(value)
    assert not set(text) & set("<>&'")
    assert json.loads(text) == value
    assert text.startswith('{"a"')
