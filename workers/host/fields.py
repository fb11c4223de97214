"""``Name: value`` lines, in which the kernel and NVIDIA's driver speak of themselves in /proc."""


def fields(content: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in content.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def numbers(content: str) -> dict[str, int]:
    """Those of the fields whose value is a decimal number; the driver prints unsigned ones."""
    return {name: int(value) for name, value in fields(content).items() if value.isdecimal()}
