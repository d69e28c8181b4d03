"""images: which rule image is used in which region, and bringing yours there."""

from pathlib import Path

import click

from rule_runner.cli import completion
from rule_runner.cli.options import IMAGE, choice, flag, text, texts
from rule_runner.cli.program.help_pages import HelpedGroup
from rule_runner.cli.reporting import reporting, verbose_reporting
from rule_runner.escape import printable

_region = text(
    "--region",
    "R",
    "AWS region, such as eu-west-1.",
    required=True,
    shell_complete=completion.regions,
)
_where = click.option(
    "--project/--user",
    default=False,
    help="Register in the project's images.toml, or in the user's own file (default).",
)


@click.group(cls=HelpedGroup)
def images() -> None:
    """Show, register and push the rule image of each region."""


@images.command("uri", epilog="rule-runner images uri --region eu-west-1")
@_region
@choice("--kind", ("builtin", "custom"), "Kind of AWS's image; yours replaces both.")
@reporting
def uri(region: str, kind: str) -> None:
    """Print the URI of your registered image, or else AWS's."""
    from rule_runner.images import image_uri

    click.echo(image_uri(region, kind))


@images.command("list", epilog="rule-runner images list")
@reporting
def list_() -> None:
    """List the image of each region, and the file that names it."""
    from rule_runner.images.lookup import found_images
    from rule_runner.report.tables import TextTable, aligned

    rows = [tuple(map(printable, image)) for image in found_images()]
    click.echo("\n".join(aligned(TextTable(("REGION", "KIND", "IMAGE", "FROM"), rows))))


@images.command(
    "register",
    epilog="rule-runner images register --region eu-west-1 --uri registry.example/rule-runner:1",
)
@_region
@text("--uri", "U", "HOST/REPOSITORY:TAG or ...@sha256:...", required=True)
@_where
@reporting
def register(region: str, uri: str, project: bool) -> None:
    """Use your image in a region instead of AWS's."""
    from rule_runner.images import registrations

    file = registrations.register(region, uri, project=project)
    click.echo(f"Registered for {region} in {file}.", err=True)


@images.command("unregister", epilog="rule-runner images unregister --region eu-west-1")
@_region
@_where
@reporting
def unregister(region: str, project: bool) -> None:
    """Stop using your image in a region."""
    from rule_runner.images import registrations

    file = registrations.unregister(region, project=project)
    click.echo(f"Removed the image of {region} from {file}.", err=True)


@images.command("trust", epilog="rule-runner images trust images.toml")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@reporting
def trust(path: Path | None) -> None:
    """Trust the current content of a project's images.toml.

    The default is the nearest images.toml.
    """
    from rule_runner.images.registrations import trust_project

    file, uris = trust_project(path)
    click.echo(printable(f"Trusted with its current content: {file}"))
    for region, image in sorted(uris.items()):
        click.echo(f"{region}  {image}")


@images.command(
    "push",
    epilog="rule-runner images push --region eu-west-1,us-east-1 --create\n"
    "rule-runner images push --to registry.example/rule-runner",
)
@click.option("--image", default=IMAGE, show_default=True, help="Name of the image in the engine.")
@texts("--region", "R[,R]", "Push to your ECR in these regions.", "regions")
@text("--to", "HOST/REPO", "Push to another registry, and register nothing.")
@click.option("--repository", default="rule-runner", show_default=True, help="Repository in ECR.")
@text("--tag", "TAG", "Tag in the registry; by default that of --image.")
@flag("--create", "Create the repository in ECR if it does not exist.")
@_where
@verbose_reporting
def push(
    image: str,
    regions: tuple[str, ...],
    to: str | None,
    repository: str,
    tag: str | None,
    create: bool,
    project: bool,
) -> None:
    """Push your image to ECR and register it there.

    Several regions are possible. An image is registered by its digest, and its URI is printed.
    """
    from rule_runner.containers import push as pushing

    job = pushing.Push(image, repository, tag, create, project)
    for pushed in pushing.push_all(job, regions, to):
        click.echo(pushed)
