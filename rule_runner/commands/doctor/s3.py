"""Checks of an address in S3: credentials, bucket, listing, reading."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.storage import aws
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.s3.bucket import DENIED, Bucket
from rule_core.storage.s3.settings import S3Settings
from rule_runner.commands.doctor.checks import Diagnosis, good, wrong
from rule_runner.escape import printable

LIST: Final = "list_objects_v2"
GET: Final = "get_object"
LISTED: Final = 100  # objects, searched for one with content


def examine_address(uri: str) -> Iterator[Diagnosis]:
    """Check with one request each that objects at an address can be listed and read."""
    try:
        bucket = S3Settings.from_environment().bucket(uri)
    except SMDebugValueError as err:
        yield wrong(printable(err))
        return
    try:
        page = bucket.call(LIST, Prefix=bucket.prefix, MaxKeys=LISTED)
    except StorageUnavailableError as err:  # before any request
        yield wrong(f"Bucket {bucket.name!r} cannot be accessed: {printable(err.reason)}.")
        return
    except aws.errors() as err:
        yield from _not_listed(bucket, aws.fault(err))
        return
    yield good(f"Credentials were found, and bucket {bucket.name!r} can be listed.")
    objects = [entry for entry in page.get("Contents", ()) if not entry["Key"].endswith("/")]
    if not objects:
        yield wrong(
            f"No objects exist at {printable(repr(bucket.uri))}. Give the address to which the "
            "training job saved its tensors; addresses are case-sensitive."
        )
        return
    yield _read(bucket, objects)


def _not_listed(bucket: Bucket, fault: aws.AwsFault) -> Iterator[Diagnosis]:
    """Yield the diagnoses of a bucket that cannot be listed."""
    reason = _reason(bucket, LIST, fault)
    if fault.code in DENIED:
        yield good(f"Credentials were found, and bucket {bucket.name!r} is reachable.")
        yield wrong(f"Its objects cannot be listed: {reason}.")
    else:
        yield wrong(f"Bucket {bucket.name!r} cannot be accessed: {reason}.")


def _read(bucket: Bucket, objects: list[dict[str, Any]]) -> Diagnosis:
    """Check that the first object with content can be read."""
    first = next((entry for entry in objects if entry.get("Size")), objects[0])
    key = first["Key"].removeprefix(bucket.prefix)
    byte_range = {"Range": "bytes=0-0"} if first.get("Size") else {}
    try:
        with closing(bucket.call(GET, key, **byte_range)["Body"]) as body:
            body.read()
    except aws.errors() as err:
        reason = _reason(bucket, GET, aws.fault(err))
        return wrong(f"Object {printable(repr(key))} cannot be read: {reason}.")
    return good(f"Objects of bucket {bucket.name!r} can be read.")


def _reason(bucket: Bucket, verb: str, fault: aws.AwsFault) -> str:
    return printable(getattr(bucket.error(verb, "", fault), "reason", fault.reason))
