"""What lint checks in seconds: clang-format, ruff, shellcheck, the layout of kernels. usage:
lint.py RUFF

Exit status 1 with what is wrong; 77 where nothing is, but a tool is missing, or of another version.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLANG_FORMAT = 14  # versions differ: that of Debian 12 decides


def tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [f for f in listed.stdout.splitlines() if (ROOT / f).is_file()]


def version_of(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(?:\.\d+)?", done.stdout)
    return found[0] if found else ""


def clang_format() -> list[str]:
    program = shutil.which(f"clang-format-{CLANG_FORMAT}") or shutil.which("clang-format")
    if not program or not version_of(program).startswith(f"{CLANG_FORMAT}."):
        return []
    files = [f for f in tracked("*.cpp", "*.h") if not f.startswith("kernels/")]
    return [program, "--dry-run", "--Werror", *files]


def ruff(program: str) -> list[str]:
    wanted = re.search(
        r"^ruff==(.*)$", (ROOT / "tests/commands/requirements.txt").read_text(), re.M
    )
    if not shutil.which(program) or not wanted or version_of(program) != wanted[1]:
        return []
    return [program, "check", "--quiet", *tracked("*.py", "*.pyi")]


def shellcheck() -> list[str]:
    program = shutil.which("shellcheck")
    return [program, "run", ".ci/run", *tracked("*.sh")] if program else []


def main() -> int:
    program = sys.argv[1]
    checks = {
        f"clang-format {CLANG_FORMAT}": clang_format(),
        "ruff": ruff(program),
        "shellcheck": shellcheck(),
        "kernels": [sys.executable, "tests/structure/structure.py", "kernels", "."],
    }
    if checks["ruff"]:
        checks["ruff format"] = [program, "format", "--check", "--quiet", *tracked("*.py", "*.pyi")]
    failed, missing = [], []
    for name, command in checks.items():
        if not command:
            missing.append(name)
            print(f"SKIPPED: {name}: it is not installed, or of another version")
            continue
        print(name, flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"lint: not clean: {', '.join(failed)}")
    return 1 if failed else 77 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
