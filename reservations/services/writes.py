"""One way to write: a durable transaction, with the database's refusals turned into ours.

A request that carries an idempotency key inserts its ``ApiCall`` first and stores its answer last, all
in the same transaction: either both the change and its answer exist, or neither.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from django.db import IntegrityError, OperationalError, connection, transaction

from reservations.core.errors import Busy, IdempotencyMismatch, SlotTaken
from reservations.models import ApiCall

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOCK_LIMIT_S = 10.0
ANSWERS_KEPT = timedelta(hours=24)
_DEADLOCK = "40P01"
_OVERLAP = "allocation_no_overlap"


@dataclass(frozen=True)
class Once:
    """A request that must take effect once, however often it arrives.

    ``credential`` says who asks (``token:7``, ``user:3``); ``body_hash`` is the SHA-256 of the body;
    ``render`` makes the answer's status and body from the result, inside the transaction.
    """

    credential: str
    key: str
    method: str
    path: str
    body_hash: bytes
    render: Callable[[Any], tuple[int, bytes]]


class Replayed(Exception):
    """The request took effect before; this was its answer."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


def run(
    work: Callable[[], T],
    *,
    now: datetime,
    lock_limit_s: float = LOCK_LIMIT_S,
    once: Once | None = None,
) -> T:
    """Do ``work`` in one durable transaction; again, once, if the database broke a deadlock with it.

    Raises:
        Busy: a lock was not to be had in time.
        SlotTaken: the database refused an overlap. Without blockers: those are read afterwards.
        Replayed: ``once`` took effect before.
        IdempotencyMismatch: the key of ``once`` belongs to another request.
    """
    try:
        return _attempt(work, now=now, lock_limit_s=lock_limit_s, once=once)
    except OperationalError as error:
        if _sqlstate(error) != _DEADLOCK:
            _raise_busy_or(error)
        logger.warning("deadlock broken by the database; trying once more")
    try:
        return _attempt(work, now=now, lock_limit_s=lock_limit_s, once=once)
    except OperationalError as error:
        _raise_busy_or(error)


def forget_answers(*, now: datetime) -> int:
    """Delete the answers whose keys may be used anew; says how many."""
    return ApiCall.objects.filter(created__lt=now - ANSWERS_KEPT).delete()[0]


def _attempt(work: Callable[[], T], *, now: datetime, lock_limit_s: float, once: Once | None) -> T:
    try:
        with _lock_limit(lock_limit_s), transaction.atomic(durable=True):
            if connection.vendor == "postgresql" and lock_limit_s != LOCK_LIMIT_S:
                _execute(f"SET LOCAL lock_timeout = {int(lock_limit_s * 1000)}")
            if once is None:
                return work()
            call = _claim(once, now)
            result = work()
            call.status, call.answer = once.render(result)
            call.save(update_fields=["status", "answer"])
            return result
    except IntegrityError as error:
        if _OVERLAP in str(error):
            raise SlotTaken("Somebody else has just booked this.") from error
        raise


def _claim(once: Once, now: datetime) -> ApiCall:
    """Our own row for this key; a request that holds the key is waited for.

    A row without a status can only be ours: others commit theirs together with the answer.
    """
    values = {
        "method": once.method,
        "path": once.path[:300],
        "body_hash": once.body_hash,
    }
    mine = ApiCall(credential=once.credential, key=once.key, created=now, **values)
    ApiCall.objects.bulk_create([mine], ignore_conflicts=True)
    call = ApiCall.objects.get(credential=once.credential, key=once.key)
    if any(_plain(getattr(call, name)) != value for name, value in values.items()):
        raise IdempotencyMismatch("This Idempotency-Key was used before for another request.")
    if call.status is not None:
        raise Replayed(call.status, bytes(call.answer or b""))
    return call


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def _lock_limit(limit_s: float) -> Iterator[None]:
    """SQLite waits for its one writer when a transaction begins, so the limit is set before that."""
    if connection.vendor != "sqlite" or limit_s == LOCK_LIMIT_S:
        yield
        return
    _execute(f"PRAGMA busy_timeout = {int(limit_s * 1000)}")
    try:
        yield
    finally:
        _execute(f"PRAGMA busy_timeout = {int(LOCK_LIMIT_S * 1000)}")


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _sqlstate(error: Exception) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


def _raise_busy_or(error: OperationalError) -> NoReturn:
    """Raise ``Busy`` if the database only ran out of patience, else the error itself."""
    waited = _sqlstate(error) in {_DEADLOCK, "55P03"} or "locked" in str(error)
    no_connection = type(error.__cause__).__name__ == "PoolTimeout"
    if not (waited or no_connection):
        raise error
    raise Busy(
        "Many people are booking at this moment. Nothing was changed; please try again."
    ) from error
