"""Shows the doctests of docstrings as code on the documentation site; mkdocstrings loads it."""

import re
from typing import Any

from griffe import Extension, Object

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedDoctests(Extension):
    """Put doctests that stand outside an Examples section into code blocks."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object, once it is complete."""
        if obj.docstring and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
