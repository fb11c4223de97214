"""How people sign in. Accounts are made by operators or an identity provider, never by a form."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from reservations import clock
from reservations.models import User


class Backend(AuthenticationBackend):
    """Asked at sign-in and for every session, of pages, sockets and REST alike."""

    def user_can_authenticate(self, user: AbstractBaseUser | AnonymousUser | None) -> bool:
        return isinstance(user, User) and user.has_access(clock.now())


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def pre_login(
        self, request: HttpRequest, user: AbstractBaseUser, **login: Any
    ) -> HttpResponse | None:
        """Say why to somebody whose password is right and whose access is over."""
        if isinstance(user, User) and not user.has_access(clock.now()):
            return self.respond_user_inactive(request, user)
        return super().pre_login(request, user, **login)
