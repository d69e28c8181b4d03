"""docker build: builds the image of a checkout without the docker command."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rule_runner.containers.docker_engine import Engine
from rule_runner.errors import ClientError, UsageError
from rule_runner.escape import printable

ROOT: Final = Path(__file__).parents[2]
# Passed to the build if set. The address of the index may be secret and is never printed.
INDEX: Final = "PIP_INDEX_URL"


def build_image(
    tag: str,
    base_image: str | None = None,
    network: str | None = None,
    variant: str = "slim",
    build_arg: Sequence[str] = (),
    root: Path | None = None,
) -> None:
    """Build the image of a checkout, by default this one, and print its name.

    Raises
    ------
    UsageError
        If this is not a checkout, or an argument is not ``KEY=VALUE``.
    ClientError
        If the build fails.
    """
    root = root or ROOT
    if not (root / "Dockerfile").is_file():
        raise UsageError(
            "The image is built from a checkout of rule-runner, but this is an installed package. "
            "Run 'rule-runner docker build' in a checkout, or 'docker pull' an image and pass its "
            "name to 'rule-runner docker run --image'."
        )
    arguments = {"VARIANT": variant} | _arguments(build_arg)
    if base_image:
        arguments["BASE_IMAGE"] = base_image
    if os.environ.get(INDEX):
        arguments.setdefault(INDEX, os.environ[INDEX])
    for message in Engine().build(root, tag, arguments, network):
        sys.stderr.write(printable_lines(str(message.get("stream", ""))))
        if message.get("error"):
            raise ClientError(
                f"The image could not be built: {' '.join(str(message['error']).split())}"
            )
    print(tag)


def printable_lines(text: str) -> str:
    r"""Return text of several lines without any other control characters.

    >>> printable_lines("a\x1b[31m\nb\n")
    'a\\x1b[31m\nb\n'
    """
    return "\n".join(map(printable, text.split("\n")))


def _arguments(texts: Sequence[str]) -> dict[str, str]:
    """Return the build arguments by name."""
    arguments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name):
            raise UsageError(f"A build argument must be KEY=VALUE, got {text!r}.")
        arguments[name] = value
    return arguments
