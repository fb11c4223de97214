"""One question that is put again and again, in a thread of its own: its answer may never come.

A question that is late is not stacked: until its answer is there, or for ever, no new one is put.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Question(Generic[T]):
    """``put`` is called in the thread and must not raise. `wanted` holds at most one request."""

    def __init__(self, put: Callable[[], T], *, name: str) -> None:
        self._put = put
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._done = threading.Condition()
        self._answer: T | None = None
        self.newest: T | None = None
        # time.monotonic() of the request that is not answered yet.
        self.asked_at: float | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def ask(self) -> bool:
        """Puts the question; False if an older one is still under way."""
        with self._done:
            if self.asked_at is not None:
                return False
            self.asked_at = time.monotonic()
            self._answer = None
            self._wanted.put(True)
            return True

    def answer(self, until: float) -> T | None:
        """The answer to what was asked last, or None if it is not there by ``until`` (monotonic)."""
        with self._done:
            self._done.wait_for(
                lambda: self._answer is not None, max(0.0, until - time.monotonic())
            )
            return self._answer

    def hangs(self, limit_s: float) -> bool:
        """Whether an answer has been owing for longer."""
        asked_at = self.asked_at
        return asked_at is not None and time.monotonic() - asked_at > limit_s

    def stop(self) -> None:
        self._wanted.put(False)

    def _run(self) -> None:
        while self._wanted.get():
            answer = self._put()
            with self._done:
                self._answer = self.newest = answer
                self.asked_at = None
                self._done.notify_all()
