"""Pushing: brings an image to ECR in several regions, or to another registry, and notes where."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from rule_runner.errors import UsageError
from rule_runner.images.ecr import Ecr, Login
from rule_runner.images.engine import PushingEngine
from rule_runner.images.registrations import place, register
from rule_runner.images.uris import ImageUri, parse_place

_log: Final = structlog.get_logger()
DEFAULT_IMAGE: Final = "rule-runner:latest"
DEFAULT_REPOSITORY: Final = "rule-runner"


@dataclass(frozen=True, slots=True)
class Push:
    """What is asked for.

    Attributes
    ----------
    image
        The engine's name for it.
    tag
        In the registry; by default that of `image`.
    create
        Whether a repository that is not there is made.
    project
        Whether the pushed images are registered for the project, not for the user.
    """

    image: str = DEFAULT_IMAGE
    repository: str = DEFAULT_REPOSITORY
    tag: str | None = None
    create: bool = False
    project: bool = False

    def to(self, host: str, repository: str, tag: str | None = None) -> ImageUri:
        """Return the place in a registry that the image goes to."""
        _, colon, own = self.image.partition("@")[0].rpartition(":")
        own = own if colon and "/" not in own else "latest"
        chosen = f"{host}/{repository}:{tag or self.tag or own}"
        return parse_place(chosen)


def push_all(asked: Push, regions: Sequence[str], to: str | None) -> Iterator[str]:
    """Push as the command line says: to `regions`, commas between or not, or to a registry `to`.

    Raises
    ------
    UsageError
        If it says both or neither.
    """
    names = [name.strip() for one in regions for name in one.split(",") if name.strip()]
    if (to is None) != bool(names):
        msg = "Say where to push to: with --region, once or more, or with --to HOST/REPOSITORY."
        raise UsageError(msg)
    return push_to_regions(asked, names) if to is None else iter([push_to_registry(asked, to)])


def push_to_regions(asked: Push, regions: Sequence[str]) -> Iterator[str]:
    """Push to the caller's own ECR in each region and register what is there then; yield each URI.

    All logins and repositories are there before the first push.

    Raises
    ------
    ImageError
        If the engine, a region, its ECR or the project's file is at fault; regions that were
        yielded before are done.
    """
    place(project=asked.project)
    with PushingEngine() as engine:
        engine.find(asked.image)
        goals = [(region, *_prepare(asked, Ecr(region))) for region in dict.fromkeys(regions)]
        for region, login, to in goals:
            with _shown(to) as progress:
                pushed = engine.push(asked.image, to, login, progress)
            _log.info("image_pushed", image=str(pushed))
            register(region, str(pushed), project=asked.project)
            yield str(pushed)


def _prepare(asked: Push, ecr: Ecr) -> tuple[Login, ImageUri]:
    """Return the login to a region's registry and where the image goes, which is there then."""
    login = ecr.log_in()
    to = asked.to(login.host, asked.repository)
    ecr.require_repository(asked.repository, create=asked.create)
    return login, to


def push_to_registry(asked: Push, name: str) -> str:
    """Push to another registry, with the engine's own login; return the URI there.

    Parameters
    ----------
    name
        ``HOST/REPOSITORY`` or ``HOST/REPOSITORY:TAG``.

    Raises
    ------
    ImageError
        If the name, the engine or the registry is at fault.
    UsageError
        If the name has a digest: what is pushed has its own.
    """
    goal = parse_place(name)
    if goal.digest is not None:
        msg = f"--to must be HOST/REPOSITORY or HOST/REPOSITORY:TAG, got {name!r}."
        raise UsageError(msg)
    to = asked.to(goal.host, goal.repository, goal.tag)
    with PushingEngine() as engine, _shown(to) as progress:
        return str(engine.push(asked.image, to, None, progress))


@contextmanager
def _shown(to: ImageUri) -> Iterator[Callable[[int, int], None]]:
    """Give what shows the progress of a push: a bar on a terminal, elsewhere a line before it."""
    _log.info("image_push_started", image=str(to))
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 - a terminal only
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(to.host, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
