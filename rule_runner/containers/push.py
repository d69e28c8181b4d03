"""images push: pushes an image to ECR in several regions, or to another registry."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rule_runner.containers.ecr import Ecr, Login
from rule_runner.containers.push_engine import PushingEngine
from rule_runner.errors import UsageError
from rule_runner.images.registrations import place, register
from rule_runner.images.uri import ImageUri, parse_place
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)
DEFAULT_IMAGE: Final = "rule-runner:latest"
DEFAULT_REPOSITORY: Final = "rule-runner"


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

    image: str = DEFAULT_IMAGE
    repository: str = DEFAULT_REPOSITORY
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
        msg = "Give either --region, once or more, or --to HOST/REPOSITORY."
        raise UsageError(msg)
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
        msg = f"--to must be HOST/REPOSITORY or HOST/REPOSITORY:TAG, got {name!r}."
        raise UsageError(msg)
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
