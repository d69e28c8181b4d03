"""TokenFile: the tokens that let people and programs in."""

import enum
import hashlib
import hmac
import secrets
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from rule_runner.errors import ClientError, restated
from rule_runner.results.durable_files import output_errors, replace_durably

_BYTES: Final = 32  # of a token: too many to be guessed, so that a plain hash protects it
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Role(enum.StrEnum):
    """What a principal may do: ``read`` everything, or ``act`` as well."""

    READ = "read"
    ACT = "act"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without the token itself.

    Attributes
    ----------
    digest
        SHA-256 of the token, in hexadecimal digits.
    expires_at
        When it expires; None: never.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"\A[\w.@-]+\Z")]
    role: Role
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    created_at: Annotated[datetime, Meta(tz=True)]
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None

    def has_expired(self, now: datetime) -> bool:
        """Return whether it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class TokenFile:
    """The tokens of a service, in a file that is read again when it changes.

    Parameters
    ----------
    path
        The file, which only its owner may read; see `is_exposed`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def check(self) -> None:
        """Check that the file is there and can be read.

        Raises
        ------
        ClientError
            If not.
        """
        if not self.path.exists():
            raise ClientError(
                f"Tokens {str(self.path)!r} do not exist. Make the first one: rule-runner "
                f"serve-token add NAME --tokens {self.path}"
            )
        self.tokens()

    def tokens(self) -> Sequence[Token]:
        """Return all tokens.

        Raises
        ------
        ClientError
            If the file is damaged, or others may read it.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return ()
        except OSError as err:
            raise self._unreadable(err) from err
        if is_exposed(status.st_mode, status.st_uid):
            raise ClientError(
                f"Others may read tokens {str(self.path)!r}. Run: chmod 600 {self.path}"
            )
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version != self._version:
            self._tokens = self._read()
            self._version = version
        return self._tokens

    def _read(self) -> tuple[Token, ...]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=tuple[Token, ...])
        except (OSError, msgspec.MsgspecError, ValueError) as err:
            raise self._unreadable(err) from err

    def _unreadable(self, err: Exception) -> ClientError:
        return ClientError(f"Tokens {str(self.path)!r} cannot be read: {err}. Restore the file.")

    def add(self, name: str, role: Role, lifetime: timedelta | None = None) -> str:
        """Add a token and return it; it is not kept, and cannot be shown again.

        Raises
        ------
        ClientError
            If the name is taken or not valid.
        """
        if any(token.name == name for token in self.tokens()):
            raise ClientError(
                f"There is a token {name!r} already. Revoke it first, or choose another name."
            )
        secret = secrets.token_urlsafe(_BYTES)
        now = datetime.now(UTC).replace(microsecond=0)
        token = Token(
            name=name,
            role=role,
            digest=digest_of(secret),
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
        )
        problem = f"Name {name!r:.200} of a token may hold letters, digits, '.', '_', '@' and '-'."
        with restated(ClientError, msgspec.ValidationError, sentence=problem):
            msgspec.convert(msgspec.to_builtins(token), Token)
        self._write([*self.tokens(), token])
        return secret

    def revoke(self, name: str) -> None:
        """Remove a token.

        Raises
        ------
        ClientError
            If there is none of that name.
        """
        kept = [token for token in self.tokens() if token.name != name]
        if len(kept) == len(self.tokens()):
            raise ClientError(
                f"There is no token {name!r:.200}. 'rule-runner serve-token list' shows them."
            )
        self._write(kept)

    def find(self, digest: str, now: datetime) -> Token | None:
        """Return the token with a digest, unless it has expired."""
        matching = [token for token in self.tokens() if hmac.compare_digest(token.digest, digest)]
        return next((token for token in matching if not token.has_expired(now)), None)

    def _write(self, tokens: Sequence[Token]) -> None:
        with output_errors(self.path):
            temporary = self.path.with_name(f"{self.path.name}.tmp")
            temporary.touch(0o600)
            replace_durably(self.path, msgspec.json.encode(tokens).decode(), temporary)
        self._version = None


def is_exposed(mode: int, owner: int) -> bool:
    """Return whether a file is open to more than its owner.

    A file of root may be readable by a group: that is how Kubernetes gives a secret to a user.

    >>> is_exposed(0o600, 1000), is_exposed(0o640, 1000), is_exposed(0o440, 0), is_exposed(0o444, 0)
    (False, True, False, True)
    """
    return bool(mode & _OTHERS & ~(0 if owner else stat.S_IRGRP))


def digest_of(secret: str) -> str:
    """Return the stored form of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()
