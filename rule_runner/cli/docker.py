"""docker: the same evaluations in containers of this machine's engine, and the image for them."""

from typing import TYPE_CHECKING, Final

import click

from rule_runner.cli.evaluation import DOCKER, ISOLATIONS, with_request
from rule_runner.cli.options import (
    IMAGE,
    POSITIVE,
    choice,
    count,
    flag,
    heading,
    number,
    takes,
    text,
    texts,
)
from rule_runner.cli.program.help_pages import Heading, HelpedGroup
from rule_runner.cli.reporting import reporting
from rule_runner.config.defaults import Isolation

if TYPE_CHECKING:
    from rule_runner.config.request import EvaluationRequest

CONTAINER: Final = "container"


@click.group(cls=HelpedGroup)
def docker() -> None:
    """Evaluate in containers, and build the image for them."""


@docker.command(
    "run", epilog="rule-runner docker run --trial runs/mine --rule VanishingGradient -o out"
)
@heading(Heading.CONTAINERS)
@click.option(
    "--image", default=IMAGE, envvar="RULE_RUNNER_IMAGE", show_default=True, help="Image to run."
)
@flag("--pull", "Pull the image from its registry first.")
@click.option(
    "--isolate",
    "isolation",
    type=click.Choice((*ISOLATIONS, CONTAINER)),
    is_flag=False,
    flag_value=CONTAINER,
    default=ISOLATIONS[0],
    metavar="[none|process|container]",
    help="Isolation of each rule: its own process or container; without a value, a container.",
)
@count("--parallel", "With --isolate: how many containers to run at a time.", 2)
@text("--memory", "SIZE", "Memory of each container.", default="4g", show_default=True)
@number(
    "--cpus",
    "Processors of each container; by default 2, or all if there are fewer.",
    allowed=POSITIVE,
    metavar="N",
)
@count("--pids-limit", "Most processes and threads of each container.", 256, least=8)
@text(
    "--network",
    "NAME",
    "Network of the engine; by default 'bridge', or none if the evaluation needs none.",
)
@flag("--aws-config", "Mount ~/.aws read-only for AWS_PROFILE, and pass its name.")
@takes(DOCKER)
@reporting
@with_request
def run(
    request: "EvaluationRequest",
    image: str,
    pull: bool,
    isolation: str,
    parallel: int,
    memory: str,
    cpus: float | None,
    pids_limit: int,
    network: str | None,
    aws_config: bool,
) -> int:
    """Run an evaluation in a hardened container.

    The options are those of 'evaluate'. Trials and the folders of rule files are mounted read-only
    at their own paths, because rules may import files next to them. Only the output folder is
    writable.
    """
    from msgspec.structs import replace

    from rule_runner.containers.run import Settings, docker_run

    isolate = isolation == CONTAINER
    if not isolate:
        request = replace(request, isolate=Isolation(isolation))
    settings = Settings(
        image, pull, isolate, parallel, memory, cpus, pids_limit, network, aws_config
    )
    return docker_run(request, settings)


@docker.command("build", epilog="rule-runner docker build --tag rule-runner:latest")
@click.option("--tag", default=IMAGE, show_default=True, help="Name of the image.")
@text("--base-image", "IMAGE", "Base with Python 3.11 or later.")
@text("--network", "NAME", "Network of the build, such as host.")
@choice(
    "--variant", ("slim", "full"), "'full' adds pandas, bokeh, matplotlib and every AWS service."
)
@texts("--build-arg", "KEY=VALUE", "Another build argument for the Dockerfile.")
@reporting
def build(
    tag: str, base_image: str | None, network: str | None, variant: str, build_arg: tuple[str, ...]
) -> None:
    """Build the image from the checkout of this command."""
    from rule_runner.containers.build import build_image

    build_image(tag, base_image, network, variant, build_arg)
