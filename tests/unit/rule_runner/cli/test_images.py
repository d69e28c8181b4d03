"""The commands about images: what they print, where, and how they end."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from image_places import IRELAND, Places, toml

from rule_runner.cli import main


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["images", *words])


def test_the_uri_stands_alone_on_stdout() -> None:
    done = run("uri", "--region", "eu-west-1")
    expected = "929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, expected, "")
    custom = run("uri", "--region=eu-west-1", "--kind=custom").stdout
    assert custom.endswith("/sagemaker-debugger-rule-evaluator:latest\n")


def test_an_unknown_region_is_the_users_fault() -> None:
    done = run("uri", "--region", "eu-wset-1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "Error: No builtin rule image is known in region 'eu-wset-1'. "
        "Did you mean 'eu-west-1'? Regions that have one: af-south-1, "
    )


def test_yours_is_registered_shown_listed_and_forgotten(places: Places) -> None:
    done = run("register", "--region=eu-west-1", f"--uri={IRELAND}:1")
    said = f"Registered for eu-west-1 in {places.user_file}.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", said)
    assert run("uri", "--region=eu-west-1").stdout == f"{IRELAND}:1\n"
    (line,) = (one for one in run("list").stdout.splitlines() if " any " in one)
    assert line.split() == ["eu-west-1", "any", f"{IRELAND}:1", str(places.user_file)]
    done = run("unregister", "--region=eu-west-1")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"Removed the image of eu-west-1 from {places.user_file}.\n"
    assert " any " not in run("list").stdout


def test_the_list_has_aligned_columns() -> None:
    head, first, *rest = run("list").stdout.splitlines()
    assert head.split() == ["REGION", "KIND", "IMAGE", "FROM"]
    expected = "314341159256.dkr.ecr.af-south-1.amazonaws.com/sagemaker-debugger-rules:latest"
    assert first.split() == ["af-south-1", "builtin", expected, "AWS"]
    assert {line.index("AWS") for line in (first, *rest)} == {head.index("FROM")}


def test_trust_says_what_is_trusted_and_lets_it_be_used(places: Places) -> None:
    places.project_file.write_text(toml(eu_west_1=f"{IRELAND}:1"))
    before = run("uri", "--region=eu-west-1")
    assert before.stdout.startswith("929884845733.")
    assert "it is not trusted, or has changed since" in before.stderr
    done = run("trust")
    expected = f"Trusted with its current content: {places.project_file}\neu-west-1  {IRELAND}:1\n"
    assert (done.exit_code, done.stdout) == (0, expected)
    assert run("uri", "--region=eu-west-1").stdout == f"{IRELAND}:1\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["uri"], 2, "Missing option '--region'"),
        (["push"], 2, "Error: Give either --region, once or more, or --to"),
        (["register", "--region=eu-west-1", "--uri=x"], 1, "Error: Image URI must name"),
        (["trust", "none.toml"], 1, "Error: No image file to trust, got 'none.toml'."),
        (["unregister", "--region=eu-west-1"], 1, "has no image for region 'eu-west-1'."),
    ],
)
def test_wrong_commands_end_in_a_sentence(words: list[str], code: int, message: str) -> None:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_file_that_cannot_be_written_has_a_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/proc")
    done = run("register", "--region=eu-west-1", f"--uri={IRELAND}:1")
    expected = "Cannot write '/proc/rule-runner/images.toml': No such file or directory.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (73, "", expected)
