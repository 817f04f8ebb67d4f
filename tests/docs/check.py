"""Opens the documentation in a headless browser: every page shows its heading, every link leads to
a page and a place that there are.

usage: check.py SITE BROWSER [PAGE...]; the pages opened are those of index.html's menu and the ones
named, links are checked of all.
"""

from __future__ import annotations

import concurrent.futures
import functools
import html.parser
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

# What the site is for: a page, and words that it has to show.
EXPECTED = {
    "index.html": ("Using it", "Reference", "C ABI and C++ API"),
    "README.html": ("When not to use it", "What works where"),
    "src/base/SETTINGS.html": ("OCLTENSOR_ENABLE_FALLBACK", "OCLTENSOR_DISABLED_PROVIDERS"),
    "operators.html": ("softmax", "_fft_c2c.out", "conv"),
    "plugin/torch/OPERATORS.html": ("forward float32",),
    "autoapi/torch_ocl/ocl/index.html": ("memory_allocated", "synchronize", "warmup"),
    "autoapi/torch_ocl/backends/index.html": ("benchmark_limit", "operations_disabled"),
    "cpp/index.html": ("C ABI and C++ API",),
    "cpp/plugin_8h.html": ("tb_operator_api", "TB_UNSUPPORTED", "the only thing the two share"),
    "cpp/classocltensor_1_1Tensor.html": ("ocltensor::Tensor",),
    "cpp/ops_8h.html": ("_softmax", "addmm_out"),
    "CONTRIBUTING.html": ("A pointwise operator",),
    "CHANGELOG.html": ("0.2.0",),
}
LEAST_PAGES = 100


class Page(html.parser.HTMLParser):
    """Links and places of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {k: v or "" for k, v in attrs}
        self.places.update(values[k] for k in ("id", "name") if k in values)
        for key in ("href", "src"):
            if key in values:
                self.links.append(values[key])


def check_links(site: pathlib.Path) -> list[str]:
    pages = {f.relative_to(site): Page(f.read_text(errors="replace")) for f in site.rglob("*.html")}
    problems = [] if len(pages) >= LEAST_PAGES else [f"only {len(pages)} pages"]
    for name, page in pages.items():
        for link in set(page.links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data", "javascript"):
                if parts.hostname and parts.hostname.endswith(".invalid"):
                    problems.append(f"{name}: {link}")
                continue
            path = urllib.parse.unquote(parts.path)
            target = pathlib.Path(os.path.normpath(name.parent / path)) if path else name
            if not (site / target).is_file():
                problems.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages:
                place = urllib.parse.unquote(parts.fragment)
                if place not in pages[target].places and place not in ("", "top"):
                    problems.append(f"{name}: {link}: there is no such place")
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")
    return problems


class Quiet(http.server.SimpleHTTPRequestHandler):
    missing: list[str] = []

    def log_message(self, *arguments: object) -> None:
        pass

    def send_error(self, code: int, *arguments: object, **more: object) -> None:
        self.missing.append(f"{code}: {self.path}")
        super().send_error(code, *arguments, **more)


def opened(browser: str, address: str) -> str:
    """The page's text after its scripts have run."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]
        command += [
            f"--user-data-dir={profile}",
            "--virtual-time-budget=2000",
            "--dump-dom",
            address,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", "", done.stdout, flags=re.S)


def check_pages(site: pathlib.Path, browser: str) -> list[str]:
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}/"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda page: opened(browser, base + page), EXPECTED))
        found = opened(browser, f"{base}search.html?q=watermark")
    server.shutdown()
    problems = [
        f"the browser was refused {what}" for what in Quiet.missing if "favicon" not in what
    ]
    for (page, words), text in zip(EXPECTED.items(), texts, strict=True):
        problems += [
            f"{page} does not show '{w}'" for w in words if html.escape(w, quote=False) not in text
        ]
    if "SETTINGS" not in found and "Settings" not in found:
        problems.append("the search for 'watermark' does not find the settings")
    print(f"{len(EXPECTED)} pages and a search opened with {browser}")
    return problems


def main() -> None:
    site = pathlib.Path(sys.argv[1]).resolve()
    problems = check_links(site)
    if len(sys.argv) > 2:
        problems += check_pages(site, sys.argv[2])
    if problems:
        sys.exit("\n".join(problems[:60]))


if __name__ == "__main__":
    main()
