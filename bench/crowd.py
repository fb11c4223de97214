"""``python -m bench.crowd PEOPLE DEVICES``: puts both into the database that the environment names.

Prints ``{"secrets": […], "devices": […]}``: a token of each person, and the UUIDs.
"""

import json
import sys

import django


def main(people: int, devices: int) -> None:
    django.setup()
    # Only now are there models.
    from bench import fill
    from bench.web import token

    secrets = [token(one) for one in fill.people(people)]
    print(json.dumps({"secrets": secrets, "devices": [one.uuid for one in fill.devices(devices)]}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
