"""Every address of the site."""

from django.contrib import admin
from django.urls import path, re_path

from marketplace.views import health, listing, listings, metrics, shortlist, status

urlpatterns = [
    path("", shortlist.shortlist, name="shortlist"),
    path("workloads/", shortlist.pasted, name="workloads"),
    path("listings/", listings.listings, name="listings"),
    path("listings/<int:listing_id>/", listing.listing, name="listing"),
    re_path(r"^status/?$", status.status, name="status"),
    path("status/runs/<int:run_id>/", status.quarantine, name="quarantine"),
    path("api/v1/status", metrics.status_json, name="status_json"),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
]
