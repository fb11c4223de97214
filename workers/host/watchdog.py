"""Tells systemd that the agent is ready and alive: sd_notify(3), whose protocol is one datagram.

Without NOTIFY_SOCKET, that is without systemd, nothing is sent.
"""

import logging
import os
import socket
from collections.abc import Mapping

logger = logging.getLogger(__name__)


class Watchdog:
    """`alive` is for every tick that has succeeded: systemd ends and restarts an agent that no longer ticks."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        # A name in the abstract namespace is written with an @ in front.
        self._address = f"\0{name[1:]}" if name.startswith("@") else name
        self._ready = False

    def alive(self, status: str) -> None:
        ready = [] if self._ready else ["READY=1"]
        self._ready = True
        self._send([*ready, "WATCHDOG=1", f"STATUS={' '.join(status.split())}"])

    def stopping(self) -> None:
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                # A full queue must not hold up a tick; the next one says it again.
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            self._ready = False
            logger.warning("systemd cannot be told: %s", error)
