"""Options of commands: those of click, with the settings that most of them share."""

import os
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, Final
from urllib.parse import urlsplit

import click

from rule_runner.cli.program.help_pages import Heading

Command = Callable[..., Any]
Option = Callable[[Command], Command]

ENDPOINT: Final = "AWS_ENDPOINT_URL_S3"
IMAGE: Final = "rule-runner:latest"
NOT_NEGATIVE: Final = click.FloatRange(0)
POSITIVE: Final = click.FloatRange(0, min_open=True)


def text(name: str, metavar: str, meaning: str, *names: str, **settings: Any) -> Option:
    """Return an option with a text; `names` are its other names, and that of the argument."""
    return click.option(name, *names, metavar=metavar, help=meaning, **settings)


texts = partial(text, multiple=True)


def number(
    name: str,
    meaning: str,
    default: float | None = None,
    allowed: click.FloatRange | click.IntRange = NOT_NEGATIVE,
    metavar: str = "S",
) -> Option:
    """Return an option with a number, by default of seconds."""
    shows = bool(default)
    return text(name, metavar, meaning, type=allowed, default=default, show_default=shows)


def count(name: str, meaning: str, default: int | None = None, least: int = 1) -> Option:
    """Return an option with a whole number."""
    return number(name, meaning, default, click.IntRange(least), "N")


def choice(name: str, choices: tuple[str, ...], meaning: str, *names: str) -> Option:
    """Return an option with one of some texts, by default the first; `names` as in `text`."""
    kind, first = click.Choice(choices), choices[0]
    return click.option(name, *names, type=kind, default=first, show_default=True, help=meaning)


def flag(name: str, meaning: str, *names: str) -> Option:
    """Return an option without a value."""
    return click.option(name, *names, is_flag=True, help=meaning)


def without(name: str, meaning: str) -> Option:
    """Return the option ``--no-NAME``, which sets the argument `name` to False."""
    return click.option(f"--no-{name}", name, flag_value=False, default=True, help=meaning)


def output(meaning: str, metavar: str = "DIR", *names: str, **settings: Any) -> Option:
    """Return the option for what a command writes; `names` as in `text`."""
    return text("--output", metavar, meaning, "-o", *names, **settings)


def heading(name: Heading) -> Option:
    """Return a decorator that puts the options below it under a heading, up to the next one."""

    def decorate(command: Command) -> Command:
        for param in vars(command)["__click_params__"]:
            vars(param).setdefault("heading", name)
        return command

    return decorate


def takes(options: tuple[Option, ...]) -> Option:
    """Return a decorator that gives a command several options."""
    return lambda command: reduce(lambda target, option: option(target), options[::-1], command)


def _use(_context: click.Context, _option: click.Parameter, url: str | None) -> None:
    """Set the endpoint for boto3, also in child processes."""
    if url is None:
        return
    if not _is_endpoint(url):
        raise click.BadParameter(f"an endpoint must be http://host or https://host, got {url!r}.")
    os.environ[ENDPOINT] = url


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    right = parts.scheme in {"http", "https"} and parts.hostname and parts.username is None
    return bool(right) and port != 0 and url.isprintable() and " " not in url


# The S3 endpoint of this process and its children; the command does not receive its value.
endpoint_option: Final = takes(
    (
        heading(Heading.GENERAL),
        text(
            "--endpoint-url",
            "URL",
            "Endpoint of an S3-compatible store.",
            callback=_use,
            expose_value=False,
        ),
    )
)
