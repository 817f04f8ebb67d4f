"""How old a table of RESULTS.md is: the commits that have touched its family's kernels, or what
launches them, since it was measured."""

from __future__ import annotations

import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
OLD = 100  # commits
MARK = "**Old**"  # what a remark begins with
# Of each family of rows the folders of kernels/, of plugin/opencl/ops/ and of the providers.
# Products, convolutions and attention have their inner loops in headers, `include`; a family has
# those of others that it calls. "" is all kernels.
FOLDERS = {
    "pointwise": ("pointwise", "elementwise", "copy"),
    "reduce": ("reduce", "scan"),
    "matmul": ("matmul", "include"),
    "quantised": ("quantised", "matmul", "include"),
    "conv": ("conv", "matmul", "include"),
    "rows": ("softmax", "norm"),
    "pool": ("pool", "upsample"),
    "attention": ("attention", "include"),
    "masks": ("attention", "include"),
    "indexing": ("index", "sort", "multi_tensor"),
    "linalg": ("linalg", "matmul", "sparse"),
    "torch": ("",),
    "models": ("",),
    "networks": ("",),
    "growth": ("",),
}
LAUNCHES = ("plugin/opencl/call", "plugin/opencl/runtime")  # of the family `launch`


def paths(family: str) -> tuple[str, ...]:
    """As git takes them."""
    found: list[str] = []
    for folder in FOLDERS.get(family, ()):
        found += (
            [
                f"kernels/{folder}",
                f":(glob)kernels/*/{folder}/**",
                f":(glob)plugin/opencl/*/{folder}/**",
            ]
            if folder
            else ["kernels", "plugin/opencl/ops"]
        )
    return tuple(found) or LAUNCHES


@functools.cache
def commits_since(commit: str, family: str, root: pathlib.Path = ROOT) -> int | None:
    """How many commits since that one have touched the family's folders; None where git or the
    history is not there."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", *paths(family)]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return int(done.stdout) if commit and done.returncode == 0 else None


def remark(family: str, rows: int, commits: int | None) -> str:
    """What a section says of rows that old: nothing of younger ones."""
    if commits is None or commits < OLD:
        return ""
    what = "kernels" if family in FOLDERS else "launches"
    return f"{MARK}: {rows} rows measured {commits} commits of its {what} ago."


def without_remarks(text: str) -> str:
    """A text of `section` without what depends on the history: each remark is a paragraph."""
    kept = [part for part in text.split("\n\n") if not part.startswith(MARK)]
    return "\n\n".join(kept)
