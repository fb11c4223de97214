"""The way into NVML: starting it, starting it again, and asking. The only file that imports pynvml.

NVML is never shut down while a call is under way, which would crash the process: the last one to leave
does it. At the end of the process nobody does.
"""

import contextlib
import ctypes
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pynvml as _untyped

from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia.faults import Fault, in_words, reach

# pynvml has no annotations.
pynvml: Any = _untyped
logger = logging.getLogger(__name__)

FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0
# How long `close` waits for those who are inside a call.
CLOSE_WAIT_S = 2.0
SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 0, 2, 3, 6
INSUFFICIENT_SIZE, TIMEOUT, FUNCTION_NOT_FOUND, UNKNOWN = 7, 10, 13, 999
XID_EVENTS = pynvml.nvmlEventTypeXidCriticalError


class NvmlError(Exception):
    """A call failed."""

    def __init__(self, code: int, call: str) -> None:
        super().__init__(f"{call}: {in_words(code)}")
        self.code = code


class DeviceGoneError(RuntimeError):
    """The device does not answer any more; the text says why."""


class DeviceSilentError(RuntimeError):
    """Nothing can be read of the device now; the text says why."""


class Library:
    """NVML as a whole. It starts with the first session, after any fork; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._open = False
        # How often NVML was started and not shut down since: it counts, and goes at the last one.
        self._starts = 0
        self._sessions = 0
        self._retry_s = FIRST_RETRY_S
        self._retry_at = 0.0
        self._trouble = ""
        # Grows with every start: handles of an older one are worth nothing.
        self.generation = 0

    @property
    def is_open(self) -> bool:
        return self._open

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """NVML is started and stays so, until the block is left.

        Raises:
            VendorError: it cannot be used now. It is tried again, less and less often.
        """
        with self._lock:
            self._start()
            self._sessions += 1
        try:
            yield
        finally:
            with self._lock:
                self._sessions -= 1
                if not self._open:
                    self._shut_down()
                    self._lock.notify_all()

    def close(self) -> None:
        """Lets go of the driver, which the next session starts again.

        Waits a moment for those who are inside a call. The last of them lets go, however late.
        """
        with self._lock:
            self._open = False
            self._shut_down()
            if not self._lock.wait_for(lambda: not self._starts or self._open, CLOSE_WAIT_S):
                logger.warning("NVML is still open: a call has not come back")

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Whatever pynvml's function of that name answers.

        Raises:
            NvmlError: the call failed.
            VendorError: the library has become unusable.
        """
        try:
            return getattr(pynvml, name)(*arguments, **options)
        except pynvml.NVMLLibraryMismatchError as error:
            raise NvmlError(FUNCTION_NOT_FOUND, name) from error
        except UnicodeDecodeError as error:
            raise NvmlError(SUCCESS, name) from error
        except pynvml.NVMLError as error:
            raise self._failed(error.value, name) from error

    def call_into(self, name: str, handle: Any, count: ctypes.c_uint, buffer: Any) -> int:
        """What a list call answers, by number: pynvml's own know one layout of the entries alone.

        Raises:
            NvmlError: this driver does not have the call.
        """
        try:
            function = getattr(pynvml.nvmlLib, name)
        except AttributeError as error:
            raise NvmlError(FUNCTION_NOT_FOUND, name) from error
        code: int = function(handle, ctypes.byref(count), buffer)
        if reach(code) is Fault.LIBRARY:
            raise self._failed(code, name)
        return code

    def _failed(self, code: int, name: str) -> Exception:
        error = NvmlError(code, name)
        if reach(code) is not Fault.LIBRARY:
            return error
        trouble = f"NVML cannot be used: {in_words(code)}"
        with self._lock:
            # Of several threads that fail at once the first one counts.
            if self._open:
                self._open = False
                self._back_off(trouble)
        return VendorError(trouble)

    def _start(self) -> None:
        if self._open:
            return
        if time.monotonic() < self._retry_at:
            raise VendorError(self._trouble)
        self._shut_down()
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self._back_off(f"NVML cannot start: {in_words(error.value)}")
            raise VendorError(self._trouble) from error
        self._starts += 1
        self.generation += 1
        self._open = True
        self._retry_s = FIRST_RETRY_S

    def _shut_down(self) -> None:
        """If nobody is inside a call. One that hangs keeps it up, as it would keep the driver."""
        while self._starts and not self._sessions:
            self._starts -= 1
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()

    def _back_off(self, trouble: str) -> None:
        self._trouble = trouble
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)


class Device:
    """The questions to one device in one look, and how they went. To be used within a session."""

    def __init__(self, library: Library, handle: Any) -> None:
        self._library = library
        self.handle = handle
        self._answered = False
        self._doubt: NvmlError | None = None

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The answer, or None where it cannot be had.

        Raises:
            DeviceGoneError, VendorError
        """
        try:
            answer = self._library.call(name, self.handle, *arguments, **options)
        except NvmlError as error:
            self._note(error)
            return None
        self._answered = True
        return answer

    def ask_list(self, name: str, count: ctypes.c_uint, buffer: Any) -> int:
        """The code of a list call, which fills ``buffer`` with up to ``count`` entries.

        Raises:
            DeviceGoneError, VendorError
        """
        try:
            code = self._library.call_into(name, self.handle, count, buffer)
        except NvmlError as error:
            return error.code
        if code in {SUCCESS, NOT_FOUND, INSUFFICIENT_SIZE}:
            self._answered = True
        else:
            self._note(NvmlError(code, name))
        return code

    def first(self, *names: str) -> Any:
        """What the first call answers that this driver knows."""
        answers = (self.ask(name) for name in names)
        return next((answer for answer in answers if answer is not None), None)

    def settle(self) -> None:
        """After all questions: one figure may fail, but when none can be had the device is in trouble.

        Raises:
            DeviceGoneError, DeviceSilentError
        """
        if self._doubt is None or self._answered:
            return
        kind = DeviceGoneError if self._doubt.code == UNKNOWN else DeviceSilentError
        raise kind(str(self._doubt)) from self._doubt

    def _note(self, error: NvmlError) -> None:
        fault = reach(error.code)
        if fault is Fault.GONE:
            raise DeviceGoneError(str(error)) from error
        if fault is Fault.DOUBT:
            self._doubt = error
            logger.debug("figure is missing: %s", error)


def address(handle: Any) -> int:
    """What tells handles of different devices apart."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
