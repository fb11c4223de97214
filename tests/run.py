"""`make test`: the whole suite, on SQLite and then, where the database matters, on PostgreSQL.

`--fast` runs what needs no browser, no worker processes and no second database.
"""

import os
import subprocess
import sys
from pathlib import Path

ON_BOTH_DATABASES = [
    "tests/models",
    "tests/services",
    "tests/api",
    "tests/race",
    "tests/test_bench.py",
]
SLOW_PARTS = "not stack and not browser and not slow and not db_race and not gpu"


def pytest(*arguments: str, **environment: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    print(
        f"\n$ {' '.join(f'{k}={v}' for k, v in environment.items())} pytest {' '.join(arguments)}",
        flush=True,
    )
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


def main() -> int:
    if "--fast" in sys.argv:
        return pytest("-m", SLOW_PARTS)
    # By name: what a folder means to `node --test` changed between Node 20 and 22.
    modules = sorted(str(path) for path in Path("tests/js").glob("*.test.js"))
    node = subprocess.run(["node", "--test", *modules], check=False).returncode
    first = pytest("-m", "not gpu", BERTH_TEST_DB="sqlite")
    second = pytest("-m", "not gpu", *ON_BOTH_DATABASES, BERTH_TEST_DB="postgres")
    return max(node, first, second)


if __name__ == "__main__":
    sys.exit(main())
