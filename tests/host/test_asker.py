"""Questions that take long hold nobody up."""

import threading
import time

from tests.waiting import until
from workers.host.asker import Asker, NoAnswerError


def test_an_answer_is_none_until_it_has_come() -> None:
    may_answer = threading.Event()

    def ask(key: str) -> str:
        may_answer.wait(10)
        return key.upper()

    asker = Asker(ask, name="test", keep_s=60)
    assert asker.answer("a") is None
    assert asker.answer("b") is None

    may_answer.set()
    assert until(lambda: asker.answer("a")) == "A"
    assert until(lambda: asker.answer("b")) == "B"


def test_a_question_is_put_once_while_its_answer_holds() -> None:
    asked: list[str] = []
    asker = Asker(lambda key: asked.append(key) or len(asked), name="test", keep_s=60)

    until(lambda: asker.answer("a"))
    for _ in range(5):
        asker.answer("a")

    assert asked == ["a"]


def test_an_old_answer_is_given_out_until_the_next_one_has_come() -> None:
    given = iter([1, 2])
    may_answer = threading.Event()
    may_answer.set()

    def ask(key: str) -> int:
        may_answer.wait(10)
        return next(given, 2)

    asker = Asker(ask, name="test", keep_s=0)
    until(lambda: asker.answer("a"))
    until(lambda: asker.answer("a") == 2)
    may_answer.clear()

    assert asker.answer("a") == 2
    may_answer.set()


def test_a_failure_is_told_and_the_question_put_again() -> None:
    answers: list[Exception | str] = [NoAnswerError("it is down"), ValueError("what?"), "yes"]

    def ask(key: str) -> str:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    patient = Asker(ask, name="test", keep_s=60, retry_s=60)
    assert patient.answer("a") is None
    assert until(patient.failures) == {"it is down"}
    assert patient.answer("a") is None

    eager = Asker(ask, name="test", keep_s=60, retry_s=0)
    assert until(lambda: eager.answer("a")) == "yes"
    assert eager.failures() == frozenset()


def test_what_nobody_asks_about_any_more_is_forgotten() -> None:
    asked: list[str] = []
    asker = Asker(lambda key: asked.append(key) or key, name="test", keep_s=60)
    until(lambda: asker.answer("a"))

    asker.keep_only(["b"])

    until(lambda: asker.answer("a"))
    assert asked == ["a", "a"]


def test_asking_takes_no_time_while_the_answer_takes_long() -> None:
    asker = Asker(lambda key: threading.Event().wait(5), name="test", keep_s=60)

    began = time.monotonic()
    for key in range(100):
        asker.answer(key)
        asker.failures()
        asker.keep_only(range(100))

    assert time.monotonic() - began < 1
