"""Makes Debian packages of a build tree: stages src/package/debian, with a changelog, and runs its
rules, which are debhelper's.

usage: debian.py BUILD OUT [COMPRESSION]

BUILD was configured for a multiarch library folder: with -DCMAKE_INSTALL_PREFIX=/usr, or with
-DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu. OUT gets the packages, and no others stay there.
The maintainer is DEBFULLNAME with DEBEMAIL, as for Debian's own tools.
"""

from __future__ import annotations

import email.utils
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As Ubuntu's 0ubuntu1: a package of Debian's own, which begins with 1, counts as newer.
REVISION = "0upstream1"


def cached(build: pathlib.Path, name: str) -> str:
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    if not found:
        sys.exit(f"{build} has no {name}: is it a build tree?")
    return found[1]


def version_of(build: pathlib.Path) -> str:
    """What is packaged before its release sorts before it, by a tilde."""
    upstream = cached(build, "CMAKE_PROJECT_VERSION")
    heading = re.search(
        rf"^## {re.escape(upstream)}\b(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    if not heading:
        sys.exit(f"CHANGELOG.md has no section {upstream}")
    return upstream + ("~dev" if "in development" in heading[1] else "")


def time_of_sources() -> int:
    """Seconds since 1970: the same sources make the same packages."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    command = ["git", "log", "-1", "--format=%ct"]
    committed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(committed.stdout or (ROOT / "CHANGELOG.md").stat().st_mtime)


def stage(folder: pathlib.Path, words: dict[str, str], version: str, time: int) -> None:
    """Copies the templates; @word@ is replaced in names and texts."""

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in (ROOT / "src/package/debian").iterdir():
        target = folder / filled(file.name)
        target.write_text(filled(file.read_text()))
        shutil.copymode(file, target)
    (folder / "changelog").write_text(
        f"ocltensor ({version}-{REVISION}) unstable; urgency=medium\n\n"
        f"  * Package of upstream's version {version}.\n\n"
        f" -- {words['maintainer']}  {email.utils.formatdate(time)}\n"
    )


def main() -> None:
    build, out = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    libdir = cached(build, "CMAKE_INSTALL_LIBDIR")
    if not re.fullmatch(r"lib/[\w-]+", libdir):
        sys.exit(f"{build} would install libraries to {libdir}: packages need lib/TRIPLET")
    version, time = version_of(build), time_of_sources()
    name = os.environ.get("DEBFULLNAME", "ocltensor maintainers")
    address = os.environ.get("DEBEMAIL", "maintainers@ocltensor.invalid")
    words = {
        "abi": ".".join(version.split("~")[0].split(".")[:2]),
        "libdir": libdir,
        "maintainer": f"{name} <{address}>",
    }
    work = out / "work"
    stage(work / "debian", words, version, time)
    for old in out.glob("*.deb"):
        old.unlink()
    environment = os.environ | {
        "BUILD": str(build),
        "SOURCE": str(ROOT),
        "OUT": str(out),
        "LIBDIR": libdir,
        "VERSION": version.split("~")[0],
        "COMPRESSION": sys.argv[3] if len(sys.argv) > 3 else "xz",
        "SOURCE_DATE_EPOCH": str(time),
        "DEB_BUILD_OPTIONS": "noautodbgsym",
    }
    done = subprocess.run(
        ["debian/rules", "binary"],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"debian/rules failed:\n{done.stdout}{done.stderr}")
    shutil.rmtree(work)
    print("\n".join(str(file) for file in sorted(out.glob("*.deb"))))


if __name__ == "__main__":
    main()
