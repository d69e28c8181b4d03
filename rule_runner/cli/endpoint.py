"""--endpoint-url: the S3 endpoint of this process and its children."""

import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import click

VARIABLE: Final = "AWS_ENDPOINT_URL_S3"


def _use(context: click.Context, option: click.Parameter, url: str | None) -> None:
    """Set the endpoint for boto3, also in child processes."""
    del context, option
    if url is None:
        return
    if not _is_endpoint(url):
        msg = f"an endpoint must be http://host or https://host, got {url!r}."
        raise click.BadParameter(msg)
    os.environ[VARIABLE] = url


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    right = parts.scheme in {"http", "https"} and parts.hostname and parts.username is None
    return bool(right) and port != 0 and url.isprintable() and " " not in url


def endpoint_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to a command; the command does not receive its value."""
    return click.option(
        "--endpoint-url",
        metavar="URL",
        callback=_use,
        expose_value=False,
        help="Endpoint of an S3-compatible store.",
    )(command)
