"""Test the page of Django's admin in a generated project: lists, shows, cancels and retries, by permission."""

from pathlib import Path

from tests.django.test_django import database_at, run_in_project

CASES = """
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import path
from rota.core.states import RunState
from rota.testing import drain

call_command("migrate", verbosity=0)
admin.autodiscover()
urlpatterns = [path("admin/", admin.site.urls)]


@app.job(max_attempts=1)
def pay(amount: int, api_key: str) -> int:
    if amount < 0:
        raise ValueError(f"<b>the bank refused {api_key}</b>")
    return amount


failed, waiting = pay.enqueue(amount=-1, api_key="s3cret-key"), None
drain(app)
waiting = pay.options(delay="1h").enqueue(amount=2, api_key="s3cret-key")


def browser(name, *permissions):
    user = User.objects.create_user(name, password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="rota", codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def page(client, address, expected=200, **form):
    answer = client.post(address, form) if form else client.get(address)
    assert answer.status_code == expected, (address, answer.status_code, answer.content)
    return answer.content.decode()


nobody, viewer, changer = browser("nobody"), browser("viewer", "view_run"), browser("changer", "view_run", "change_run")
runs, one = "/admin/rota/run/", f"/admin/rota/run/{failed.id}/change/"
page(nobody, runs, 403)
page(nobody, one, 403)
assert "/admin/rota/run/" in page(viewer, "/admin/")
assert page(viewer, runs).count("/change/") == 2
text = page(viewer, runs + "?state=failed&job=pay")
assert failed.id in text and waiting.id not in text
assert "No runs" in page(viewer, runs + "?job=nothing")
text = page(viewer, one)
assert "ValueError" in text and "s3cret-key" not in text and "&lt;b&gt;the bank" in text and 'name="retry"' not in text
page(viewer, one, 403, retry="1")
page(viewer, "/admin/rota/run/01980000-0000-7000-8000-000000000000/change/", 404)
page(viewer, "/admin/rota/run/add/", 404)
page(changer, f"/admin/rota/run/{waiting.id}/change/", 302, cancel="1")
assert waiting.status() is RunState.CANCELLED
assert [event.actor for event in app.blocking.events(waiting.id)][-1] == "django:changer"
page(changer, one, 302, retry="1")
again = app.blocking.list(limit=1)[0]
assert again.retry_of == failed.id, again
assert 'name="cancel"' in page(changer, f"/admin/rota/run/{again.id}/change/")
page(changer, one, 302, cancel="1")  # from a page that is no longer true
assert "is failed already and cannot be cancelled" in page(changer, one)
app.close()
"""
APPS = ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.messages"]
CONTRIB = "django.contrib.{}.middleware.{}Middleware"


def run_cases(folder: Path, database: dict[str, object]) -> None:
    processors = ["django.template.context_processors.request"]
    processors += [f"django.contrib.{name}.context_processors.{name}" for name in ("auth", "messages")]
    run_in_project(
        CASES,
        folder,
        DATABASES={"default": database},
        INSTALLED_APPS=[*APPS, "django.contrib.sessions", "rota.django"],
        MIDDLEWARE=[
            CONTRIB.format("sessions", "Session"),
            CONTRIB.format("auth", "Authentication"),
            CONTRIB.format("messages", "Message"),
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": processors},
            }
        ],
        ROOT_URLCONF="__main__",
        SECRET_KEY="x" * 50,
        ALLOWED_HOSTS=["testserver"],
        STATIC_URL="static/",
        SILENCED_SYSTEM_CHECKS=[],
    )


def test_the_admin_page_on_postgres(new_postgres_url: str, tmp_path: Path) -> None:
    run_cases(tmp_path, database_at(new_postgres_url))


def test_the_admin_page_on_sqlite(tmp_path: Path) -> None:
    run_cases(tmp_path, {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")})
