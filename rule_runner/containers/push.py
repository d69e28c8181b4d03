"""images push: pushes an image to ECR in several regions, or to another registry."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from rule_runner.containers.docker_engine import Engine
from rule_runner.containers.ecr import PUSH_PERMISSIONS, Ecr, Login
from rule_runner.containers.errors import EngineError, engine_message
from rule_runner.errors import ImageError, UsageError, translated
from rule_runner.images.registrations import place, register
from rule_runner.images.uri import ImageUri, parse_place
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)


PushProgress = Callable[[int, int], None]  # bytes pushed, and bytes of all known layers

_NOT_FOUND: Final = 404
_DENIED: Final = ("denied", "not authorized", "unauthorized", "no basic auth", "forbidden")


@dataclass(frozen=True, slots=True)
class Push:
    """The options of a push.

    Attributes
    ----------
    image
        Name of the image in the engine.
    tag
        Tag in the registry; by default that of `image`.
    create
        Whether to create a missing repository.
    project
        Whether to register the pushed images for the project instead of the user.
    """

    image: str
    repository: str = "rule-runner"
    tag: str | None = None
    create: bool = False
    project: bool = False

    def to(self, host: str, repository: str, tag: str | None = None) -> ImageUri:
        """Return the URI of the image in a registry."""
        _, colon, own = self.image.partition("@")[0].rpartition(":")
        own = own if colon and "/" not in own else "latest"
        return parse_place(f"{host}/{repository}:{tag or self.tag or own}")


def push_all(options: Push, regions: Sequence[str], to: str | None) -> Iterator[str]:
    """Push to `regions`, which may contain commas, or to the registry `to`; yield each URI.

    Raises
    ------
    UsageError
        If both or neither are given.
    """
    names = [name.strip() for text in regions for name in text.split(",") if name.strip()]
    if (to is None) != bool(names):
        raise UsageError("Give either --region, once or more, or --to HOST/REPOSITORY.")
    return push_to_regions(options, names) if to is None else iter([push_to_registry(options, to)])


def push_to_regions(options: Push, regions: Sequence[str]) -> Iterator[str]:
    """Push to the caller's own ECR in each region, register each image, and yield its URI.

    All logins and repositories are checked before the first push.

    Raises
    ------
    ImageError
        If the engine, a region, its ECR or the project's file fails; images that were yielded
        before are pushed and registered.
    """
    place(project=options.project)
    with PushingEngine() as engine:
        engine.find(options.image)
        goals = [(region, *_prepare(options, Ecr(region))) for region in dict.fromkeys(regions)]
        for region, login, to in goals:
            with _progress(to) as progress:
                pushed = engine.push(options.image, to, login, progress)
            _log.info("image_pushed", image=str(pushed))
            register(region, str(pushed), project=options.project)
            yield str(pushed)


def _prepare(options: Push, ecr: Ecr) -> tuple[Login, ImageUri]:
    """Return the login to a region's registry and the URI of the image in its repository."""
    login = ecr.log_in()
    to = options.to(login.host, options.repository)
    ecr.require_repository(options.repository, create=options.create)
    return login, to


def push_to_registry(options: Push, name: str) -> str:
    """Push to another registry with the engine's own login; return the URI.

    Parameters
    ----------
    name
        ``HOST/REPOSITORY`` or ``HOST/REPOSITORY:TAG``.

    Raises
    ------
    ImageError
        If the name is invalid, or the engine or the registry fails.
    UsageError
        If the name has a digest.
    """
    place_in_registry = parse_place(name)
    if place_in_registry.digest is not None:
        raise UsageError(f"--to must be HOST/REPOSITORY or HOST/REPOSITORY:TAG, got {name!r}.")
    to = options.to(place_in_registry.host, place_in_registry.repository, place_in_registry.tag)
    with PushingEngine() as engine, _progress(to) as progress:
        return str(engine.push(options.image, to, None, progress))


@contextmanager
def _progress(to: ImageUri) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a push: a bar on a terminal, a log line elsewhere."""
    _log.info("image_push_started", image=str(to))
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(to.host, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class PushingEngine(Engine):
    """An engine that pushes images."""

    def push(
        self, image: str, to: ImageUri, login: Login | None, progress: PushProgress
    ) -> ImageUri:
        """Push the engine's `image` to a registry; return its URI with the digest.

        Parameters
        ----------
        to
            Registry, repository and tag.
        login
            Credentials for that registry only; without them the engine uses its own.
        progress
            Called while layers are pushed.

        Raises
        ------
        ImageError
            If the engine does not have the image, or the registry rejects it.
        EngineError
            If the engine fails.
        """
        if login is not None and login.host != to.host:
            raise ImageError(
                f"Login for {login.host!r} must not go to another registry, got {to.host!r}."
            )
        sdk_image = self.find(image)
        account = {"username": login.username, "password": login.password} if login else None
        status = _PushStatus()
        with _failures(f"The engine cannot push to {to.name!r}"):
            sdk_image.tag(to.name, tag=to.tag)
            for answer in self._client.api.push(
                to.name, tag=to.tag, stream=True, decode=True, auth_config=account
            ):
                if "error" in answer:
                    raise ImageError(_refusal(to, str(answer["error"]), ecr=login is not None))
                if status.update(answer):
                    progress(*status.size)
        if status.digest is None:
            raise ImageError(f"The engine did not report the digest of {to.name!r}. Push it again.")
        return ImageUri(to.host, to.repository, digest=status.digest)

    def find(self, image: str) -> Any:
        """Return the engine's `image` as an object of the SDK.

        Raises
        ------
        ImageError
            If the engine does not have it.
        EngineError
            If the engine fails.
        """
        with _failures(f"The engine cannot look up {image!r}"):
            try:
                return self._client.images.get(image)
            except OSError as err:  # the base class of the SDK's HTTP errors
                if getattr(err, "status_code", None) != _NOT_FOUND:
                    raise
                raise ImageError(
                    f"The engine has no image {image!r}. Build one with "
                    f"'rule-runner docker build', or choose another with --image."
                ) from err


class _PushStatus:
    """The status of a push by the messages of the engine.

    Attributes
    ----------
    digest
        Digest of the image in the registry, once it is pushed.
    """

    def __init__(self) -> None:
        self.digest: str | None = None
        self._layers: dict[str, tuple[int, int]] = {}  # bytes pushed and total bytes by layer

    @property
    def size(self) -> tuple[int, int]:
        """Number of bytes pushed, and of all known layers."""
        done, total = zip(*self._layers.values(), strict=True)
        return sum(done), sum(total)

    def update(self, answer: dict[str, Any]) -> bool:
        """Record a message; return whether it is about the progress of a layer."""
        self.digest = (answer.get("aux") or {}).get("Digest", self.digest)
        detail = answer.get("progressDetail") or {}
        if "current" not in detail or "id" not in answer:
            return False
        done = int(detail["current"])
        self._layers[answer["id"]] = (done, max(done, int(detail.get("total", 0))))
        return True


def _failures(problem: str) -> AbstractContextManager[None]:
    """Turn errors of the engine's client into an `EngineError`."""
    from urllib3.exceptions import HTTPError

    causes = OSError, HTTPError
    return translated(EngineError, *causes, before=f"{problem}: ", words=engine_message)


def _refusal(to: ImageUri, reason: str, *, ecr: bool) -> str:
    """Return the message about a registry that rejects an image."""
    text = f"Cannot push to {to.name!r}: {reason.strip().rstrip('.')}."
    if not any(text in reason.lower() for text in _DENIED):
        return text
    if ecr:
        return f"{text} The caller needs {PUSH_PERMISSIONS}."
    return f"{text} Log in with 'docker login {to.host}'."
