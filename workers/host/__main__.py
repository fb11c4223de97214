import sys

try:
    from workers.host.cli import main
except ModuleNotFoundError as error:
    sys.exit(
        f"berth-host: {sys.executable} has no {error.name}, or you may not read it: make .venv beside bin/, "
        "and there pip install -r requirements-host.txt (docs/hosts.md)"
    )

sys.exit(main())
