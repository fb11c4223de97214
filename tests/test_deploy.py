"""What is shipped for a real site: units that start what is there, and brokers' users that may do enough."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis
from celery import Celery
from kombu import Connection

from reservations.core import wire
from reservations.core.wire import HostSettings
from tests.host import nodes
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant
from tests.host.gates import acl_gate
from tests.host.kit import SimHost
from tests.host.people import child, let_everybody_into, wait_for_ever
from tests.servers import free_port, wait_for_port
from tests.waiting import until
from webapp.embedded import redis_command
from workers.host.agent import STEADY_S
from workers.host.doctor.machine import NEEDED, NEEDED_FOR_BPF

ROOT = Path(__file__).resolve().parent.parent
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
INSTALLED = "/opt/berth/"
HOST_UNIT = ROOT / "deploy/systemd/berth-host.service"
PASSWORDS = {"berth": "of-berth", "sim-a": "of-sim-a", "sim-b": "of-sim-b"}


def unit(path: Path) -> RawConfigParser:
    """A unit without settings that are given twice, which this parser refuses."""
    parser = RawConfigParser(delimiters=("=",), comment_prefixes=("#", ";"))
    parser.optionxform = str
    parser.read_string(re.sub(r"\\\n\s*", "", path.read_text()))
    return parser


def command(path: Path) -> list[str]:
    return shlex.split(unit(path)["Service"]["ExecStart"])


def local(executable: str) -> Path:
    """Where a program of /opt/berth is here."""
    inside = executable.removeprefix(INSTALLED)
    assert inside != executable
    if inside.startswith(".venv/"):
        return Path(sys.prefix) / inside.removeprefix(".venv/")
    return ROOT / inside


@cache
def help_of(*words: str) -> str:
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        [*words, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_there_is_a_unit_for_each_part_of_a_site():
    names = {path.stem for path in UNITS}
    assert names == {"berth-host", "berth-web", "berth-control", "berth-beat"}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_what_a_unit_starts_exists_and_knows_its_options(path):
    executable, *words = command(path)
    program = local(executable)
    assert os.access(program, os.X_OK)

    modules = [word for word in words if word.startswith(("webapp.", "workers."))]
    subcommands = [word for word in words if word in {"run", "worker", "beat"}]
    options = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-A"]
    assert modules or subcommands
    for module in modules:
        assert find_spec(module.partition(":")[0])
    application = ["-A", "webapp.celery"] if "-A" in words else []
    known = help_of(str(program), *application, *subcommands)
    assert [one for one in options if not re.search(rf"(?<![\w-]){one}(?![\w-])", known)] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_started_again_and_its_settings_lie_where_the_docs_say(path):
    service = unit(path)["Service"]
    pages = (ROOT / "docs/hosts.md").read_text() + (ROOT / "docs/operations.md").read_text()

    assert service["Restart"] == "always"
    assert service["WorkingDirectory"] == INSTALLED.rstrip("/")
    assert service["EnvironmentFile"] in pages
    # Only the agent feeds a watchdog.
    assert ("WatchdogSec" in service) == (path == HOST_UNIT)


def test_the_host_keeps_the_real_devices_and_only_the_capabilities_it_needs():
    service = unit(HOST_UNIT)["Service"]

    assert service["PrivateDevices"] == "no"
    assert service["CapabilityBoundingSet"].split() == list(NEEDED)
    # Any of these has systemd refuse all devices but the ones it names.
    assert not service.keys() & {"DeviceAllow", "DevicePolicy", "ProtectClock"}


def test_what_everybody_may_read_of_a_host_is_there_while_its_agent_is_started_anew():
    service = unit(HOST_UNIT)["Service"]

    assert (service["StateDirectory"], service["StateDirectoryMode"]) == ("berth", "0700")
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryMode"]) == ("berth", "0755")
    assert service["RuntimeDirectoryPreserve"] == "restart"


def test_a_watchdog_waits_for_longer_than_the_agent_ever_sleeps():
    service = unit(HOST_UNIT)["Service"]

    assert service["Type"] == "notify"
    assert float(service["WatchdogSec"]) >= 4 * STEADY_S


def test_the_gate_in_the_kernel_gets_its_capabilities_from_a_file_of_its_own():
    service = unit(HOST_UNIT.with_name("berth-host.service.d") / "bpf.conf")["Service"]

    assert set(service["CapabilityBoundingSet"].split()) == NEEDED_FOR_BPF.keys()


@pytest.fixture
def installed(tmp_path) -> Path:
    """A folder with the units, as if /opt/berth were here."""
    for path in UNITS:
        text = path.read_text().replace(f"{INSTALLED}.venv", sys.prefix)
        (tmp_path / path.name).write_text(text.replace(INSTALLED.rstrip("/"), str(ROOT)))
    extra = tmp_path / "berth-host.service.d"
    extra.mkdir()
    (extra / "bpf.conf").write_text(
        (HOST_UNIT.with_name("berth-host.service.d") / "bpf.conf").read_text()
    )
    return tmp_path


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


@needs_systemd
def test_systemd_finds_no_fault_with_the_units(installed):
    units = sorted(installed.glob("*.service"))
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
    )

    ours = [line for line in done.stderr.splitlines() if "berth-" in line]
    assert (done.returncode, ours) == (0, [])


@needs_systemd
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_rates_no_unit_as_exposed(installed, path):
    """On its scale of 0 to 10; above 7 it says EXPOSED. A service without any care has 9.6."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=70",
         installed / path.name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd cannot rate a unit that is not loaded")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_only_the_proxy_may_say_who_asks():
    words = command(ROOT / "deploy/systemd/berth-web.service")

    assert words[words.index("--forwarded-allow-ips") + 1] == "127.0.0.1"
    assert words[words.index("--timeout-worker-healthcheck") + 1] == "60"
    assert int(words[words.index("--workers") + 1]) > 1


@pytest.mark.root
def test_the_capabilities_of_the_unit_are_enough_to_close_find_and_stop(tmp_path):
    """The real worker, as root with no other capability, on a node that is not even root's."""
    stranger, limit_s = 61001, 30
    let_everybody_into(tmp_path)
    node = tmp_path / nodes.NODE
    os.mknod(node, stat.S_IFCHR | 0o660, os.makedev(1, 7))
    os.chown(node, stranger, stranger)
    service = unit(HOST_UNIT)["Service"]
    allowed = [f"+{name.lower().removeprefix('cap_')}" for name in
               service["CapabilityBoundingSet"].split()]  # fmt: skip

    def hold(ready):
        os.open(node, os.O_RDWR)
        ready()
        wait_for_ever()

    with ControlPlaneDouble("gpu-01") as plane, child(stranger, hold) as holder:
        (tmp_path / nodes.LISTED).write_text(f"[{holder.pid}]")
        plane.settings = HostSettings(
            mode="enforce", managed=(nodes.UUID,), grace_s=2, sample_s=1, intruder_grace_s=1
        )
        plane.grants = (grant(nodes.UUID, "nobody"),)
        worker = subprocess.Popen(
            ["setpriv", "--bounding-set", ",".join(["-all", *allowed]), "--no-new-privs",
             sys.executable, "-m", "workers.host", "run"],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "BERTH_HOST_NAME": "gpu-01",
                "BERTH_URL": plane.url,
                "BERTH_HOST_TOKEN": TOKEN,
                "BERTH_STATE_DIR": str(tmp_path),
                "BERTH_RUN_DIR": str(tmp_path),
                "BERTH_VENDOR": "tests.host.nodes:open_vendor",
            },
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until(holder.ended, limit_s=limit_s)
            until(lambda: "gone" in plane.kinds(), limit_s=limit_s)
            gate = acl_gate({nodes.UUID: [str(node)]}, tmp_path).observe()[nodes.UUID]
            held = Path(f"/proc/{worker.pid}/status").read_text()
        finally:
            worker.terminate()
            worker.wait(limit_s)
    mask = sum(1 << bit for bit in NEEDED.values())
    assert int(re.search(r"CapEff:\s*(\w+)", held)[1], 16) == mask
    assert gate.sound
    assert not gate.group_open
    assert os.stat(node).st_uid == 0


@pytest.mark.root
def test_the_capabilities_of_the_unit_are_enough_to_write_to_a_terminal_that_refuses_messages():
    stranger = 61001
    ours, theirs = os.openpty()
    name = os.ttyname(theirs)
    os.chown(name, stranger, -1)
    os.chmod(name, 0o600)
    allowed = unit(HOST_UNIT)["Service"]["CapabilityBoundingSet"].split()
    bounding = ",".join(["-all", *(f"+{one.lower().removeprefix('cap_')}" for one in allowed)])
    script = (
        "from workers.host.terminals import Terminals; terminals = Terminals(); terminals.start(); "
        f"terminals.say({stranger}, ['Your slot ends.']); terminals.stop(5)"
    )

    subprocess.run(
        ["setpriv", "--bounding-set", bounding, "--no-new-privs", sys.executable, "-c", script],
        cwd=ROOT, check=True,
    )  # fmt: skip

    os.set_blocking(ours, False)
    assert b"Your slot ends." in os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[str]:
    """host:port of a Redis that loaded the shipped users, for two hosts, from its ACL file."""
    folder = tmp_path_factory.mktemp("redis")
    (folder / "users.acl").write_text("".join(_users()))
    port = free_port()
    server = subprocess.Popen(
        [*redis_command(), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
         "--aclfile", str(folder / "users.acl")],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for_port(port, server)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _users() -> Iterator[str]:
    def hashed(name: str) -> str:
        return sha256(PASSWORDS[name].encode()).hexdigest()

    folder = ROOT / "deploy/redis"
    yield (folder / "users.acl").read_text().replace("BERTH-HASH", hashed("berth"))
    for name in ("sim-a", "sim-b"):
        line = (folder / "host.acl").read_text()
        yield line.replace("NAME", name).replace("HASH", hashed(name))


def url_of(broker: str, name: str) -> str:
    user = "berth" if name == "berth" else f"host-{name}"
    return f"redis://{user}:{PASSWORDS[name]}@{broker}/0"


@pytest.fixture
def all_powerful(broker: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url_of(broker, "berth")) as client:
        client.flushall()
        client.acl_log_reset()
        yield client


def refusals(client: redis.Redis) -> list[str]:
    """What was refused, but for CLIENT SETINFO: a library's own name, which no older Redis knows."""
    refused = [entry["object"] for entry in client.acl_log()]
    return [one for one in refused if one not in {"client", "client|setinfo"}]


def test_a_host_may_touch_the_keys_of_its_own_prefix_and_no_channel(all_powerful):
    rights = all_powerful.acl_getuser("host-sim-a")

    patterns = rights["keys"] if isinstance(rights["keys"], list) else rights["keys"].split()
    found = [one.decode() if isinstance(one, bytes) else one for one in patterns]
    assert [one.removeprefix("~") for one in found] == [f"{wire.host_key_prefix('sim-a')}*"]
    assert not rights["channels"]


@pytest.mark.parametrize(
    "words",
    [
        ("GET", "host.sim-b:host.sim-b"),
        ("LPUSH", "host.sim-b:host.sim-b", "forged"),
        ("LPUSH", "host.sim-ab:x", "forged"),
        ("LPUSH", "control", "forged"),
        ("SET", "berth:live:GPU-1", "forged"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
        ("MONITOR",),
        ("PUBLISH", "berth:live", "forged"),
        ("SUBSCRIBE", "berth:live"),
        ("EVAL", "return 1", "0"),
    ],
    ids=" ".join,
)
def test_a_host_is_refused_everything_else(broker, all_powerful, words):
    with (
        redis.Redis.from_url(url_of(broker, "sim-a")) as client,
        pytest.raises(redis.exceptions.NoPermissionError),
    ):
        client.execute_command(*words)


def test_a_stranger_without_a_password_is_let_in_nowhere(broker):
    with (
        redis.Redis.from_url(f"redis://{broker}/0") as client,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        client.ping()


def test_a_script_of_a_host_reaches_no_other_key_either(broker, all_powerful):
    all_powerful.set("secret", "x")
    with redis.Redis.from_url(url_of(broker, "sim-a")) as client:
        script = client.script_load("return redis.call('get', 'secret')")
        with pytest.raises(redis.exceptions.ResponseError):
            client.evalsha(script, 0)


def test_a_real_worker_hears_a_nudge_with_these_rights(broker, all_powerful, tmp_path):
    sim = SimHost(tmp_path)
    try:
        with (
            ControlPlaneDouble(sim.name) as plane,
            Celery(broker=url_of(broker, "berth")) as sender,
        ):
            plane.settings = HostSettings(mode="enforce", managed=tuple(sim.uuids), sample_s=3600)
            worker = sim.worker(plane.url, redis_url=url_of(broker, "sim-a"))
            log = sim.root / "worker.log"
            until(lambda: " ready." in log.read_text(), limit_s=30)
            until(lambda: not sim.gate().group_open, limit_s=30)
            plane.grants = (grant(sim.uuids[0], "alice"),)
            prefix = wire.host_key_prefix(sim.name)
            sender.conf.broker_transport_options = {"global_keyprefix": prefix}

            sender.send_task(wire.NUDGE, queue=wire.host_queue(sim.name), ignore_result=True)

            until(lambda: sim.granted("alice"))
            worker.terminate()
            assert worker.wait(30) == 0
    finally:
        sim.close()
    assert refusals(all_powerful) == []
    # What a worker leaves behind is its own.
    assert all(key.startswith(prefix.encode()) for key in all_powerful.keys("*"))


def test_a_message_that_a_worker_died_over_is_given_back_with_these_rights(broker, all_powerful):
    queue = wire.host_queue("sim-a")
    options = {"global_keyprefix": wire.host_key_prefix("sim-a"), "visibility_timeout": 0}

    def connect() -> Connection:
        return Connection(url_of(broker, "sim-a"), transport_options=options)

    with connect() as dying:
        dying.SimpleQueue(queue).put({"nudge": 1})
        lost = dying.SimpleQueue(queue).get(timeout=5)
        assert lost.payload == {"nudge": 1}
        with connect() as next_one:
            next_one.default_channel.qos.restore_visible(num=10)
            found = next_one.SimpleQueue(queue).get(timeout=5)
            found.requeue()
            next_one.SimpleQueue(queue).get(timeout=5).ack()

    assert found.payload == {"nudge": 1}
    assert refusals(all_powerful) == []
