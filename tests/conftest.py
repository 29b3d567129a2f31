"""What every test shares: an installation of its own, made before Django reads its settings."""

import os
import tempfile

import django
from hypothesis import settings

# A busy machine is no reason to fail; and what CI says of a change must not depend on luck.
settings.register_profile("facho", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("facho")

os.environ["FACHO_DATA_DIR"] = tempfile.mkdtemp(prefix="facho-tests-")
os.environ["FACHO_SECRET_KEYS"] = "dGVzdHMgb25seTogMzIgYnl0ZXMgb2Ygbm8gc2VjcmU="
os.environ["DJANGO_SETTINGS_MODULE"] = "facho.runtime.settings"
django.setup()
