"""The HTTP client of the agent API. Knows nothing of enforcement: it asks, checks shapes, and answers.

Every call has short time limits, follows no redirect, and sends the host's own token. It never retries
by itself; its callers are loops.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import urllib3

from reservations.core.wire import (
    Instant,
    Inventory,
    Plan,
    Reports,
    ReportsAnswer,
    Samples,
    SamplesAnswer,
    check_instants,
)
from workers.host.clock import HostClock

CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 5.0
# 5,000 grants take about 1.5 MB; nobody gets to fill the host's memory.
MAX_ANSWER_BYTES = 16 * 2**20

Answer = TypeVar("Answer", Plan, ReportsAnswer, SamplesAnswer)


class ControlPlaneError(RuntimeError):
    """The exchange did not succeed."""


class Unreachable(ControlPlaneError):
    """No answer, or "not now": ask again later."""


class Refused(ControlPlaneError):
    """The control plane understood and said no (token, host, shape)."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Garbage(ControlPlaneError):
    """An answer that is not of the agreed shape."""


class Unchanged(msgspec.Struct, frozen=True, kw_only=True):
    """The plan is as it was, as of a newer instant: counts as a plan."""

    as_of: Instant
    server_time: Instant

    def __post_init__(self) -> None:
        check_instants(self.as_of, self.server_time)


class _Response(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    headers: Mapping[str, str]
    content: bytes


class ControlPlane:
    """Safe to use from several threads. Each answer with a server time also sets the clock right."""

    def __init__(self, *, url: str, token: str, clock: HostClock) -> None:
        self._url = url
        self._clock = clock
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        self._pool = urllib3.PoolManager(
            maxsize=4,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
        )

    def fetch_plan(self, known_etag: str | None) -> Plan | Unchanged:
        """The plan, or that it is still the one with ``known_etag``.

        The clock is not set: whether this plan may be believed is for the caller to say.
        """
        headers = {"If-None-Match": f'"{known_etag}"'} if known_etag else {}
        response = self._ask("GET", "plan", headers=headers)
        if response.status == 304:
            return self._unchanged(response)
        return _decode(response.content, Plan)

    def put_inventory(self, inventory: Inventory) -> None:
        self._ask("PUT", "inventory", body=msgspec.json.encode(inventory))

    def post_reports(self, reports: Reports) -> ReportsAnswer:
        response = self._ask("POST", "reports", body=msgspec.json.encode(reports))
        return _decode(response.content, ReportsAnswer)

    def post_samples(self, samples: Samples) -> SamplesAnswer:
        sent_s = self._clock.boottime_s()
        response = self._ask("POST", "samples", body=msgspec.json.encode(samples))
        answer = _decode(response.content, SamplesAnswer)
        self._clock.adjust(answer.server_time, sent_s=sent_s, received_s=self._clock.boottime_s())
        return answer

    def close(self) -> None:
        self._pool.clear()

    def _ask(
        self,
        method: str,
        name: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> _Response:
        try:
            response = self._pool.request(
                method,
                f"{self._url}/api/v1/agent/{name}",
                body=body,
                headers={**self._headers, **(headers or {})},
                redirect=False,
                preload_content=False,
            )
            content = response.read(MAX_ANSWER_BYTES + 1, decode_content=True)
            response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{name}: {error}") from error
        if len(content) > MAX_ANSWER_BYTES:
            response.close()
            raise Garbage(f"{name}: an answer of more than {MAX_ANSWER_BYTES} bytes")
        _check_status(response.status, name, content)
        return _Response(status=response.status, headers=response.headers, content=content)

    def _unchanged(self, response: _Response) -> Unchanged:
        stamps = {
            "as_of": response.headers.get("X-Berth-As-Of"),
            "server_time": response.headers.get("X-Berth-Server-Time"),
        }
        try:
            return msgspec.convert(stamps, Unchanged)
        except msgspec.ValidationError as error:
            raise Garbage(f"plan: 304 without its instants: {error}") from error


def _check_status(status: int, name: str, content: bytes) -> None:
    if status in {200, 201, 204, 304}:
        return
    text = content[:300].decode("utf-8", "replace")
    if status >= 500 or status in {408, 429}:
        raise Unreachable(f"{name}: {status}")
    raise Refused(status, f"{name}: {text}")


def _decode(content: bytes, shape: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Garbage(f"{shape.__name__}: {error}") from error
