"""WSGI entry point. It refuses to start on a mistake that a system check would report."""

import os

from django.core.wsgi import get_wsgi_application

from marketplace.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")

application = get_wsgi_application()
refuse_unsafe_start()
