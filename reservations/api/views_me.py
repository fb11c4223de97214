"""The person who asks."""

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from reservations import clock
from reservations.api.answers import answer
from reservations.api.auth import scopes_of
from reservations.api.base import ApiView, person_of, query_of
from reservations.api.schema import problems
from reservations.api.serializers import NoBody
from reservations.api.shapes import MeSerializer
from reservations.models import Membership
from reservations.selectors.standing import limits_left
from reservations.services.tokens import SCOPES


class MeView(ApiView):
    @extend_schema(
        operation_id="read_me",
        summary="Who am I, what may I do, how much is left",
        responses={200: MeSerializer, **problems()},
    )
    def get(self, request: Request) -> HttpResponse:
        query_of(request, NoBody)
        me, allowed = person_of(request), scopes_of(request)
        memberships = Membership.objects.filter(user=me).select_related("team")
        return answer(
            {
                "id": me.pk,
                "username": me.username,
                "name": me.name,
                "email": me.email,
                "kind": me.kind,
                "is_operator": me.is_operator,
                "time_zone": me.time_zone or settings.SITE_TIME_ZONE,
                "locale": me.locale,
                "teams": [
                    {"name": one.team.name, "manager": one.is_manager}
                    for one in memberships.order_by("team__name")
                ],
                "scopes": [scope for scope in SCOPES if scope in allowed],
                "limits": limits_left(me, now=clock.now()),
            }
        )
