"""Somebody who calls REST, as scripts do: with a token, JSON in, JSON out."""

import json
from datetime import datetime, timedelta
from typing import Any

from django.test import Client

from reservations import clock
from reservations.core.period import next_on_grid
from reservations.models import User
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token


class Caller:
    """``caller.post("bookings/", {...})`` and the like; paths are below /api/v1/."""

    def __init__(self, user: User | None, *, scopes: str = "book") -> None:
        self.user = user
        self.client = Client(raise_request_exception=True)
        self.headers: dict[str, str] = {}
        if user is not None:
            _, secret = issue_token(
                user, name="test", scopes=scopes.split(","), actor=BERTH, now=clock.now()
            )
            self.headers["Authorization"] = f"Bearer {secret}"

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        return self._send("GET", path, query=query, headers=headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("POST", path, body=body, headers=headers)

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self._send("PATCH", path, body=body, headers=headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self._send("DELETE", path, headers=headers)

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        # A leading capital makes a keyword a header: Idempotency_Key="x"
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.client.generic(
            method,
            f"/api/v1/{path}",
            data="" if body is None else data,
            content_type="application/json",
            query_params={name.rstrip("_"): value for name, value in (query or {}).items()},
            headers={**self.headers, **named},
        )


def soon(hours: float = 1) -> datetime:
    """An instant on the grid, that many hours from now or a little later."""
    return next_on_grid(clock.now() + timedelta(hours=hours), timedelta(minutes=5))


def text(instant: datetime) -> str:
    return instant.isoformat()


def is_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """The problem, after checking that it is one."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"urn:berth:problem:{code}"
    assert body["title"]
    assert body["detail"]
    return body
