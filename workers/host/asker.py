"""Questions whose answer may take long, put to a thread of its own: whoever asks is never held up."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class NoAnswerError(RuntimeError):
    """Nobody could say now; the text says why."""


@dataclass(frozen=True, slots=True)
class _Said(Generic[V]):
    """``answer`` is None while there is none, and ``why`` says what was tried last."""

    answer: V | None
    why: str | None
    ask_again_at: float


class Asker(Generic[K, V]):
    """``ask`` is called in the thread, one question after the other. The rest is for one thread.

    An answer holds for ``keep_s`` and is given out until the next one has come; a question without an
    answer is put again after ``retry_s``.
    """

    def __init__(
        self, ask: Callable[[K], V], *, name: str, keep_s: float, retry_s: float = 60.0
    ) -> None:
        self._ask = ask
        self._name = name
        self._keep_s = keep_s
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._said: dict[K, _Said[V]] = {}
        self._asked: set[K] = set()
        self._questions: queue.SimpleQueue[K] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def answer(self, key: K) -> V | None:
        """What is known now; None while nothing is. It is asked for in either case when it is due."""
        with self._lock:
            said = self._said.get(key)
            due = said is None or time.monotonic() >= said.ask_again_at
            new = due and key not in self._asked
            if new:
                self._asked.add(key)
        if new:
            self._questions.put(key)
            self._start()
        return said.answer if said else None

    def failures(self) -> frozenset[str]:
        """Why there are questions without an answer."""
        with self._lock:
            return frozenset(said.why for said in self._said.values() if said.why is not None)

    def keep_only(self, keys: Iterable[K]) -> None:
        """Forget what was said about all others."""
        kept = set(keys)
        with self._lock:
            for key in self._said.keys() - kept - self._asked:
                del self._said[key]

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            key = self._questions.get()
            with self._lock:
                known = self._said.get(key)
            said = self._put(key, known.answer if known else None)
            with self._lock:
                self._said[key] = said
                self._asked.discard(key)

    def _put(self, key: K, known: V | None) -> _Said[V]:
        try:
            answer = self._ask(key)
        except NoAnswerError as error:
            return _Said(known, str(error), time.monotonic() + self._retry_s)
        except Exception as error:
            logger.exception("question failed key=%s", key)
            return _Said(known, str(error)[:200], time.monotonic() + self._retry_s)
        return _Said(answer, None, time.monotonic() + self._keep_s)
