"""The schema, and the pages that browse it. They need no network and no inline script or style."""

from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_page
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from reservations.api.throttling import PerMinute

# The schema takes half a second to make and is the same for everybody.
_KEPT_S = 300


@method_decorator(cache_page(_KEPT_S), name="dispatch")
class SchemaView(SpectacularAPIView):
    """OpenAPI 3, as YAML or, with ``Accept: application/json``, as JSON."""

    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [PerMinute]


class DocsView(SpectacularSwaggerSplitView):
    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = [PerMinute]
    template_name = "reservations/api_docs.html"
    url_name = "api-schema"
