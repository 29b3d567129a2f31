"""The web side of Facho as an ASGI application."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "facho.runtime.settings")

application = get_asgi_application()
