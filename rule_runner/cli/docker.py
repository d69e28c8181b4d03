"""docker: the same evaluations in containers of this machine's engine, and the image for them."""

from collections.abc import Iterator
from typing import Any, Final

import click

from rule_runner.cli.evaluation import ISOLATIONS, evaluate, evaluation_options
from rule_runner.cli.reporting import reporting
from rule_runner.logs import configure

CONTAINER: Final = "container"
IMAGE: Final = "rule-runner:latest"
_WRITTEN: Final = "rule_runner.docker.written"

Option = tuple[str, str | None]


class _AsWritten(click.Command):
    """Remembers the options of evaluate as they were written, to pass them on."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given, _, _ = self.make_parser(ctx).parse_args(args=[*args])
        ctx.meta[_WRITTEN] = [
            option
            for param in evaluate.params
            if isinstance(param, click.Option) and param.name in given
            for option in _written(param, given[param.name])
        ]
        return super().parse_args(ctx, args)


def _written(param: click.Option, value: Any) -> Iterator[Option]:
    """Yield an option by its long name, as often as it was given."""
    name = max(param.opts, key=len)
    if param.count:
        yield from [(name, None)] * value
    elif param.is_flag:
        yield (name if value or not param.secondary_opts else param.secondary_opts[0]), None
    else:
        yield from ((name, one) for one in (value if param.multiple else [value]))


@click.group("docker")
def docker_group() -> None:
    """Evaluate in containers, and build the image for them."""


@docker_group.command("run", cls=_AsWritten)
@click.option(
    "--image", default=IMAGE, envvar="RULE_RUNNER_IMAGE", show_default=True, help="Image to run."
)
@click.option("--pull", is_flag=True, help="Get the image from its registry first.")
@click.option(
    "--isolate",
    type=click.Choice((*ISOLATIONS, CONTAINER)),
    is_flag=False,
    flag_value=CONTAINER,
    default=ISOLATIONS[0],
    metavar="[none|process|container]",
    help="What each rule has of its own; without a value a container.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    metavar="N",
    help="With --isolate: how many containers at a time.",
)
@click.option(
    "--memory", default="4g", show_default=True, metavar="SIZE", help="Of each container."
)
@click.option(
    "--cpus",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Of each container; by default 2, or all if there are fewer.",
)
@click.option(
    "--pids-limit",
    type=click.IntRange(8),
    default=256,
    show_default=True,
    metavar="N",
    help="Processes and threads of each container.",
)
@click.option(
    "--network",
    metavar="NAME",
    help="The engine's network to use; by default none if nothing is to be reached, else 'bridge'.",
)
@click.option(
    "--aws-config", is_flag=True, help="Mount ~/.aws read-only for AWS_PROFILE, and pass its name."
)
@evaluation_options
@click.pass_context
@reporting
def run(context: click.Context, **options: Any) -> int:
    """Evaluate in a hardened container what evaluate would evaluate here; same options.

    Trials and the folders of rule files are mounted read-only at their own paths, because rules
    import what is beside them; the output folder is the only one that can be written to.
    """
    from rule_runner.containers.run import (  # noqa: PLC0415 - only when it is needed
        Settings,
        docker_run,
    )

    configure(-1 if options["quiet"] else options["verbose"])
    names = Settings.__dataclass_fields__
    isolate = options["isolate"]
    own = {"isolate": isolate == CONTAINER}
    settings = Settings(**{name: options[name] for name in names} | own)
    written = [option for option in context.meta[_WRITTEN] if option[0] != "--isolate"]
    if isolate in ISOLATIONS[1:]:
        written.append(("--isolate", isolate))
    return docker_run(written, settings)


@docker_group.command("build")
@click.option("--tag", default=IMAGE, show_default=True, help="Name of the image.")
@click.option("--base-image", metavar="IMAGE", help="Base with Python 3.11 or later.")
@click.option("--network", metavar="NAME", help="Network of the build, such as host.")
@click.option("--build-arg", multiple=True, metavar="KEY=VALUE", help="More for the Dockerfile.")
@reporting
def build(**options: Any) -> int:
    """Build the image from the checkout that this command runs from."""
    from rule_runner.containers.build import build_image  # noqa: PLC0415 - only when it is needed

    return build_image(**options)
