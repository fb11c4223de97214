"""Where a booking could go."""

from datetime import timedelta

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from reservations import clock
from reservations.api.answers import answer
from reservations.api.base import ApiView, query_of
from reservations.api.schema import problems
from reservations.api.serializers import SlotsQuery, filter_of
from reservations.api.shapes import SlotListSerializer
from reservations.core.errors import Invalid
from reservations.services import placing
from reservations.services.wishes import FARTHEST, Wish


class SlotsView(ApiView):
    @extend_schema(
        operation_id="find_slots",
        summary="The earliest free slots for some devices, best first",
        parameters=[SlotsQuery],
        responses={200: SlotListSerializer, **problems({422: "`refused`: too few devices fit"})},
    )
    def get(self, request: Request) -> HttpResponse:
        query = query_of(request, SlotsQuery)
        now = clock.now()
        duration = timedelta(seconds=query["duration_s"])
        after = max(query.get("after", now), now)
        if after - now > FARTHEST or duration > FARTHEST:
            raise Invalid({"after": [f"Slots are looked for within {FARTHEST.days} days."]})
        wish = Wish(count=query["count"], filter=filter_of(query), duration=duration)
        choice = placing.choice_of(wish)
        found = placing.free_slots(choice, duration, after=after, limit=query["limit"])
        return answer({"results": found, "next": None})
