"""Builds the documentation as one site. usage: build.py OUT CONFORMANCE (with the packages of
requirements.txt, and doxygen)

Pages are Markdown files of the tree, each at its path, so that links between them stay right; the C
ABI and the C++ API are Doxygen's. Warnings of either generator are errors.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src/host/generate"))
import cpp_operators
import generate_ops

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "src/GLOSSARY.md",
    "src/base/SETTINGS.md",
    "src/docs/captures.md",
    "src/docs/compile.md",
    "src/docs/limits.md",
    "src/docs/quantised.md",
    "src/docs/scale_out.md",
    "src/docs/traces.md",
    "src/docs/tutorial.md",
    "src/docs/write_a_backend.md",
    "plugin/opencl/DEVICES.md",
    "plugin/torch/NAMES.md",
    "plugin/torch/STATE.md",
    "plugin/torch/OPERATORS.md",
    "plugin/torch/ERRORS.md",
    "bench/RESULTS.md",
    "bench/history.md",
)
# READMEs that are not pages of the site: those of vendored texts.
LEFT_OUT = ("third_party_notes/README.md",)
CPP_INTRO = """# C++ operators by topic

What the C++ API calls each operator of ATen. Arguments with a value may be left out, and every
function `f` has a form `f_out` that writes into given tensors. Methods, of a tensor `x`, have the
same arguments without `self`. Errors, statistics and settings use ATen's names. The
[tutorial](src/docs/tutorial.md) has examples.
"""
TYPES = ("bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64")
OPERATORS_INTRO = """# Operators and their types

Every operator of the C ABI with ATen's schema, by family, and the element types that it takes,
which are ATen's. A device without float64 [declines some](src/docs/limits.md); `./run conformance
--only NAME` tests each of these on a device, and counts what it declines with the reason. What
PyTorch's operators do, type by type: [OpInfo](plugin/torch/OPERATORS.md).
"""
# A stand-in address of Doxygen's pages, which Sphinx does not know; in Sphinx's output a relative
# one replaces it.
CPP = "https://ocltensor.invalid/cpp/index.html"
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)#:\s]+)(#[^)\s]*)?\)")


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(f for f in listed.stdout.splitlines() if (ROOT / f).is_file())


def with_links(name: str, text: str, pages: set[str], pictures: set[str]) -> str:
    """Links to files that are no pages become their text: the site holds no sources."""

    def replaced(m: re.Match[str]) -> str:
        words, target, anchor = m[1], m[2], m[3] or ""
        path = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if os.path.isdir(ROOT / path):
            path, target = os.path.join(path, "README.md"), os.path.join(target, "README.md")
        if path in pages:
            return f"{words}({target}{anchor})"
        if words.startswith("!"):
            pictures.add(path)
            return m[0]
        if path.startswith("include/"):
            return f"{words}({CPP})"
        return words.strip("[]")

    return LINK.sub(replaced, text)


def operators(conformance: str) -> str:
    """The operators of the tables by family: schema, and the types that the conformance kit tests
    of each, which are ATen's."""
    schemas = {op.full_name: op.schema for op in cpp_operators.read(ROOT / "src/base")}
    listed = subprocess.run(
        [conformance, "--plugin", "cpu", "--list"], capture_output=True, text=True, check=True
    ).stdout
    families: dict[str, list[tuple[str, set[str]]]] = {}
    for line in listed.splitlines():
        name, family, *types = line.split()
        families.setdefault(family, []).append((name, set(types)))
    text = [OPERATORS_INTRO]
    for family, rows in families.items():
        text += [
            f"## {family}",
            "",
            "| operator | " + " | ".join(TYPES) + " |",
            "|---" * (len(TYPES) + 1) + "|",
        ]
        for name, types in sorted(rows):
            cells = " | ".join("x" if t in types else "" for t in TYPES)
            schema = schemas.get(name, name).replace("|", r"\|")
            text.append(f"| `{schema}` | {cells} |")
        text.append("")
    return "\n".join(text)


def cpp_names() -> str:
    """The operators by family, with their functions, methods, in-place forms and symbols."""
    symbols: dict[str, list[str]] = {}
    for table in (generate_ops.SYMBOLS, generate_ops.UNARY_SYMBOLS):
        for symbol, name in table.items():
            symbols.setdefault(name, []).append(symbol)
    families: dict[str, list[str]] = {}
    for op in sorted(cpp_operators.read(ROOT / "src/base"), key=lambda o: (o.name, o.cpp_name)):
        arguments = [a.name + (f" = {a.default}" if a.default else "") for a in op.inputs]
        if op.is_factory:
            arguments.append("options = {}")
        owner = "x." if op.is_method else ""
        within = f"{op.library}::" if op.library else ""
        cells = [
            op.full_name,
            f"{within}{op.cpp_name}({', '.join(arguments)})",
            f"x.{op.cpp_name}" if op.is_method else "",
            f"{owner}{op.cpp_name}_" if op.works_in_place else "",
            " ".join(symbols.get(op.cpp_name, [])),
        ]
        cells = [f"`{c}`".replace("|", r"\|") if c else "" for c in cells]
        families.setdefault(op.family, []).append(f"| {' | '.join(cells)} |")
    text = [CPP_INTRO]
    for family in sorted(families):
        head = "| ATen | function | method | in place | symbols |"
        text += [f"## {family}", "", head, "|---|---|---|---|---|", *families[family], ""]
    text += ["## Functions that are made of operators", "", "| topic | functions |", "|---|---|"]
    header = (ROOT / "include/ocltensor/functional.h").read_text()
    for topic, declarations in re.findall(r"// ---- ([^;\n]+).*\n((?:(?!// ----).*\n)*)", header):
        names = re.findall(r"^(?:OCLTENSOR_API|inline) [\w:<>]+ (\w+)\(", declarations, re.M)
        text.append(f"| {topic} | {', '.join(f'`{name}`' for name in dict.fromkeys(names))} |")
    return "\n".join([*text, ""])


def stage(folder: pathlib.Path, conformance: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    files = tracked()
    rooms = [f for f in files if f.endswith("README.md") and f not in LEFT_OUT]
    pages = {*PAGES, *rooms}
    pictures: set[str] = set()
    for name in sorted(pages):
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_links(name, (ROOT / name).read_text(), pages, pictures))
    for name in pictures:
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, to)
    others = [
        f.removesuffix(".md") for f in rooms if f not in ("README.md", "plugin/torch/README.md")
    ]
    listed = "\n".join([*others, "bench/history"])
    (folder / "tree.md").write_text(
        f"# The tree, folder by folder\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    )
    (folder / "operators.md").write_text(operators(conformance))
    (folder / "cpp_operators.md").write_text(cpp_names())
    here = ROOT / "src/docs"
    shutil.copyfile(here / "index.md", folder / "index.md")
    shutil.copyfile(here / "conf.py", folder / "conf.py")


def doxygen(work: pathlib.Path, out: pathlib.Path) -> None:
    """The C ABI and the C++ API, with the functions that are generated from the operator tables."""
    (work / "ocltensor").mkdir(parents=True, exist_ok=True)
    script, base = ROOT / "src/host/generate/generate_ops.py", ROOT / "src/base"
    header = ROOT / "include/ocltensor/functional.h"
    subprocess.run([sys.executable, script, base, header, work / "ocltensor", work], check=True)
    here = ROOT / "src/docs"
    settings = (here / "Doxyfile").read_text() + "\n".join(
        [
            f"INPUT = {ROOT}/include {work}/ocltensor {here}/cpp.md",
            # Included inside of classes: read there alone.
            f"EXCLUDE = {work}/ocltensor/methods.h {work}/ocltensor/compound.h",
            f"INCLUDE_PATH = {work}",
            f"USE_MDFILE_AS_MAINPAGE = {here}/cpp.md",
            f"OUTPUT_DIRECTORY = {out}",
            "HTML_OUTPUT = cpp",
            f'FILTER_PATTERNS = "*.h={sys.executable} {here}/comments.py"',
            f"STRIP_FROM_PATH = {ROOT}/include {work} {here}",
            "",
        ]
    )
    (work / "Doxyfile").write_text(settings)
    subprocess.run(["doxygen", work / "Doxyfile"], check=True)


def main() -> None:
    out = pathlib.Path(sys.argv[1]).resolve()
    work = out.with_name(out.name + "-work")
    pages = work / "pages"
    stage(pages, sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    environment = {**os.environ, "OCLTENSOR_ROOT": str(ROOT)}
    sphinx = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "-d",
        work / "doctrees",
    ]
    subprocess.run([*sphinx, pages, out], check=True, env=environment)
    for page in out.rglob("*.html"):
        text = page.read_text()
        up = "../" * (len(page.relative_to(out).parts) - 1)
        page.write_text(text.replace(CPP, f"{up}cpp/index.html"))
    doxygen(work, out)


if __name__ == "__main__":
    main()
