"""Records the moving picture of README: walks through the dashboard of `rota dev`, and writes an animated WebP.

`python -m tools.moving_picture`, in the environment of the tests. The browser encodes the frames; equal ones are one.
"""

from __future__ import annotations

import asyncio
import base64
import struct
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page, ViewportSize

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "images" / "dashboard.webp"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from rota import Order, Rota  # noqa: E402
from tools.screenshots import enqueue_life, example, record_past, started_browser  # noqa: E402

SIZE = ViewportSize(width=1000, height=625)
_ENCODE = """async (png) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + png;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality: 0.75 });
    return btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())));
}"""

Frame = tuple[bytes, int]
"""A screenshot, and for how many milliseconds it is shown."""


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/rota.db"
        async with example(url) as address, started_browser() as browser:
            app = Rota(url)
            client = await app.connect()
            await record_past(client)
            await enqueue_life(client)
            await asyncio.sleep(30)
            page = await browser.new_page(viewport=SIZE, color_scheme="light", locale="en-GB")
            frames = await walk(page, address, app)
            encoder = await browser.new_page()
            encoded = [(await encode(encoder, png), shown) for png, shown in frames]
            await app.aclose()
    TARGET.write_bytes(animated(encoded, SIZE["width"], SIZE["height"]))
    print(f"{TARGET.relative_to(ROOT)}: {len(frames)} frames, {TARGET.stat().st_size // 1024} kB")


async def walk(page: Page, address: str, app: Rota) -> list[Frame]:
    """Look at the overview, a run while it works, the schedules and the timeline."""
    frames: list[Frame] = []

    async def look(shown: int, times: int = 1) -> None:
        for _ in range(times):
            await page.wait_for_timeout(shown)
            png = await page.screenshot()
            if frames and frames[-1][0] == png:
                frames[-1] = (png, frames[-1][1] + shown)
            else:
                frames.append((png, shown))

    async def visit(path: str) -> None:
        await page.goto(address + path)
        await page.locator("main h1").wait_for()
        await page.wait_for_function("() => !document.querySelector('.skeleton')")

    await visit("/")
    await look(1_000, 2)
    run = await (await app.connect()).enqueue(Order("import_catalog", {"pages": 30}))
    await visit("/runs")
    await look(1_000, 2)
    await visit(f"/runs/{run.id}")
    await look(700, 7)
    await visit("/schedules")
    await look(1_000, 2)
    await visit("/timeline?by=job&span=75")
    await look(1_200, 2)
    return frames


async def encode(page: Page, png: bytes) -> bytes:
    return base64.b64decode(await page.evaluate(_ENCODE, base64.b64encode(png).decode()))


def animated(frames: list[Frame], width: int, height: int) -> bytes:
    """Put WebP images into one container: RIFF, with a header, and a chunk for each frame."""
    size = _three(width - 1) + _three(height - 1)
    has_animation = struct.pack("<I", 2)
    parts = [_chunk(b"VP8X", has_animation + size), _chunk(b"ANIM", struct.pack("<IH", 0xFFFFFFFF, 0))]
    for webp, shown in frames:
        place = _three(0) * 2 + size + _three(shown)
        parts.append(_chunk(b"ANMF", place + b"\2" + _picture(webp)))  # 2: drawn over the frame before, not mixed
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _picture(webp: bytes) -> bytes:
    """Return the chunk with the pixels of a WebP file."""
    place = 12
    while place < len(webp):
        name, length = struct.unpack_from("<4sI", webp, place)
        if name in (b"VP8 ", b"VP8L"):
            return webp[place : place + 8 + length + length % 2]
        place += 8 + length + length % 2
    raise ValueError("the browser did not write a WebP")


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


if __name__ == "__main__":
    asyncio.run(main())
