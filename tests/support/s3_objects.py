"""Objects in the S3 of this machine, for tests."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import aws_server
import pytest

from rule_core.storage import aws

BUCKET = "bucket"


@lru_cache
def client(endpoint: str) -> Any:
    """Return the client of a server; made once, for that is slow."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_server.ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        return aws.client("s3", connect_timeout=30, read_timeout=30)


def make_bucket(endpoint: str, name: str = BUCKET) -> Any:
    """Make an empty bucket; return the server's client."""
    s3 = client(endpoint)
    s3.create_bucket(Bucket=name)
    return s3


def put(endpoint: str, prefix: str, files: Mapping[str, bytes]) -> None:
    """Put objects below a prefix."""
    for key, content in files.items():
        client(endpoint).put_object(Bucket=BUCKET, Key=prefix + key, Body=content)


def content(endpoint: str, prefix: str = "") -> dict[str, bytes]:
    """Return all objects below a prefix, by key."""
    s3 = client(endpoint)
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        item["Key"].removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=item["Key"])[
            "Body"
        ].read()
        for item in listed
    }


def uploads(endpoint: str) -> list[str]:
    """Return the keys of objects whose parts S3 holds back."""
    uploads = client(endpoint).list_multipart_uploads(Bucket=BUCKET)
    return [upload["Key"] for upload in uploads.get("Uploads", [])]
