"""The look-up of a region's image: AWS's table, and yours before it."""

import re
from pathlib import Path

import pytest
from image_places import DIGEST, IRELAND, Places, toml
from structlog.testing import capture_logs

from rule_runner.images import (
    ImageError,
    UnknownRegionError,
    get_rule_container_image_uri,
    image_uri,
)
from rule_runner.images.aws_images import AWS_IMAGES, ImageKind
from rule_runner.images.lookup import FoundImage, found_images
from rule_runner.images.registrations import register, trust_project, unregister

AWS_IRELAND = "929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


# -- AWS's own ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "929884845733.dkr.ecr.eu-west-1.amazonaws.com"),
        ("ap-northeast-3", "479947661362.dkr.ecr.ap-northeast-3.amazonaws.com"),
        ("us-gov-west-1", "515509971035.dkr.ecr.us-gov-west-1.amazonaws.com"),
        ("cn-northwest-1", "658757709296.dkr.ecr.cn-northwest-1.amazonaws.com.cn"),
    ],
)
def test_the_built_in_image_is_in_an_account_of_each_region(region: str, host: str) -> None:
    assert get_rule_container_image_uri(region) == f"{host}/sagemaker-debugger-rules:latest"


def test_the_profilers_own_job_has_an_image_of_its_own() -> None:
    name = "DetailedProfilerProcessingJobConfig-2026-01-01"
    expected = "216881608335.dkr.ecr.il-central-1.amazonaws.com/detailed-profiler-processing:latest"
    assert get_rule_container_image_uri("il-central-1", name) == expected
    assert get_rule_container_image_uri("eu-west-1", "ProfilerReport-1") == AWS_IRELAND


@pytest.mark.parametrize("region", ["us-gov-east-1", "il-central-1", "us-iso-east-1", "moon", ""])
def test_a_region_without_an_image_is_a_value_error(region: str) -> None:
    with pytest.raises(ValueError, match=rf"No builtin rule image is known in region '{region}'\."):
        get_rule_container_image_uri(region)


def test_a_misspelt_region_is_reported_with_the_nearest_and_all_others() -> None:
    regions = ", ".join(sorted(AWS_IMAGES[ImageKind.BUILTIN].accounts))
    expected = (
        "No builtin rule image is known in region 'us-wset-2'. Did you mean 'us-west-2'? "
        f"Regions that have one: {regions}."
    )
    with pytest.raises(UnknownRegionError, match=f"^{re.escape(expected)}$"):
        get_rule_container_image_uri("us-wset-2")


def test_the_tables_have_accounts_of_twelve_digits_and_all_regions() -> None:
    counts = {kind: len(images.accounts) for kind, images in AWS_IMAGES.items()}
    assert counts == {
        ImageKind.BUILTIN: 24,
        ImageKind.CUSTOM: 23,
        ImageKind.DETAILED_PROFILER: 6,
    }
    accounts = [one for images in AWS_IMAGES.values() for one in images.accounts.values()]
    assert [one for one in accounts if not re.fullmatch("[0-9]{12}", one)] == []
    leading = AWS_IMAGES[ImageKind.CUSTOM].accounts
    assert (leading["eu-north-1"], leading["eu-west-2"]) == ("091235270104", "074613877050")


def test_the_custom_evaluator_is_in_other_accounts_and_not_in_osaka() -> None:
    expected = (
        "606966180310.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rule-evaluator:latest"
    )
    assert image_uri("eu-west-1", "custom") == expected
    with pytest.raises(
        UnknownRegionError,
        match=r"^No custom rule image is known in region 'ap-northeast-3'\. Regions .* "
        r"Register yours with 'rule-runner images register'\.$",
    ):
        image_uri("ap-northeast-3", "custom")


# -- yours -------------------------------------------------------------------------------------


def test_your_image_wins_over_that_of_aws_for_every_kind() -> None:
    assert image_uri("eu-west-1") == AWS_IRELAND
    register("eu-west-1", f"{IRELAND}:1")
    assert [image_uri("eu-west-1", kind) for kind in ("builtin", "custom")] == [f"{IRELAND}:1"] * 2
    assert get_rule_container_image_uri("eu-west-1") == AWS_IRELAND


def test_the_projects_image_wins_over_the_users() -> None:
    register("eu-west-1", f"{IRELAND}:user")
    register("eu-west-1", f"{IRELAND}:project", project=True)
    assert image_uri("eu-west-1") == f"{IRELAND}:project"
    unregister("eu-west-1", project=True)
    assert image_uri("eu-west-1") == f"{IRELAND}:user"
    unregister("eu-west-1")
    assert image_uri("eu-west-1") == AWS_IRELAND


def test_a_region_that_aws_has_no_image_in_takes_yours() -> None:
    uri = IRELAND.replace("eu-west-1", "il-central-1") + f"@{DIGEST}"
    register("il-central-1", uri)
    assert image_uri("il-central-1") == uri
    with pytest.raises(UnknownRegionError, match=r"eu-west-3, il-central-1, me-south-1, "):
        image_uri("nowhere")


def test_a_projects_file_that_is_not_trusted_is_left_out_and_said(places: Places) -> None:
    places.project_file.write_text(toml(eu_west_1="evil.example/rules:1"))
    with capture_logs() as logs:
        assert image_uri("eu-west-1") == AWS_IRELAND
    expected = (
        f"Image file '{places.project_file}' is ignored because it is not trusted, or has "
        "changed since. Read it, then run 'rule-runner images trust'."
    )
    assert [one["reason"] for one in logs] == [expected]
    register("eu-west-1", f"{IRELAND}:user")
    assert image_uri("eu-west-1") == f"{IRELAND}:user"


def test_trust_ends_when_the_content_changes_or_moves(places: Places) -> None:
    places.project_file.write_text(toml(eu_west_1=f"{IRELAND}:1"))
    assert trust_project() == (places.project_file, {"eu-west-1": f"{IRELAND}:1"})
    assert image_uri("eu-west-1") == f"{IRELAND}:1"
    moved = places.folder / "images.toml"
    places.project_file.rename(moved)
    assert image_uri("eu-west-1") == AWS_IRELAND
    moved.rename(places.project_file)
    assert image_uri("eu-west-1") == f"{IRELAND}:1"
    places.project_file.write_text(toml(eu_west_1=f"{IRELAND}:2"))
    assert image_uri("eu-west-1") == AWS_IRELAND
    trust_project(Path("../images.toml"))
    assert image_uri("eu-west-1") == f"{IRELAND}:2"


def test_a_projects_file_that_is_not_trusted_is_not_even_read_as_toml(places: Places) -> None:
    places.project_file.write_bytes(b"\xff[")
    assert image_uri("eu-west-1") == AWS_IRELAND
    with pytest.raises(ImageError, match=r"images\.toml' is not valid TOML: "):
        trust_project()
    assert not places.trust_file.exists()


def test_every_region_is_listed_with_where_its_image_comes_from(places: Places) -> None:
    register("eu-west-1", f"{IRELAND}:1")
    found = {(one.region, one.kind): one for one in found_images()}
    # Ireland's two make room for one; the rest are AWS's 24 and 23.
    assert len(found) == 24 + 23 - 1
    assert found["eu-west-1", "any"] == FoundImage(
        "eu-west-1", "any", f"{IRELAND}:1", str(places.user_file)
    )
    assert [kind for region, kind in found if region == "ap-northeast-3"] == ["builtin"]
    assert {one.source for one in found.values()} == {"AWS", str(places.user_file)}
    assert [*found] == sorted(found)
