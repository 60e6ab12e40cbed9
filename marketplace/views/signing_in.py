"""The door to what is kept for one person: pasted evidence, saved answers, own workloads."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import LoginView
from django.utils import timezone

from marketplace import standings


class SignIn(LoginView):
    """Django's own, with the status strip of every page."""

    redirect_authenticated_user = True

    def get_context_data(self, **given: Any) -> dict[str, Any]:
        return super().get_context_data(**given, strip=standings.strip(timezone.now()))
