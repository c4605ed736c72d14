"""Files at s3:// addresses, read by Arrow's own client: the object of a bucket as a stream.

Who asks is said by a login in the address, else by what AWS programs look for (`AWS_ACCESS_KEY_ID`,
profiles, roles); where there is neither, nobody is, which public buckets answer. No message names a
key, and nothing of it is kept.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote

from condgraph.engine.errors import LoadError, OptionError, nearest, shortened

#: What may stand behind `?` in an address.
OPTIONS: Final = ("anonymous", "endpoint", "region")
#: Where AWS programs find who asks.
_LOGINS: Final = (
    "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SHARED_CREDENTIALS_FILE",
)  # fmt: skip
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_TRIES: Final = 3
_HINT: Final = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, say who asks; ?anonymous=true asks as nobody, ?region= and "
    "?endpoint= say where"
)
_URL: Final = re.compile(r"(?:(https?)://)?((?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?)/?", re.IGNORECASE).fullmatch


def open_object(split: SplitResult, shown: str, patience: float, silence: float) -> tuple[Any, int]:
    """The object of an address as a stream, and its bytes; `patience` and `silence` are seconds to
    connect and to wait for bytes. Raises `LoadError`.
    """
    import pyarrow
    from pyarrow import fs

    given = dict(parse_qsl(split.query, keep_blank_values=True))
    for name in given:
        if name not in OPTIONS:
            raise OptionError(
                f"an s3:// address has no option {shortened(name, 40)!r}", candidates=nearest(name, OPTIONS),
                hint=f"it may have {', '.join(OPTIONS)}",
            )  # fmt: skip
    bucket, path = (split.hostname or ""), unquote(split.path.strip("/"))
    if not path or split.path.endswith("/"):
        raise LoadError(
            "the address names no file in the bucket", file=shown, hint="s3://bucket/path/to/file.csv, or a list of them"
        )
    who, endpoint = _who(split, given), _endpoint(given)
    try:
        found = fs.S3FileSystem(**who, **_where(endpoint, given, bucket, fs), **_how(fs, patience, silence))
        stream = found.open_input_file(f"{bucket}/{path}")
        return stream, stream.size()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise LoadError(f"the file cannot be fetched: {told(error)}", file=shown, hint=_HINT) from None


def _who(split: SplitResult, given: dict[str, str]) -> dict[str, Any]:
    if split.username is not None:
        return {"access_key": unquote(split.username), "secret_key": unquote(split.password or "")}
    asked = given.get("anonymous", "").casefold()
    if asked not in ("", "true", "false"):
        raise OptionError("anonymous is true or false")
    known = any(os.environ.get(name) for name in _LOGINS) or (Path.home() / ".aws" / "credentials").exists()
    return {"anonymous": asked == "true" or (asked == "" and not known)}


def _endpoint(given: dict[str, str]) -> dict[str, Any]:
    url = given.get("endpoint") or next((url for name in _ENDPOINTS if (url := os.environ.get(name))), "")
    if not url:
        return {}
    parts = _URL(url)
    if parts is None:
        raise OptionError("the endpoint of an s3:// address is no address", hint="endpoint=https://host:port")
    return {"endpoint_override": parts[2], "scheme": (parts[1] or "https").lower()}


def _where(endpoint: dict[str, Any], given: dict[str, str], bucket: str, fs: Any) -> dict[str, Any]:
    region = given.get("region") or next((one for name in _REGIONS if (one := os.environ.get(name))), "")
    return {**endpoint, "region": region or ("us-east-1" if endpoint else fs.resolve_s3_region(bucket))}


def _how(fs: Any, patience: float, silence: float) -> dict[str, Any]:
    tries = fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES)
    return {"connect_timeout": patience, "request_timeout": silence, "retry_strategy": tries}


def told(error: Exception) -> str:
    """What the client says, in short."""
    text = str(error)
    for said, meant in (
        ("NO_SUCH_KEY", "there is no such file"),
        ("NO_SUCH_BUCKET", "there is no such bucket"),
        ("NoSuchKey", "there is no such file"),
        ("NoSuchBucket", "there is no such bucket"),
        ("Path does not exist", "there is no such file"),
        ("RESOURCE_NOT_FOUND", "there is no such file or bucket"),
        ("ACCESS_DENIED", "access is denied"),
        ("INVALID_ACCESS_KEY_ID", "the server does not know who asks"),
        ("SIGNATURE_DOES_NOT_MATCH", "the server does not take the signature"),
        ("NETWORK_CONNECTION", "the server cannot be reached, or does not answer in time"),
    ):
        if said in text:
            return meant
    found = re.search(r"AWS Error ([A-Z_]+)", text)
    return f"the server answers {found[1]}" if found else shortened(type(error).__name__, 60)
