"""What the driver and the server raise: which of it passes and is tried again, and what else it is as
one of condgraph's own errors.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from condgraph.cypher.interruptible import Line
from condgraph.engine.errors import DeadlineError, StoreError, StoreMissingError

T = TypeVar("T")
#: What a server says where two make one index at the same time, whatever `IF NOT EXISTS` says. Once the
#: other has it, it is there.
_RACED: Final = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"


def retried(work: Callable[[], T], patience: float, line: Line) -> T:
    """The result of `work`, tried again for `patience` seconds after a failure that passes: at once
    where a connection had died, later where the server says that it may work then. Not where the
    server ran out of memory: it would again. Raises what the driver raises.
    """
    from neo4j import exceptions

    until, lost, pause = time.monotonic() + patience, False, 0.05
    while True:
        try:
            return work()
        except (exceptions.ServiceUnavailable, exceptions.SessionExpired):
            if lost or line.over:
                raise
            lost = True
        except exceptions.Neo4jError as error:
            passes = error.code == _RACED or (error.is_retryable() and "OutOfMemory" not in (error.code or ""))
            again = passes and not line.over
            if not again or time.monotonic() + pause > until:
                raise
            time.sleep(pause)
            pause *= 2


@contextmanager
def as_own_errors(place: str, database: str | None) -> Iterator[None]:
    """Failures of the driver within as errors of condgraph, with the place (an address) and the
    database that they are of.
    """
    from neo4j import exceptions

    try:
        yield
    except exceptions.AuthError as error:
        raise StoreError(f"{place} refuses the user or the password", hint="NEO4J_USERNAME and NEO4J_PASSWORD say them") from error
    except (exceptions.ServiceUnavailable, exceptions.SessionExpired) as error:
        raise _not_there(place, error) from error
    except exceptions.Neo4jError as error:
        code = error.code or ""
        if "TransactionTimedOut" in code or "Terminated" in code:
            raise DeadlineError("the query did not end before its deadline", hint="a longer timeout= may help") from error
        if "DatabaseNotFound" in code:
            raise StoreMissingError(f"{place} has no database {database!r}") from error
        if ".Security." in code:
            raise StoreError(f"{place} refuses: {error.message}", hint="NEO4J_USERNAME and NEO4J_PASSWORD say who asks") from error
        raise StoreError(f"the server says: {error.message}") from error
    except exceptions.DriverError as error:
        raise StoreError(f"{place}: {error}") from error


def _not_there(place: str, error: Exception) -> StoreError:
    """What to say of a server that could not be reached; of one whose TLS is the reason that."""
    scheme, mark, rest = place.partition("://")
    tls = next((one for one in _causes(error) if isinstance(one, ssl.SSLError)), None)
    if tls is None or "+s" not in scheme:
        return StoreError(f"no server answers at {place}", hint="is it running, and is the address right?")
    if isinstance(tls, ssl.SSLCertVerificationError):
        hint = f"{scheme.partition('+')[0]}+ssc{mark}{rest} takes one that nobody vouches for"
        return StoreError(f"the certificate of {place} is not accepted: {tls.verify_message}", hint=hint)
    plain = f"{scheme.partition('+')[0]}{mark}{rest}"
    return StoreError(f"the server at {place} speaks no TLS, which +s in its address asks for", hint=f"{plain} asks without")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """A failure, and those that led to it."""
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None:
            yield one
            left += [one.__cause__ or one.__context__, *getattr(one, "exceptions", ())]
