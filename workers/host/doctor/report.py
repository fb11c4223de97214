"""Every check over the facts, in words or JSON, and the exit status.

0: all well. 1: warnings, or something that could not be found out. 2: an error, with which bookings
would not hold on this host.
"""

from collections.abc import Sequence

import msgspec

from workers.host.doctor import displays, driver, machine, nodes, people, setup
from workers.host.doctor.facts import Facts, Finding

_STATUS = {"ok": 0, "warning": 1, "unknown": 1, "error": 2}
_NOTHING_WRONG = "Nothing stands in the way."


def examine(facts: Facts) -> tuple[Finding, ...]:
    """What every check says, in the order in which it is best put right."""
    of_nvidia = (*driver.CHECKS, *nodes.CHECKS, *displays.CHECKS)
    devices = of_nvidia if facts.setup.vendor == "nvidia" else ()
    checks = (*machine.CHECKS, *devices, *people.CHECKS, *setup.CHECKS)
    return tuple(finding for check in checks for finding in check(facts))


def exit_status(findings: Sequence[Finding]) -> int:
    return max((_STATUS[finding.level] for finding in findings), default=0)


def in_words(findings: Sequence[Finding]) -> str:
    """A line for each finding, what to type below it, and a last line that sums up."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.text}")
        lines += [f"             {line}" for line in finding.fix]
    return "\n".join([*lines, "", _summary(findings)])


def in_json(findings: Sequence[Finding]) -> str:
    content = {"status": exit_status(findings), "findings": findings}
    return msgspec.json.format(msgspec.json.encode(content)).decode()


def _summary(findings: Sequence[Finding]) -> str:
    levels: list[str] = [finding.level for finding in findings]
    parts = [
        f"{count} {word if count == 1 else plural}"
        for level, word, plural in (
            ("error", "error", "errors"),
            ("warning", "warning", "warnings"),
            ("unknown", "unknown", "unknown"),
        )
        if (count := levels.count(level))
    ]
    if not parts:
        return _NOTHING_WRONG
    errors = "error" in levels
    end = "bookings would not hold on this host" if errors else "bookings hold; have a look"
    return f"{', '.join(parts)}: {end}."
