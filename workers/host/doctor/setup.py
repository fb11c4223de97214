"""The worker's configuration, its stored plan and clock, and who else hands out the GPUs."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from reservations.core.wire import MAX_SKEW_S
from workers.host.doctor.facts import Facts, Finding, error, ok, unknown, warning
from workers.host.spans import spoken

# The agent hears at least once a minute that its plan still stands.
OLD_PLAN_S = 300.0


def configuration(facts: Facts) -> Iterator[Finding]:
    """A wrong URL (plain http beyond loopback) and a missing token are among the errors."""
    setup = facts.setup
    if setup.configuration is None:
        yield error(
            "configuration",
            f"The worker cannot start: {setup.configuration_error}.",
            "edit /etc/berth/host.env; the variables are listed in docs/operations.md",
        )
        return
    url = setup.configuration.url
    encrypted = urlsplit(url).scheme == "https"
    how = "encrypted" if encrypted else "on this machine, unencrypted"
    yield ok("url", f"Berth is asked at {url}, {how}.")


def token(facts: Facts) -> Iterator[Finding]:
    file = facts.setup.secret
    if facts.setup.configuration is None:
        return
    if file is None:
        yield ok("token", "The host's token comes from the environment alone.")
    elif file.mode & 0o077 or file.uid != 0:
        yield error(
            "token",
            f"{file.path} holds the host's token and has mode {file.mode:04o}, owner {file.uid}: "
            "whoever reads it can speak for this host.",
            f"chown root: {file.path}",
            f"chmod 0600 {file.path}",
        )
    else:
        yield ok("token", f"The host's token is in {file.path}, which only root can read.")


def plan(facts: Facts) -> Iterator[Finding]:
    setup = facts.setup
    if setup.plan_error:
        yield error(
            "plan",
            f"The stored plan cannot be used: {setup.plan_error}. The agent sets it aside and stops "
            "nobody until it has fetched another.",
        )
    elif setup.plan is None or setup.plan_age_s is None:
        yield warning(
            "plan",
            "There is no stored plan yet: the agent has not heard from Berth.",
            "systemctl start berth-host",
            "journalctl -u berth-host -n 50",
        )
    elif setup.plan_age_s > OLD_PLAN_S:
        yield warning(
            "plan",
            f"The stored plan was last confirmed {spoken(timedelta(seconds=setup.plan_age_s))} ago, not within the last "
            "minute: the agent does not run, or does not reach Berth.",
            "berth-host status",
            "journalctl -u berth-host -n 50",
        )
    else:
        mode = setup.plan.plan.settings.mode
        yield ok(
            "plan",
            f"The stored plan was confirmed {spoken(timedelta(seconds=setup.plan_age_s))} ago; mode {mode}.",
        )


def clock(facts: Facts) -> Iterator[Finding]:
    offset_s = facts.setup.clock_offset_s
    if offset_s is None:
        yield unknown(
            "clock",
            "Whether the clock is right is not known: Berth was not heard since the last boot.",
        )
    elif abs(offset_s) > MAX_SKEW_S:
        way = "ahead of" if offset_s > 0 else "behind"
        yield warning(
            "clock",
            f"The clock is {abs(offset_s):.1f} s {way} the server's. Slots keep to the server's "
            "time; people will read another one here.",
            "timedatectl set-ntp true",
        )
    else:
        yield ok("clock", f"The clock is within {MAX_SKEW_S:.0f} s of the server's.")


def others(facts: Facts) -> Iterator[Finding]:
    """Two who hand out one GPU, each closing what the other opened."""
    setup = facts.setup
    found = {"Slurm": setup.slurm, "Kubernetes": setup.device_plugin}
    for name, where in found.items():
        if where:
            yield warning(
                name.lower(),
                f"{name} hands out GPUs of this host ({where}). Those that it has must not be "
                "managed by Berth too.",
                f"set `managed by` of those devices to {name} under /admin/",
            )
    if not any(found.values()):
        yield ok("others", "Neither Slurm nor Kubernetes hands out GPUs here.")


CHECKS = (configuration, token, plan, clock, others)
