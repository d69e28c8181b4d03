"""Image URIs: what is one, and which region an image of ECR fits."""

import re

import pytest
from image_places import ACCOUNT, DIGEST, IRELAND

from rule_runner.images import ImageError, UnknownRegionError
from rule_runner.images.uri import ImageUri, is_ecr, parse_place, parse_uri, require_fit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{IRELAND}:1.0", ImageUri(IRELAND.partition("/")[0], "rule-runner", "1.0")),
        ("localhost/a:latest", ImageUri("localhost", "a", "latest")),
        ("127.0.0.1:5000/a/b-c__d:v_1", ImageUri("127.0.0.1:5000", "a/b-c__d", "v_1")),
        (f"registry.example/a/b@{DIGEST}", ImageUri("registry.example", "a/b", None, DIGEST)),
        (f"registry.example/a/b:1@{DIGEST}", ImageUri("registry.example", "a/b", "1", DIGEST)),
    ],
)
def test_uris_have_parts_and_read_as_they_were_written(text: str, expected: ImageUri) -> None:
    assert (parse_uri(text), str(parse_uri(text))) == (expected, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rule-runner:1",
        "team/rule-runner:1",
        "https://registry.example/a/b:1",
        "registry.example/A/b:1",
        "registry.example/a/../b:1",
        "registry.example/a//b:1",
        "registry.example/a:",
        "registry.example/a:1\n",
        "registry.example/a:1 --x",
        'registry.example/a:1"',
        "user:secret@registry.example/a:1",
        "registry.example/a@sha256:abc",
        "registry.example/ä:1",
        "registry.example/a:" + "1" * 128 + "1",
        "registry.example/" + "a" * 237 + ":1",
    ],
)
def test_no_uri_is_reported_with_what_one_looks_like(text: str) -> None:
    shown = re.escape(repr(text[:300]))
    with pytest.raises(ImageError, match=rf"registry and a repository .* got {shown}\.$"):
        parse_uri(text)


def test_the_longest_uri_is_that_of_the_service() -> None:
    longest = "registry.example/" + "a" * 236 + ":1"
    assert len(longest) == 255
    assert str(parse_uri(longest)) == longest


def test_an_image_has_a_tag_or_a_digest_and_a_place_needs_neither() -> None:
    assert parse_place("registry.example/a/b") == ImageUri("registry.example", "a/b")
    with pytest.raises(
        ImageError,
        match=r"must end in a tag or a digest, got 'registry\.example/a/b'\. Add ':TAG'\.$",
    ):
        parse_uri("registry.example/a/b")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com", "eu-west-1"),
        (f"{ACCOUNT}.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        (f"{ACCOUNT}.dkr.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        (f"{ACCOUNT}.dkr.ecr.il-central-1.amazonaws.com", "il-central-1"),
        ("registry.example", "eu-west-1"),
    ],
)
def test_images_fit_the_region_of_their_registry(host: str, region: str) -> None:
    uri = ImageUri(host, "rule-runner", "1")
    require_fit(uri, region)
    assert is_ecr(uri) == (host != "registry.example")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (f"{ACCOUNT}.dkr.ecr.eu-west-2.amazonaws.com", "eu-west-1"),
        (f"{ACCOUNT}.dkr.ecr.cn-north-1.amazonaws.com", "cn-north-1"),
        (f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com.evil.example", "eu-west-1"),
    ],
)
def test_an_image_in_another_regions_registry_is_refused(host: str, region: str) -> None:
    with pytest.raises(
        ImageError, match=rf"region '{region}' must be in its registry, .* got '{host}'\. Push it"
    ):
        require_fit(ImageUri(host, "rule-runner", "1"), region)


def test_a_region_that_is_none_is_reported_with_the_nearest() -> None:
    uri = ImageUri("registry.example", "a", "1")
    with pytest.raises(
        UnknownRegionError,
        match=r"^Region must be one of AWS's, got 'eu-west1'\. Did you mean 'eu-west-1'\? Known: "
        r"af-south-1, .*, us-west-2\.$",
    ):
        require_fit(uri, "eu-west1")
