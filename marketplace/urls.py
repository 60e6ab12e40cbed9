"""Every address of the site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path, re_path

from marketplace.views import (
    accuracy,
    compare,
    evaluating,
    evidence,
    evidence_index,
    health,
    learn,
    listing,
    listings,
    metrics,
    plans,
    saved,
    scaling,
    shortlist,
    status,
    workload,
)

admin.autodiscover()

urlpatterns = [
    path("", shortlist.shortlist, name="shortlist"),
    path("compare/", compare.compare, name="compare"),
    path("saved/", saved.saved, name="saved"),
    path("saved/<int:saved_id>/", saved.one, name="saved_one"),
    path("saved/<int:saved_id>/change/", saved.change, name="saved_change"),
    path("shared/<str:token>/", saved.shared, name="shared"),
    path("workloads/", shortlist.pasted, name="workloads"),
    path("workloads/memory/", workload.workload, name="workload"),
    path("evaluations/", evaluating.ask, name="ask_evaluation"),
    path("evaluations/<int:evaluation_id>/", evaluating.evaluation, name="evaluation"),
    path("evaluations/<int:evaluation_id>/cancel/", evaluating.cancel, name="cancel_evaluation"),
    re_path(r"^plans/?$", plans.plans, name="plans"),
    path("listings/", listings.listings, name="listings"),
    path("listings/<int:listing_id>/", listing.listing, name="listing"),
    path("listings/<int:listing_id>/evidence/", evidence.paste, name="paste"),
    path("listings/<int:listing_id>/evidence/keep/", evidence.confirm, name="confirm"),
    re_path(r"^evidence/?$", evidence_index.index, name="evidence_index"),
    path("evidence/listings/<int:listing_id>/", scaling.scaling, name="scaling"),
    path("evidence/<int:evidence_id>/", evidence.evidence, name="evidence"),
    path("evidence/<int:evidence_id>/take-back/", evidence.take_back, name="take_back"),
    path("evidence/machines/<int:machine_id>/changed/", evidence.changed, name="changed"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    re_path(r"^status/?$", status.status, name="status"),
    path("status/runs/<int:run_id>/", status.quarantine, name="quarantine"),
    re_path(r"^accuracy/?$", accuracy.accuracy, name="accuracy"),
    path("api/v1/status", metrics.status_json, name="status_json"),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    re_path(r"^learn/?$", learn.learn, name="learn"),
    re_path(r"^glossary/?$", learn.glossary, name="glossary"),
    path("admin/", admin.site.urls),
]

handler400 = "marketplace.views.errors.bad_request"
handler403 = "marketplace.views.errors.not_open"
handler404 = "marketplace.views.errors.not_found"
handler500 = "marketplace.views.errors.broken"
