"""What doctor looks at in S3, before the trial there: credentials, bucket, listing, reading."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from rule_runner.diagnosis import Check, good, wrong
from rule_runner.show import printable
from smdebug.exceptions import SMDebugValueError
from smdebug.storage import StorageUnavailableError, aws
from smdebug.storage.s3_bucket import DENIED, Bucket
from smdebug.storage.s3_opening import S3Settings

LIST: Final = "list_objects_v2"
GET: Final = "get_object"
LOOKED_AT: Final = 100  # objects, for one that is not empty


def examine_address(uri: str) -> Iterator[Check]:
    """Yield whether the objects at an address can be listed and read; each thing asked for once."""
    try:
        bucket = S3Settings.from_environment().bucket(uri)
    except SMDebugValueError as err:
        yield wrong(printable(err))
        return
    try:
        page = bucket.call(LIST, Prefix=bucket.prefix, MaxKeys=LOOKED_AT)
    except StorageUnavailableError as err:  # nobody was asked yet
        yield wrong(f"Bucket {bucket.name!r} cannot be asked: {printable(err.reason)}.")
        return
    except aws.errors() as err:
        yield from _not_listed(bucket, aws.fault(err))
        return
    yield good(f"Credentials were found, and bucket {bucket.name!r} can be listed.")
    found = [one for one in page.get("Contents", ()) if not one["Key"].endswith("/")]
    if not found:
        yield wrong(
            f"Nothing is at {printable(repr(bucket.uri))}. Give the address that the training job "
            "saved its tensors to; capitals count."
        )
        return
    yield _read(bucket, found)


def _not_listed(bucket: Bucket, found: aws.AwsFault) -> Iterator[Check]:
    """Yield how far it went."""
    reason = _reason(bucket, LIST, found)
    if found.code in DENIED:
        yield good(f"Credentials were found, and bucket {bucket.name!r} answers.")
        yield wrong(f"Its objects cannot be listed: {reason}.")
    else:
        yield wrong(f"Bucket {bucket.name!r} cannot be asked: {reason}.")


def _read(bucket: Bucket, found: list[dict[str, Any]]) -> Check:
    """Return whether an object can be read: the first one that holds anything."""
    first = next((one for one in found if one.get("Size")), found[0])
    key = first["Key"].removeprefix(bucket.prefix)
    wanted = {"Range": "bytes=0-0"} if first.get("Size") else {}
    try:
        with closing(bucket.call(GET, key, **wanted)["Body"]) as body:
            body.read()
    except aws.errors() as err:
        reason = _reason(bucket, GET, aws.fault(err))
        return wrong(f"Object {printable(repr(key))} cannot be read: {reason}.")
    return good(f"Objects of bucket {bucket.name!r} can be read.")


def _reason(bucket: Bucket, verb: str, found: aws.AwsFault) -> str:
    return printable(getattr(bucket.error(verb, "", found), "reason", found.reason))
