"""Builds the documentation, or opens it; exit status 77 where a tool is missing.

usage: docs.py build PYTHON SITE CONFORMANCE    PYTHON has the packages of src/docs/requirements.txt
       docs.py pages SITE
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def skip(what: str) -> None:
    print(f"SKIPPED: {what}")
    sys.exit(77)


def main() -> None:
    if sys.argv[1] == "build":
        python, site, conformance = sys.argv[2:5]
        if not pathlib.Path(python).exists():
            skip(f"there is no {python} with the packages of src/docs/requirements.txt")
        if not shutil.which("doxygen"):
            skip("there is no doxygen")
        command = [python, ROOT / "src/docs/build.py", site, conformance]
    else:
        site = sys.argv[2]
        browser = next((b for b in BROWSERS if shutil.which(b)), "")
        if not pathlib.Path(site, "index.html").exists():
            skip(f"there is no documentation in {site}")
        if not browser:
            skip(f"there is none of {', '.join(BROWSERS)}")
        command = [sys.executable, ROOT / "tests/docs/check.py", site, browser]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
