"""Only what the example needs; `django-admin startproject` writes the rest."""

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only for trying it out")
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "project.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop", "rota.django"]

if "SHOP_DATABASE" in os.environ:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["SHOP_DATABASE"],
            "USER": os.environ.get("SHOP_USER", ""),
            "PASSWORD": os.environ.get("SHOP_PASSWORD", ""),
            "HOST": os.environ.get("SHOP_HOST", ""),
            "PORT": os.environ.get("SHOP_PORT", ""),
        }
    }
else:
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "db.sqlite3"}}
