"""Html: text of a page, in which everything that is put into it is escaped."""

import json
from typing import Any, Final

_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
)
# JSON in a script: nothing in it may end the script or begin a comment.
_IN_SCRIPT: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&'"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


NOTHING: Final = Html("")


def html(form: str, **values: object) -> Html:
    """Return a form with values in its braces, which are escaped if they are not `Html`.

    The items of a list follow one another.

    >>> html("<b>{name}</b>", name="a<b"), html("<p>{bold}</p>", bold=[Html("<b>x</b>"), "<"])
    ('<b>a&lt;b</b>', '<p><b>x</b>&lt;</p>')
    """
    return Html(form.format(**{name: _escaped(value) for name, value in values.items()}))


def html_if(condition: object, form: str, **values: object) -> Html:
    """Return a form with values as `html` does, or nothing if a condition does not hold."""
    return html(form, **values) if condition else NOTHING


def script_json(value: Any) -> Html:
    """Return a value as JSON for a script element."""
    return Html(json.dumps(value, sort_keys=True).translate(_IN_SCRIPT))


def _escaped(value: object) -> str:
    if isinstance(value, list):
        return "".join(map(_escaped, value))
    return value if isinstance(value, Html) else str(value).translate(_ESCAPES)
