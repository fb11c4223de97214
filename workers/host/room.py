"""Running out of descriptors or memory must not look like an empty machine.

Most that cannot be opened in /proc has just ended. What cannot be opened for want of room is still there.
"""

import errno
import resource

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class NoRoomError(RuntimeError):
    """This process can open nothing more; whatever was to be seen may be there. No `OSError`, so that none hides it."""


def check_room(error: OSError) -> None:
    """To be called before a failure is taken for an absence.

    Raises:
        NoRoomError: it says nothing about the thing that was to be opened.
    """
    if error.errno in _NO_ROOM:
        raise NoRoomError(str(error)) from error


def kept_at_most() -> int:
    """How many descriptors may be kept for long; as many again are for all that is opened and closed."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


def take_all_there_is() -> None:
    """Raises this process's own limit as far as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
