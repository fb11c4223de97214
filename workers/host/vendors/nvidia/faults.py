"""What a failed call means: for the figure, for its device, or for the library as a whole."""

from enum import Enum, auto


class Fault(Enum):
    """How far a failure reaches."""

    ABSENT = auto()  # this device or driver does not have the figure
    DOUBT = auto()  # the figure cannot be had now; if nothing else can, the device is in trouble
    GONE = auto()  # the device does not answer any more
    LIBRARY = auto()  # nothing can be asked until NVML has been started again


# By number in nvmlReturn_t: how far it reaches, and what we say of it.
_MEANING: dict[int, tuple[Fault, str]] = {
    1: (Fault.LIBRARY, "the library is not started"),
    2: (Fault.ABSENT, "the driver does not take this question"),
    3: (Fault.ABSENT, "the device does not support it"),
    4: (Fault.ABSENT, "no permission: the agent has to run as root, outside of a container"),
    6: (Fault.ABSENT, "not found"),
    9: (Fault.LIBRARY, "NVIDIA's driver is not loaded"),
    10: (Fault.DOUBT, "the driver did not answer in its own time limit"),
    11: (Fault.DOUBT, "the kernel cannot deliver the GPU's interrupts"),
    12: (Fault.LIBRARY, "libnvidia-ml.so.1 is not installed"),
    13: (Fault.ABSENT, "the driver is too old to know it"),
    14: (Fault.DOUBT, "the GPU's stored information is corrupt"),
    15: (Fault.GONE, "the GPU is lost: it has fallen off the bus or cannot be reached"),
    16: (Fault.GONE, "the GPU needs a reset"),
    17: (Fault.DOUBT, "the operating system refused it"),
    18: (
        Fault.LIBRARY,
        "the library and the loaded driver are of different versions: "
        "reload the driver or reboot the host",
    ),
    19: (Fault.DOUBT, "the GPU is in use"),
    20: (Fault.DOUBT, "out of memory"),
    23: (Fault.DOUBT, "out of resources"),
    27: (Fault.DOUBT, "the GPU is not ready"),
    28: (Fault.GONE, "the GPU is not there"),
    29: (Fault.DOUBT, "the GPU is in a state in which it does not answer"),
    999: (Fault.DOUBT, "an unknown error of the driver"),
}


def reach(code: int) -> Fault:
    """A code that nobody has heard of leaves out the figure alone."""
    return _MEANING.get(code, (Fault.ABSENT, ""))[0]


def in_words(code: int) -> str:
    return _MEANING.get(code, (Fault.ABSENT, f"error {code}"))[1]
