"""Files at s3:// addresses, fetched from a server of moto that checks who asks and the signatures."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, LoadError, OptionError, StoreMissingError
from condgraph.loaders import fetch
from tests.support.postgres import free_port
from tests.support.servers import watched

pytestmark = pytest.mark.service
PEAKS = b"name,height\nEverest,8849 m\nK2,8611 m\n"
#: What names of objects may have in them.
ODD = "weird name ü+%.csv"


@dataclass(frozen=True)
class Bucket:
    """A server with buckets for a user with this key and secret."""

    endpoint: str
    key: str
    secret: str


@contextmanager
def served(log: Path) -> Iterator[tuple[str, Callable[[str], Any]]]:
    """The address of a server with the buckets "open" (to everybody) and "closed", and what gives its
    clients.
    """
    pytest.importorskip("moto.server")
    import boto3

    port = free_port()
    with log.open("wb") as out:
        command = watched([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)])
        process = subprocess.Popen(command, stdout=out, stderr=out)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        _wait(endpoint, process)

        def client(service: str) -> Any:
            login = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
            return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", **login)

        s3 = client("s3")
        for name in ("open", "closed"):
            s3.create_bucket(Bucket=name)
            for path in ("a/peaks.csv", ODD):
                s3.put_object(Bucket=name, Key=path, Body=PEAKS, ACL="public-read" if name == "open" else "private")
        yield endpoint, client
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that asks nobody who they are."""
    with served(tmp_path_factory.mktemp("s3") / "moto.log") as (endpoint, _):
        yield endpoint


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A server that checks who asks, and signatures; it does not answer who asks without one."""
    with served(tmp_path_factory.mktemp("s3") / "moto.log") as (endpoint, client):
        iam = client("iam")
        iam.create_user(UserName="ann")
        every = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=json.dumps(every))
        made = iam.create_access_key(UserName="ann")["AccessKey"]
        plain = {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset-auth", b"0", plain)).close()
        yield Bucket(endpoint, made["AccessKeyId"], made["SecretAccessKey"])


def _wait(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{endpoint}/moto-api/data.json", timeout=5).close()
            return
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.2)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Nobody is known here."""
    import os

    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    # Nor is the machine one of AWS, which would be asked for its role.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def load(*addresses: str) -> Any:
    graph = condgraph.open("memory:")
    report = graph.load(list(addresses) if len(addresses) > 1 else addresses[0])
    assert report.statements == 4 * len(addresses)
    return graph


def test_a_bucket_for_everybody(everybody: str, nobody: pytest.MonkeyPatch) -> None:
    graph = load(f"s3://open/a/peaks.csv?endpoint={everybody}")
    assert graph.kopl("FindAll() FilterNum(height, 8700 m, >) QueryAttr(name)").texts == ["Everest"]
    nobody.setenv("AWS_ENDPOINT_URL", everybody)
    load("s3://open/a/peaks.csv")
    with pytest.raises(LoadError, match="access is denied"):
        load("s3://closed/a/peaks.csv")
    load("s3a://open/weird%20name%20ü+%25.csv")


@pytest.mark.parametrize("how", ["address", "environment", "profile"])
def test_who_asks_is_said(bucket: Bucket, nobody: pytest.MonkeyPatch, tmp_path: Path, how: str) -> None:
    nobody.setenv("AWS_ENDPOINT_URL_S3", bucket.endpoint)
    login = ""
    if how == "address":
        login = f"{bucket.key}:{bucket.secret.replace('/', '%2F')}@"
    elif how == "environment":
        nobody.setenv("AWS_ACCESS_KEY_ID", bucket.key)
        nobody.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret)
    else:
        (tmp_path / ".aws").mkdir()
        said = f"[default]\naws_access_key_id = {bucket.key}\naws_secret_access_key = {bucket.secret}\n"
        (tmp_path / ".aws" / "credentials").write_text(said)
    graph = load(f"s3://{login}closed/a/peaks.csv", f"s3://{login}open/a/peaks.csv")
    shown = repr(graph.status()) + repr(graph.status().sources) + "".join(map(str, graph.kopl("FindAll() Count()").evidence))
    assert bucket.key not in shown
    assert bucket.secret not in shown
    assert {source.location for source in graph.status().sources} == {"s3://closed/a/peaks.csv", "s3://open/a/peaks.csv"}


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3://closed/a/peaks.csv", "access is denied"),
        ("s3://KEY:wr0ng@closed/a/peaks.csv", "access is denied|signature"),
        ("s3://s3cretkey:wr0ng@closed/a/peaks.csv", "access is denied|does not know"),
        ("s3://KEY:SECRET@open/none.csv", "no such file"),
        ("s3://KEY:SECRET@nowhere/none.csv", "no such file|no such bucket"),
        ("s3://open/a/", "names no file"),
        ("s3://open", "names no file"),
        ("s3://open/a/peaks.csv?s3cretkey=1", "no option"),
        ("s3://open/a/peaks.csv?anonymous=perhaps", "true or false"),
        ("s3://open/a/peaks.csv?endpoint=http://127.0.0.1:1", "cannot be reached"),
        ("s3://open/a/peaks.csv?endpoint=::/", "not an address"),
    ],
)
def test_what_goes_wrong_is_said_without_keys(bucket: Bucket, nobody: pytest.MonkeyPatch, address: str, says: str) -> None:
    nobody.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
    asked = address.replace("KEY", bucket.key).replace("SECRET", bucket.secret.replace("/", "%2F"))
    graph = condgraph.open("memory:")
    with pytest.raises((LoadError, OptionError), match=says) as caught:
        graph.load(asked)
    assert "wr0ng" not in str(caught.value)
    assert bucket.secret not in str(caught.value)
    assert bucket.key not in str(caught.value)
    with pytest.raises(StoreMissingError):
        graph.status()


def test_size_and_time_are_bounded(everybody: str, nobody: pytest.MonkeyPatch) -> None:
    nobody.setenv("AWS_ENDPOINT_URL", everybody)
    for what, most, says in (("MAX_BYTES", 10, "more than 0 MiB"), ("MAX_SECONDS", -1.0, "seconds to fetch")):
        with nobody.context() as within:
            within.setattr(fetch, what, most)
            with pytest.raises(LoadError, match=says):
                load("s3://open/a/peaks.csv")
    with pytest.raises(CondgraphError, match=r"deadline|time"):
        condgraph.open("memory:").load("s3://open/a/peaks.csv", timeout=1e-9)
