"""``make bench``: measure every part beside its reference, print one table, write ``bench/results.json``.

--only NAME   this part alone (may be given again); --list prints the names
--quick       fewer repeats on less data, within a minute: shows that all of it works

Only a full run writes the file.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench import figures
from bench.figures import Figure
from bench.part import PARTS
from bench.site import ROOT, Servers, servers_in

RESULTS = ROOT / "bench" / "results.json"


def main() -> int:
    options = _options()
    if options.list:
        print("\n".join(PARTS))
        return 0
    found: list[Figure] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name, servers_in(Path(name)) as site:
        for part in options.only or PARTS:
            measured = _run(part, site, Path(name), quick=options.quick)
            found += measured
            failed += [] if measured else [part]
    figures.print_table(found)
    if not (options.only or options.quick or failed):
        figures.write(found, RESULTS)
    if failed:
        print(f"\nnot measured: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _run(name: str, servers: Servers, folder: Path, *, quick: bool) -> list[Figure]:
    """The figures of one part; none if it failed, and then its output says why."""
    began = time.monotonic()
    print(f"{name} …", end=" ", flush=True)
    environment = servers.environment_of(name)
    command = [sys.executable, "-m", "bench.part", name, str(folder), *["--quick"] * quick]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    servers.drop(name)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        return []
    return msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=list[Figure])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Berth beside references.")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part alone")
    parser.add_argument("--quick", action="store_true", help="less of everything, in a minute")
    parser.add_argument("--list", action="store_true", help="print the names of the parts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
