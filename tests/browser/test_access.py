"""Test tokens: created with a secret that is shown once, revoked, and hidden from others than admins."""

from playwright.async_api import Page, expect

from rota import Rota
from rota.values.scope import Scope
from tests.browser.conftest import Dashboard, served
from tests.browser.test_signin import sign_in


async def test_a_token_is_created_shown_once_and_revoked(dashboard: Dashboard, page: Page) -> None:
    await page.goto(f"{dashboard.url}/access")
    await page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog", name="New token")
    await dialog.get_by_label("Name").fill("ci")
    await dialog.get_by_label("Role").select_option("enqueue")
    await expect(dialog).to_contain_text("Enqueues runs")
    await dialog.get_by_label("Expires").fill("soon")
    await dialog.get_by_role("button", name="Create token").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("soon")
    await dialog.get_by_label("Expires").fill("30d")
    await dialog.get_by_label("Scope").fill("tenant/42")
    await dialog.get_by_role("button", name="Create token").click()
    shown = page.get_by_role("alertdialog", name="Secret of ci")
    secret = await shown.locator("code").inner_text()
    token = await dashboard.client.tokens.check(secret)
    assert token is not None
    assert (token.name, token.role, token.scope) == ("ci", "enqueue", Scope("tenant", "42"))
    await shown.get_by_role("button", name="Done").click()
    ci = page.get_by_role("table", name="Tokens").get_by_role("row").filter(has_text="ci")
    await expect(ci).to_contain_text("tenant/42")
    assert secret not in await page.content()
    await ci.get_by_role("button", name="Revoke ci").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    await expect(ci).to_contain_text("revoked")
    (stored,) = await dashboard.client.tokens.list()
    assert stored.revoked_at is not None


async def test_others_than_admins_see_no_token(sqlite_url: str, page: Page) -> None:
    async with served(Rota(sqlite_url, auth=True)) as dashboard:
        await sign_in(page, dashboard, "ada", "operator", "/access")
        await expect(page.get_by_text("Only admins see tokens")).to_be_visible()
        await expect(page.get_by_role("button", name="New token")).to_have_count(0)
