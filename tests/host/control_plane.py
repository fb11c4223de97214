"""A small control plane over real HTTP for tests of the host: obeys the shapes, or misbehaves."""

import contextlib
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from reservations.core.wire import (
    Grant,
    HostSettings,
    Inventory,
    Plan,
    Report,
    Reports,
    ReportsAnswer,
    Samples,
    SamplesAnswer,
    plan_etag,
)
from tests.servers import free_port

TOKEN = "a-token-for-tests"


def real_now() -> datetime:
    return datetime.now(UTC)


class ControlPlaneDouble:
    """``with ControlPlaneDouble("sim-a") as plane``. Attributes may be changed at any time.

    ``spoil`` replaces the body of every plan; ``lose_answers`` stores reports but breaks the
    connection; ``hold`` makes every answer wait until it is set; ``fails`` is the status of every
    answer, as of a web server without its database.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.port = free_port()
        self.epoch = "epoch-1"
        self.grants: tuple[Grant, ...] = ()
        self.settings = HostSettings()
        self.now: Callable[[], datetime] = real_now
        self.watched = False
        self.complete_until: datetime | None = None
        self.cancelled: tuple[int, ...] = ()
        self.spoil: bytes | None = None
        self.fails: int | None = None
        self.lose_answers = False
        self.hold = threading.Event()
        self.hold.set()
        self.inventory: Inventory | None = None
        self.samples: list[Samples] = []
        # Every report in the order in which it came, repeats included.
        self.received: list[Report] = []
        self.plans_asked = 0
        # Kinds of reports that make a whole batch unacceptable.
        self.poison: set[str] = set()
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "ControlPlaneDouble":
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self.down()

    def up(self) -> None:
        plane = self

        class Handler(_Handler):
            double = plane

        self._server = _Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        server, self._server = self._server, None
        if server:
            server.shutdown()
            server.server_close()
            server.hang_up()

    def plan(self) -> Plan:
        return Plan(
            host=self.host,
            epoch=self.epoch,
            etag=self.etag,
            as_of=self.now(),
            server_time=self.now(),
            grants=self.grants,
            settings=self.settings,
            complete_until=self.complete_until,
            cancelled=self.cancelled,
        )

    @property
    def etag(self) -> str:
        return plan_etag(self.epoch, self.grants, self.settings, complete_until=self.complete_until)

    @property
    def reports(self) -> list[Report]:
        """Each report once, as a database with unique ids would hold them."""
        return list({report.id: report for report in self.received}.values())

    def kinds(self) -> list[str]:
        return [report.kind for report in self.reports]

    def find(self, kind: str) -> Report | None:
        return next((report for report in self.reports if report.kind == kind), None)


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *arguments: object) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: socket.socket, client_address: object) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        """Ends the kept-alive connections too, as a server that is gone would."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: object) -> None:
        """Clients may go away at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: ControlPlaneDouble

    def do_GET(self) -> None:
        double = self._arrived()
        if double is None:
            return
        double.plans_asked += 1
        if double.spoil is not None:
            self._answer(200, double.spoil)
        elif self.headers.get("If-None-Match") == f'"{double.etag}"':
            stamp = double.now().isoformat()
            self._answer(304, b"", {"X-Berth-As-Of": stamp, "X-Berth-Server-Time": stamp})
        else:
            self._answer(200, msgspec.json.encode(double.plan()))

    def do_PUT(self) -> None:
        double = self._arrived()
        if double is not None:
            double.inventory = msgspec.json.decode(self.body, type=Inventory)
            self._answer(200, b"{}")

    def do_POST(self) -> None:
        double = self._arrived()
        if double is None:
            return
        if self.path.endswith("/samples"):
            double.samples.append(msgspec.json.decode(self.body, type=Samples))
            answer = SamplesAnswer(
                plan_etag=double.etag, server_time=double.now(), watched=double.watched
            )
            self._answer(200, msgspec.json.encode(answer))
            return
        reports = msgspec.json.decode(self.body, type=Reports).reports
        if double.poison & {report.kind for report in reports}:
            self._answer(400, b'{"code": "invalid"}')
            return
        double.received += reports
        if double.lose_answers:
            self.close_connection = True
            self.connection.close()
            return
        stored = ReportsAnswer(stored=tuple(report.id for report in reports))
        self._answer(200, msgspec.json.encode(stored))

    def _arrived(self) -> ControlPlaneDouble | None:
        """The double, once the request is read and found to be of its host."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.double.hold.wait(30)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, b'{"code": "not_authenticated"}')
            return None
        if self.double.fails is not None:
            self._answer(self.double.fails, b"the database is gone")
            return None
        return self.double

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def grant(
    device: str,
    person: str = "alice",
    *,
    booking: int = 1,
    start_s: float = -60,
    end_s: float = 3600,
    **fields: object,
) -> Grant:
    """A grant whose edges are given in seconds from now."""
    now = real_now()
    return Grant(
        booking=booking,
        device=device,
        unix_name=person,
        start=now + timedelta(seconds=start_s),
        end=now + timedelta(seconds=end_s),
        **fields,
    )
