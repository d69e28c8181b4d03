"""docker build: the image of a checkout, built by the engine without the docker command."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rule_runner.containers.engine import Engine
from rule_runner.errors import ClientError, UsageError
from rule_runner.show import printable

ROOT: Final = Path(__file__).parents[2]
# Passed on if it is set: where packages come from may be secret, and is never printed.
INDEX: Final = "PIP_INDEX_URL"


def build_image(
    tag: str,
    base_image: str | None = None,
    network: str | None = None,
    build_arg: Sequence[str] = (),
    root: Path | None = None,
) -> int:
    """Build the image of a checkout, by default this one; print its name, return the exit code.

    Raises
    ------
    UsageError
        If this is no checkout, or an argument is not ``KEY=VALUE``.
    ClientError
        If the build fails.
    """
    root = root or ROOT
    if not (root / "Dockerfile").is_file():
        msg = (
            "The image is built from a checkout of rule-runner, and this is an installed package. "
            "Run 'rule-runner docker build' in a checkout, or 'docker pull' an image and give its "
            "name to 'rule-runner docker run --image'."
        )
        raise UsageError(msg)
    arguments = _arguments(build_arg)
    if base_image:
        arguments["BASE_IMAGE"] = base_image
    if os.environ.get(INDEX):
        arguments.setdefault(INDEX, os.environ[INDEX])
    for told in Engine().build(root, tag, arguments, network):
        sys.stderr.write(printable_lines(str(told.get("stream", ""))))
        if told.get("error"):
            msg = f"The image could not be built: {' '.join(str(told['error']).split())}"
            raise ClientError(msg)
    print(tag)  # noqa: T201 - stdout carries results
    return 0


def printable_lines(text: str) -> str:
    r"""Return text of several lines without anything else that a terminal would obey.

    >>> printable_lines("a\x1b[31m\nb\n")
    'a\\x1b[31m\nb\n'
    """
    return "\n".join(map(printable, text.split("\n")))


def _arguments(texts: Sequence[str]) -> dict[str, str]:
    """Return the arguments of the build by their names."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name):
            msg = f"A build argument must be KEY=VALUE, got {text!r}."
            raise UsageError(msg)
        found[name] = value
    return found
