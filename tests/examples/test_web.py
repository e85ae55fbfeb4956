"""The services in FastAPI and Flask, started as their READMEs say, asked over HTTP."""

import re
from pathlib import Path

from tests.support.documents.examples import Example


def test_fastapi_with_two_processes_and_the_dashboard_below_a_path(sqlite_url: str, tmp_path: Path) -> None:
    with Example("fastapi", tmp_path, {"ROTA_DATABASE_URL": sqlite_url}) as service:
        server = service.start("uvicorn web:web")
        run = service.ask("POST", "/thumbnails", params={"picture": "cat"}).json()["run"]
        assert service.until_told(f"/thumbnails/{run}", "result") == {"file": "cat.small.png"}
        assert service.ask("GET", "/thumbnails/ffffffff").status_code == 404

        page = service.ask("GET", "/jobs/")
        assert '<base href="/jobs/" />' in page.text
        (script,) = re.findall(r'<script type="module"[^>]* src="\./([^"]+)"', page.text)
        assert "javascript" in service.ask("GET", f"/jobs/{script}").headers["content-type"]
        assert service.ask("GET", f"/jobs/api/v1/runs/{run}").json()["state"] == "succeeded"
        names = [one["name"] for one in service.ask("GET", "/jobs/api/v1/schedules").json()["items"]]
        assert names == ["sweep"]  # declared by both processes, once

        server.terminate()
        assert server.wait() == 0


def test_flask_with_a_worker_of_its_own(sqlite_url: str, tmp_path: Path) -> None:
    with Example("flask", tmp_path, {"ROTA_DATABASE_URL": sqlite_url}) as service:
        service.start("flask --app web run")
        service.start("rota worker web:jobs")
        run = service.ask("POST", "/greetings/Ada").json()["run"]
        assert service.until_told(f"/greetings/{run}", "result") == "hello, Ada"
        assert service.ask("GET", "/greetings/ffffffff").status_code == 404


def test_the_shop_whose_orders_and_runs_are_one_commit(new_postgres_url: str, tmp_path: Path) -> None:
    with Example("shop", tmp_path, {"ROTA_DATABASE_URL": new_postgres_url}) as service:
        service.run("rota migrate")
        service.start("uvicorn shop:web")
        service.start("rota worker shop:jobs")
        paid, refused = [
            service.ask("POST", "/orders", json={"email": "ada@example.com", "total": total}).json()["order"]
            for total in ("12.50", "2000")
        ]
        service.until_told(f"/orders/{paid}", "work", "succeeded")
        assert service.ask("GET", f"/orders/{paid}").json()["state"] == "shipped"
        service.until_told(f"/orders/{refused}", "state", "refused")


def test_the_shops_own_tests(new_postgres_url: str, tmp_path: Path) -> None:
    with Example("shop", tmp_path, {"ROTA_DATABASE_URL": new_postgres_url}) as service:
        told = service.run("pytest --rota-database", "--rota-database", new_postgres_url, "-p", "no:cacheprovider")
        assert "3 passed" in told
