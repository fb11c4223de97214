"""`manage.py token USER --scopes book`: a personal token for scripts. The last line is the token alone."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reservations import clock
from reservations.core.errors import Invalid
from reservations.models import User
from reservations.services.actors import COMMAND_LINE
from reservations.services.tokens import SCOPES, issue_token


class Command(BaseCommand):
    help = "Make a personal token. It is shown once; only its SHA-256 is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="username")
        parser.add_argument(
            "--scopes", default="book", help=f"one or several of {', '.join(SCOPES)}, with commas"
        )
        parser.add_argument("--name", default="made on the command line")
        parser.add_argument("--expires-days", type=int, help="default: never")

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["user"]).first()
        if person is None:
            raise CommandError(f"There is nobody called {options['user']!r}.")
        days, now = options["expires_days"], clock.now()
        try:
            _, secret = issue_token(
                person,
                name=options["name"][:100],
                scopes=[word.strip() for word in options["scopes"].split(",") if word.strip()],
                actor=COMMAND_LINE,
                now=now,
                expires_at=None if days is None else now + timedelta(days=days),
            )
        except (Invalid, OverflowError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(secret)
