"""``berth-host top`` and ``smi``: for everybody on the host, without root, configuration or network."""

import argparse
import os
import sys
from pathlib import Path

from workers.host import clock, public, smi, top
from workers.host.config import RUN_DIR


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    one = commands.add_parser("top", help="the devices of this host, who has them, until when")
    one.add_argument("--once", action="store_true", help="print them and leave")
    one.add_argument("--run-dir", help="where the agent writes [$BERTH_RUN_DIR or /run/berth]")
    one.set_defaults(run=watch)
    one = commands.add_parser("smi", help="the same for scripts, in the words of nvidia-smi")
    one.add_argument("--format", required=True, metavar="csv[,noheader][,nounits]")
    asked = one.add_mutually_exclusive_group()
    asked.add_argument("--query-gpu", metavar="FIELD,…", default=smi.DEFAULT_FIELDS)
    asked.add_argument("--query-compute-apps", metavar="FIELD,…")
    one.add_argument("--run-dir", help="where the agent writes [$BERTH_RUN_DIR or /run/berth]")
    one.set_defaults(run=query)


def watch(options: argparse.Namespace) -> int:
    """1 when there is nothing to show, or it is old."""
    try:
        return top.show(_folder(options), once=options.once, wall=clock.wall)
    except public.Unavailable as error:
        return _complain(error, 1)


def query(options: argparse.Namespace) -> int:
    """1 when there is no answer, 2 when the question is wrong."""
    try:
        how = smi.read_format(options.format)
        content, age_s = public.read(_folder(options), now=clock.wall())
        if options.query_compute_apps:
            answer = smi.processes(content, options.query_compute_apps, how)
        else:
            answer = smi.devices(content, options.query_gpu, how)
    except smi.WrongQuestion as error:
        return _complain(error, 2)
    except public.Unavailable as error:
        return _complain(error, 1)
    if age_s > content.stale_after_s:
        return _complain(f"the data is {age_s:.0f} s old: the agent does not run", 1)
    sys.stdout.write(answer)
    return 0


def _folder(options: argparse.Namespace) -> Path:
    return Path(options.run_dir or os.environ.get("BERTH_RUN_DIR") or RUN_DIR)


def _complain(words: object, status: int) -> int:
    sys.stderr.write(f"berth-host: {words}\n")
    return status
