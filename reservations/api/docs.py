"""The schema, and the pages that browse it. They need no network and no inline script or style."""

from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, as YAML or, with ``Accept: application/json``, as JSON."""

    authentication_classes = []
    permission_classes = [AllowAny]


class DocsView(SpectacularSwaggerSplitView):
    authentication_classes = []
    permission_classes = [AllowAny]
    template_name = "reservations/api_docs.html"
    url_name = "api-schema"
