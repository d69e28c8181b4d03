"""NamedTexts: HTML, SQL and JavaScript in a file beside the module that uses them."""

import re
from functools import cached_property
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"^(?:<!--|--|//) name: (\w+).*\n", re.MULTILINE)


class NamedTexts:
    """The texts in a file, each below a comment ``name: ...``; the file is read on first use.

    The last line end of a text does not count: a text that ends with one is followed by an empty
    line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    @cached_property
    def _texts(self) -> dict[str, str]:
        _, *parts = _NAME.split(self._path.read_text("utf-8"))
        return dict(
            zip(parts[::2], (content.removesuffix("\n") for content in parts[1::2]), strict=True)
        )
