"""watch and serve: the commands that judge trials as they appear."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import click

from rule_runner.cli.evaluation import BASELINE, FAIL_ON
from rule_runner.cli.options import choice, endpoint_option, flag, heading, takes, text, texts
from rule_runner.cli.program.help_pages import Heading, HelpedCommand, HelpedGroup
from rule_runner.cli.reading import Sources, takes_reading
from rule_runner.cli.reporting import reporting, results_alone, verbose_reporting
from rule_runner.errors import UsageError, translated

_EXTRA: Final = frozenset({"prometheus_client", "sse_starlette", "starlette", "uvicorn"})
_FILE: Final = click.Path(dir_okay=False, path_type=Path)
_WATCHED: Final = (
    click.argument("roots", nargs=-1, metavar="[ROOT]..."),
    heading(Heading.TRIAL),
    text("--config", "FILE", "YAML or JSON file with roots and rules, such as fleet.yaml."),
    heading(Heading.RESULTS),
    text(
        "--database",
        "FILE",
        "Index of the trials; by default watch.sqlite beside the output folders.",
    ),
    flag("--rebuild", "Rebuild the index from the results."),
)


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner watch runs/\nrule-runner watch runs/ --once --fail-on-issues",
)
@takes(_WATCHED)
@heading(Heading.STEPS)
@flag("--once", "Judge the trials that exist now, and exit.")
@takes(BASELINE)
@takes(FAIL_ON)
@endpoint_option
@verbose_reporting
@results_alone()
@takes_reading
def watch(
    roots: tuple[str, ...],
    config: str | None,
    database: str | None,
    rebuild: bool,
    once: bool,
    baseline: str | None,
    trend: str | None,
    fail_on: Literal["error", "warning"] | None,
    fail_on_issues: bool,
    sources: Sources,
) -> int:
    """Judge the trials at and below each ROOT as they appear.

    A ROOT is a folder or s3://bucket/prefix; '*' stands for any part of a name. The command runs
    until a signal arrives. Each trial is judged in a process of its own, which follows it until it
    ends. One line is logged for each change.
    """
    from rule_runner.commands import watch as command
    from rule_runner.config.request import EvaluationRequest

    fails_on = EvaluationRequest(fail_on=fail_on, fail_on_issues=fail_on_issues).fails_on
    if fails_on is not None and not once:
        raise UsageError("Options --fail-on and --fail-on-issues require --once.")
    request = command.WatchRequest(roots, config, database, sources, rebuild, baseline, trend)
    return command.watch(request, once=once, fails_on=fails_on)


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner serve runs/\n"
    "rule-runner serve runs/ --host 0.0.0.0 --tokens tokens --tls-cert cert.pem --tls-key key.pem",
)
@takes(_WATCHED)
@heading(Heading.TRIAL)
@click.option(
    "--watch/--no-watch",
    "is_watching",
    default=True,
    help="Judge trials, or only show the --database of another 'watch'.",
)
@heading(Heading.SYSTEM)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8420,
    show_default=True,
    help="Port to listen on; 0 selects a free one.",
)
@heading(Heading.ACCESS)
@click.option("--tokens", type=_FILE, help="File with the access tokens.")
@click.option("--tls-cert", type=_FILE, help="Certificate chain, PEM.")
@click.option("--tls-key", type=_FILE, help="Private key of the certificate, PEM.")
@flag("--allow-plain-http", "Accept connections from other machines without TLS.")
@texts(
    "--trusted-proxy",
    "CIDR",
    "Network of trusted proxies, whose headers are read; repeatable.",
    "proxies",
)
@text("--user-header", "NAME", "Header in which trusted proxies pass the user.")
@texts(
    "--allowed-host",
    "NAME",
    "Further host name of this service, if it needs no tokens; repeatable.",
    "hosts",
)
@heading(Heading.SYSTEM)
@click.option(
    "--max-streams",
    type=click.IntRange(1, 10_000),
    default=250,
    show_default=True,
    help="Largest number of simultaneous event streams.",
)
@endpoint_option
@verbose_reporting
@results_alone()
@takes_reading
def serve(
    roots: tuple[str, ...],
    config: str | None,
    database: str | None,
    rebuild: bool,
    is_watching: bool,
    host: str,
    port: int,
    tokens: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    allow_plain_http: bool,
    proxies: tuple[str, ...],
    user_header: str | None,
    hosts: tuple[str, ...],
    max_streams: int,
    sources: Sources,
) -> int:
    """Judge trials as 'watch' does, and show them in a browser.

    By default, only this machine can connect. Another --host requires --tokens or --trusted-proxy,
    and TLS. Prometheus metrics are at /metrics.
    """
    try:
        from rule_runner.commands import serve as command
        from rule_runner.commands.watch import WatchRequest
        from rule_runner.service.settings import ServiceSettings
    except ModuleNotFoundError as err:
        if err.name not in _EXTRA:
            raise
        raise UsageError(
            "Command 'serve' needs more packages: pip install 'rule-runner[serve]'."
        ) from err
    settings = ServiceSettings(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        allow_plain_http=allow_plain_http,
        tokens=tokens,
        trusted_proxies=command.networks_of(proxies),
        user_header=user_header,
        allowed_hosts=tuple(map(str.lower, hosts)),
        max_streams=max_streams,
    )
    request = WatchRequest(roots, config, database, sources, rebuild)
    return command.serve(request, settings, is_watching=is_watching)


@click.group("serve-token", cls=HelpedGroup)
def serve_token() -> None:
    """Add, list and revoke access tokens of 'serve'."""


_TOKENS: Final = click.option(
    "--tokens", type=_FILE, required=True, help="File with the tokens; only its owner may read it."
)


@serve_token.command("add", epilog="rule-runner serve-token add ann --role act --tokens tokens")
@click.argument("name")
@choice(
    "--role",
    ("read", "act"),
    "'act' may also acknowledge findings, and repeat or cancel evaluations.",
)
@text("--expires", "TIME", "Lifetime, such as 12h.", default="90d", show_default=True)
@_TOKENS
@reporting
def add_token(name: str, role: str, expires: str, tokens: Path) -> None:
    """Create a token and print it once."""
    from datetime import timedelta

    from rule_runner.durations import seconds_of
    from rule_runner.service.access.tokens import Role, TokenFile

    with translated(UsageError, ValueError, before="Option --expires ", after="."):
        lifetime = timedelta(seconds=seconds_of(expires))
    click.echo(TokenFile(tokens).add(name, Role(role), lifetime))


@serve_token.command("list", epilog="rule-runner serve-token list --tokens tokens")
@_TOKENS
@reporting
def list_tokens(tokens: Path) -> None:
    """List the tokens with their names, roles and expiry dates."""
    from rule_runner.service.access.tokens import TokenFile

    now, file = datetime.now(UTC), TokenFile(tokens)
    file.check()
    for token in file.tokens():
        until = "no end" if token.expires_at is None else f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
        expired = " (expired)" if token.has_expired(now) else ""
        click.echo(f"{token.name}\t{token.role}\t{until}{expired}")


@serve_token.command("revoke", epilog="rule-runner serve-token revoke ann --tokens tokens")
@click.argument("name")
@_TOKENS
@reporting
def revoke_token(name: str, tokens: Path) -> None:
    """Revoke a token and end its sessions."""
    from rule_runner.service.access.tokens import TokenFile

    TokenFile(tokens).revoke(name)
