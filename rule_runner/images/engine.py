"""PushingEngine: the Docker engine, as far as it tags an image and pushes it to a registry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rule_runner.containers.engine import Engine
from rule_runner.containers.errors import EngineError, said
from rule_runner.durable import Closing
from rule_runner.images.ecr import PUSH_PERMISSIONS, Login
from rule_runner.images.errors import ImageError
from rule_runner.images.uris import ImageUri

Progress = Callable[[int, int], None]  # bytes pushed, and bytes of all layers seen so far

_NOT_FOUND: Final = 404
_REFUSED: Final = ("denied", "not authorized", "unauthorized", "no basic auth", "forbidden")


class PushingEngine(Engine, Closing):
    """The engine that this process's environment names.

    Raises
    ------
    EngineError
        If there is none, it may not be used, or it is too old.
    """

    def close(self) -> None:
        """Let go of the engine."""
        self._client.close()

    def push(self, image: str, to: ImageUri, login: Login | None, progress: Progress) -> ImageUri:
        """Push the engine's `image` to a registry; return it by its digest there.

        Parameters
        ----------
        to
            Registry, repository and tag.
        login
            For that registry, and sent to no other; without one the engine's own is used.
        progress
            Called while layers are sent.

        Raises
        ------
        ImageError
            If the engine has no such image, or the registry does not take it.
        EngineError
            If the engine does not do its work.
        """
        if login is not None and login.host != to.host:
            msg = f"Login for {login.host!r} must not go to another registry, got {to.host!r}."
            raise ImageError(msg)
        found = self.find(image)
        account = {"username": login.username, "password": login.password} if login else None
        sent = _Sent()
        with _failures(f"The engine does not push to {to.name!r}"):
            found.tag(to.name, tag=to.tag)
            for answer in self._client.api.push(
                to.name, tag=to.tag, stream=True, decode=True, auth_config=account
            ):
                if "error" in answer:
                    raise ImageError(_refusal(to, str(answer["error"]), ecr=login is not None))
                if sent.took(answer):
                    progress(*sent.size)
        if sent.digest is None:
            msg = f"The engine did not say which digest {to.name!r} has now. Push it again."
            raise ImageError(msg)
        return ImageUri(to.host, to.repository, digest=sent.digest)

    def find(self, image: str) -> Any:
        """Return the engine's `image`, as the SDK has it.

        Raises
        ------
        ImageError
            If it has none.
        EngineError
            If the engine does not do its work.
        """
        with _failures(f"The engine does not look for {image!r}"):
            try:
                return self._client.images.get(image)
            except OSError as err:  # as the SDK's errors about answers are
                if getattr(err, "status_code", None) != _NOT_FOUND:
                    raise
                msg = (
                    f"The engine has no image {image!r}. Build one with "
                    f"'rule-runner docker build', or name another with --image."
                )
                raise ImageError(msg) from err


class _Sent:
    """How far a push is, by what the engine says of it.

    Attributes
    ----------
    digest
        What the registry calls the image, once it has it.
    """

    def __init__(self) -> None:
        self.digest: str | None = None
        self._layers: dict[str, tuple[int, int]] = {}  # bytes done and all, by layer

    @property
    def size(self) -> tuple[int, int]:
        """Return the bytes that are sent, and those of all layers that were mentioned."""
        done, everything = zip(*self._layers.values(), strict=True)
        return sum(done), sum(everything)

    def took(self, answer: dict[str, Any]) -> bool:
        """Note what one answer says; return whether it says how far a layer is."""
        self.digest = (answer.get("aux") or {}).get("Digest", self.digest)
        detail = answer.get("progressDetail") or {}
        if "current" not in detail or "id" not in answer:
            return False
        done = int(detail["current"])
        self._layers[answer["id"]] = (done, max(done, int(detail.get("total", 0))))
        return True


@contextmanager
def _failures(what: str) -> Iterator[None]:
    """Turn what the engine's client raises into a sentence."""
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - probes sockets when imported

    try:
        yield
    except (OSError, HTTPError) as err:
        msg = f"{what}: {said(err)}"
        raise EngineError(msg) from err


def _refusal(to: ImageUri, reason: str, *, ecr: bool) -> str:
    """Return the sentence about a registry that does not take an image."""
    text = f"Cannot push to {to.name!r}: {reason.strip().rstrip('.')}."
    if not any(one in reason.lower() for one in _REFUSED):
        return text
    if ecr:
        return f"{text} The caller needs {PUSH_PERMISSIONS}."
    return f"{text} Log in with 'docker login {to.host}'."
