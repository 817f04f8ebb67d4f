"""Puts an installed tree together with the package's Python files to a wheel, with what
pyproject.toml says of it."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import shutil
import sys
import zipfile

import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[1]
LICENCE = PROJECT.parents[1] / "LICENSE"


def torch_requirement(tree: pathlib.Path) -> str:
    """The torches that the modules of a tree are for, so that pip takes no other along:
    "torch>=2.11,<2.14,!=2.12.*"."""
    names = " ".join(file.name for file in tree.glob("torch_ocl/_C_torch*.so"))
    found = re.findall(r"_C_torch(\d)(\d+)\.", names)
    if not found:
        sys.exit(f"there is no module for any torch in {tree}")
    major, minors = found[0][0], {int(minor) for _, minor in found}
    first, last = min(minors), max(minors)
    holes = "".join(f",!={major}.{m}.*" for m in range(first, last) if m not in minors)
    return f"torch>={major}.{first},<{major}.{last + 1}{holes}"


def metadata(project: dict) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {c}" for c in project["classifiers"]),
        *(f"Requires-Dist: {d}" for d in project["dependencies"]),
        "License-File: LICENSE",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (PROJECT / "README.md").read_text()


def write_info(project: dict, info: pathlib.Path, tags: list[str]) -> None:
    info.mkdir()
    (info / "METADATA").write_text(metadata(project))
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: torch_ocl\nRoot-Is-Purelib: false\n"
        + "".join(f"Tag: {tag}\n" for tag in tags)
    )
    groups = project["entry-points"].items()
    (info / "entry_points.txt").write_text(
        "".join(f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items()) for g, e in groups)
    )
    shutil.copy(LICENCE, info)


def pack(
    tree: pathlib.Path, folder: pathlib.Path, pythons: list[str], platform: str
) -> pathlib.Path:
    """The wheel, in `folder`, of a tree that `cmake --install --component torch` has made.

    `pythons` are pairs like "cp311-cp311"; `platform` is the last part of the tags.
    """
    shutil.copytree(
        PROJECT / "torch_ocl",
        tree / "torch_ocl",
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    others = [d for d in project["dependencies"] if not re.match(r"torch\b", d)]
    project["dependencies"] = [torch_requirement(tree), *others]
    info = tree / f"{project['name']}-{project['version']}.dist-info"
    write_info(project, info, [f"{python}-{platform}" for python in pythons])
    interpreters, abis = zip(*(python.split("-") for python in pythons))
    tag = "-".join([".".join(dict.fromkeys(interpreters)), ".".join(dict.fromkeys(abis)), platform])
    wheel = folder / f"{project['name']}-{project['version']}-{tag}.whl"
    record = ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(f for f in tree.rglob("*") if f.is_file()):
            name = file.relative_to(tree)
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
            record += f"{name},sha256={digest.decode().rstrip('=')},{file.stat().st_size}\n"
            archive.write(file, name)
        archive.writestr(f"{info.name}/RECORD", f"{record}{info.name}/RECORD,,\n")
    return wheel
