"""How people sign in. Accounts are made by operators or an identity provider, never by a form."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest, HttpResponse

from reservations import clock
from reservations.models import User


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(
        self, request: HttpRequest, user: AbstractBaseUser, **login: Any
    ) -> HttpResponse | None:
        """Let nobody in whose account has expired."""
        expires_at = user.expires_at if isinstance(user, User) else None
        if expires_at is not None and expires_at <= clock.now():
            return self.respond_user_inactive(request, user)
        return super().pre_login(request, user, **login)
