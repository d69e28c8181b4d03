"""Messenger: sends messages for people, in chats, by e-mail and to pagers, through Apprise."""

import logging
import os
import re
from typing import Any, Final, NamedTuple

from rule_runner.errors import UsageError, restated

VARIABLE: Final = "$"  # begins the name of a variable that has the address
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]()<>#+\-.!|~]")
KEY_HEADER: Final = "Idempotency-Key"
_MISSING: Final = (
    "Sink 'apprise' needs the package apprise. Install it with pip install 'rule-runner[apprise]'."
)


class Message(NamedTuple):
    """A message in plain text.

    Attributes
    ----------
    serious
        Whether it tells of a failure or an error, not only of warnings.
    key
        The same whenever this message is sent, and unique to it; "" for none. Services that drop
        repeated messages get it.
    links
        The addresses in the body.
    incident
        Messages on the same incident have the same; "" for none. Services that can update what
        they show do so.
    recovered
        Whether it tells that nothing is wrong any more.
    """

    title: str
    body: str
    serious: bool
    key: str = ""
    links: tuple[str, ...] = ()
    incident: str = ""
    recovered: bool = False

    def markdown(self) -> str:
        """Return the body as Markdown, in which only `links` are markup."""
        text = _escaped(self.body)
        for link in sorted(self.links, key=len, reverse=True):
            whole = re.compile(rf"(?<![(\[]){re.escape(_escaped(link))}(?![\w/])")
            markup = f"[{link}]({link})".replace("\\", r"\\")
            text = whole.sub(markup, text)
        return text.replace("\n", "  \n")


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


class NotSentError(Exception):
    """The service did not take a message; the text is the reason, without secrets."""


class Messenger:
    """Sends messages to one address of Apprise.

    Parameters
    ----------
    address
        An address of Apprise, or ``$NAME``: the variable that has it.

    Raises
    ------
    UsageError
        If Apprise is not installed, or does not know the address.
    """

    def __init__(self, address: str) -> None:
        with restated(UsageError, ImportError, sentence=_MISSING):
            import apprise
        asset = apprise.AppriseAsset(
            app_id="rule-runner",
            app_desc="rule-runner",
            app_url="",
            image_url_mask="",
            image_url_logo="",
            storage_mode="memory",
        )
        self._apprise = apprise.Apprise(asset=asset)
        # Apprise logs addresses that it does not know, with their secrets.
        logging.getLogger("apprise").propagate = False
        if not self._apprise.add(_resolved(address)):
            raise UsageError(
                f"Apprise does not know the address {masked(address)!r}, or a part of it is "
                "missing. Its documentation lists the addresses of all services."
            )
        # In Teams and others, plain text has no links.
        self._is_markdown = all(service.notify_format == "markdown" for service in self._apprise)
        # PagerDuty shows all messages with the same key as one incident.
        self._keyed: list[Any] = [
            service for service in self._apprise if getattr(service, "dedup", 0) is None
        ]

    @property
    def updates(self) -> bool:
        """Whether a message replaces an earlier one on the same incident."""
        return bool(self._keyed)

    def send(self, message: Message) -> None:
        """Send a message, once.

        Raises
        ------
        NotSentError
            If the service did not take it.
        """
        if message.key:
            self._mark(message)
        result = self._apprise.notify(
            title=message.title,
            body=message.markdown() if self._is_markdown else message.body,
            notify_type=_kind(message),
            body_format="markdown" if self._is_markdown else "text",
            log_level=logging.WARNING,
        )
        if not result:
            said = [entry.message for entry in result.logs()]
            reason = said[-1] if said else "the service did not take the message."
            raise NotSentError(reason)

    def _mark(self, message: Message) -> None:
        """Give the next message its key where the service has a place for it."""
        for service in self._keyed:
            service.dedup = message.incident or message.key
        for service in self._apprise:
            headers = getattr(service, "headers", None)
            if isinstance(headers, dict):
                headers[KEY_HEADER] = message.key


def _kind(message: Message) -> str:
    """Return what Apprise calls a kind of message; PagerDuty may close an incident by it."""
    if message.recovered:
        return "success"
    return "failure" if message.serious else "warning"


def masked(address: str) -> str:
    """Return an address without the parts that may be secret.

    >>> masked("slack://T0/B1/secret")
    'slack://...'
    >>> masked("$ALERTS")
    '$ALERTS'
    """
    if address.startswith(VARIABLE):
        return address
    scheme, separator, _ = address.partition("://")
    return f"{scheme}://..." if separator else "..."


def _resolved(address: str) -> str:
    """Return an address, read from the environment if it is the name of a variable."""
    if not address.startswith(VARIABLE):
        return address
    name = address.removeprefix(VARIABLE)
    value = os.environ.get(name)
    if not value:
        raise UsageError(
            f"Sink 'apprise:{address}' needs its address in the variable {name}, which is not set."
        )
    return value
