"""Takes a picture of ComfyUI's page with a workflow that was run from it: opens the page of a
running server in chromium, loads the workflow, presses its button Run, and waits for the image.

usage: screenshot.py ADDRESS WORKFLOW.json FILE.png

ADDRESS is what ComfyUI prints as "To see the GUI go to", WORKFLOW.json was written by "Export
(API)" of its menu. Needs chromium, and aiohttp, which ComfyUI needs, too.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import pathlib
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

SIZE = (1280, 800)
SETTLE = 6  # seconds until the view has moved and messages are gone
START = 120  # seconds until the page is drawn
RUN = 900  # seconds for the workflow: the first compiles kernels

BUTTON = "document.querySelector('[data-testid=\"queue-button\"]')"
DIALOG = "document.querySelector('[role=\"dialog\"]')"
# The page begins with a workflow of its own, which must not come after ours, or with a greeting.
READY = f"""Boolean(window.app?.vueAppReady && {BUTTON}
    && (app.graph.nodes.length || {DIALOG}))"""
LOAD = """(async () => {
    window.ended = window.made = null;
    const on = (name, act) => app.api.addEventListener(name, (event) => act(event.detail));
    on("execution_success", () => ended ??= "success");
    on("execution_error", (why) => ended ??= `${why.node_type}: ${why.exception_message}`);
    on("execution_interrupted", () => ended ??= "interrupted");
    on("executed", (node) => made ??= node.output?.images);
    const queue = app.api.queuePrompt;
    app.api.queuePrompt = (...rest) => queue.apply(app.api, rest).catch((why) => {
        ended ??= `refused: ${JSON.stringify(why.response ?? why.message)}`;
        throw why;
    });
    await app.loadApiJson(NODES, "workflow");
    // The seed that is shown is to be the one that ran.
    for (const node of app.graph.nodes)
        for (const widget of node.widgets ?? [])
            if (widget.name == "control_after_generate") widget.value = "fixed";
})()"""
CENTRE = f"""(() => {{
    const box = {BUTTON}.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
}})()"""
SHOWN = """app.graph.nodes.some((node) =>
    node.constructor.nodeData?.output_node && node.imgs?.[0]?.naturalWidth)"""
DISMISS = 'document.querySelector("[data-testid=error-overlay-dismiss]")?.click()'
# Columns as loadApiJson makes them, narrower and nearer, so that their texts can be read. The view
# is fitted to boxes that the next frame computes.
ARRANGE = """(async () => {
    const columns = new Map();
    for (const node of app.graph.nodes)
        columns.set(node.pos[0], [...(columns.get(node.pos[0]) ?? []), node]);
    let x = 0;
    for (const start of [...columns.keys()].sort((a, b) => a - b)) {
        let y = 0, width = 0;
        for (const node of columns.get(start)) {
            const least = node.computeSize();
            if (node.constructor.nodeData?.output_node) node.setSize([320, 380]);
            else node.setSize([Math.min(node.size[0], 270), Math.min(node.size[1], least[1] + 80)]);
            node.pos = [x, y];
            y += node.size[1] + 60;
            width = Math.max(width, node.size[0]);
        }
        x += width + 40;
    }
    app.canvas.setDirty(true, true);
    await new Promise((resolve) => setTimeout(resolve, 500));
    await app.extensionManager.command.execute("Comfy.Canvas.FitView");
})()"""


class Page:
    """A tab of chromium, steered by its remote debugging protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket, self.calls = socket, 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.calls += 1
        await self.socket.send_json({"id": self.calls, "method": method, "params": parameters})
        while True:
            answer = await self.socket.receive_json()
            if answer.get("id") == self.calls:  # others are events
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    async def run(self, script: str) -> Any:
        """The value of JavaScript; promises are waited for."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = await self.call("Runtime.evaluate", expression=script, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"the page: {json.dumps(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    async def until(self, condition: str, seconds: float) -> Any:
        """Its value, as soon as that is true."""
        async with asyncio.timeout(seconds):
            while not (value := await self.run(condition)):
                await asyncio.sleep(0.2)
        return value

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            point = {"x": x, "y": y, "button": "left", "clickCount": 1}
            await self.call("Input.dispatchMouseEvent", type=kind, **point)

    async def close_dialogs(self) -> None:
        key = {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27}
        for _ in range(5):
            if not await self.run(f"Boolean({DIALOG})"):
                return
            for kind in ("rawKeyDown", "keyUp"):
                await self.call("Input.dispatchKeyEvent", type=kind, **key)
            await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def opened(address: str) -> AsyncIterator[Page]:
    """The page in a chromium of its own, without a window."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        options += ["--remote-debugging-port=0", f"--user-data-dir={profile}"]
        options += [f"--window-size={SIZE[0]},{SIZE[1]}", "about:blank"]
        quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
        process = await asyncio.create_subprocess_exec("chromium", *options, **quiet)
        try:
            port = await debugging_port(pathlib.Path(profile))
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = await answer.json(content_type=None)
                tab = next(tab for tab in tabs if tab["type"] == "page")
                where, limits = tab["webSocketDebuggerUrl"], {"max_msg_size": 0}
                async with session.ws_connect(where, **limits) as socket:
                    page = Page(socket)
                    sizes = {"width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1}
                    await page.call("Emulation.setDeviceMetricsOverride", mobile=False, **sizes)
                    await page.call("Page.navigate", url=address)
                    yield page
        finally:
            process.terminate()
            await process.wait()


async def debugging_port(profile: pathlib.Path) -> int:
    """What chromium chose and wrote into its profile."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(FileNotFoundError, IndexError):
                return int((profile / "DevToolsActivePort").read_text().splitlines()[0])
            await asyncio.sleep(0.1)


async def take(address: str, nodes: dict[str, Any], file: pathlib.Path) -> list[dict[str, str]]:
    """Runs the workflow from the page; the names of its images, as the server knows them."""
    async with opened(address) as page:
        await page.until(READY, START)
        await page.close_dialogs()
        await page.run(LOAD.replace("NODES", json.dumps(nodes)))
        await page.run(ARRANGE)  # images of nodes out of sight are not loaded
        await page.click(*await page.run(CENTRE))
        how = await page.until("ended", RUN)
        if how != "success":
            raise RuntimeError(f"the workflow failed: {how}")
        images = await page.run("made")
        await page.until(SHOWN, START)
        await page.run(DISMISS)  # complaints about the page's own workflow
        await asyncio.sleep(SETTLE)
        picture = await page.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(picture["data"]))
    return images


def main() -> None:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("address")
    p.add_argument("workflow", type=pathlib.Path)
    p.add_argument("file", type=pathlib.Path)
    options = p.parse_args()
    nodes = json.loads(options.workflow.read_text())
    for image in asyncio.run(take(options.address, nodes, options.file)):
        print(image["filename"])


if __name__ == "__main__":
    sys.exit(main())
