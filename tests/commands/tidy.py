"""clang-tidy over every C++ source that a build compiles. usage: tidy.py BUILD FOLDERS JOBS
(FOLDERS: src|tests|...)"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def without_precompiled(build: pathlib.Path) -> tuple[pathlib.Path, list[pathlib.Path]]:
    """A folder with the build's commands without g++'s precompiled headers, and the sources."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for command in commands:
        words = r" -Winvalid-pch| -include \S*cmake_pch\.hxx"
        command["command"] = re.sub(words, "", command["command"])
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return folder, sorted({pathlib.Path(c["file"]).resolve() for c in commands})


def check(commands: pathlib.Path, file: pathlib.Path) -> str:
    """What is wrong with a file; empty for nothing. Commands have g++'s own warning options."""
    command = ["clang-tidy", "-p", str(commands), "--quiet"]
    command += [f"--header-filter=^{ROOT}/(src|plugin|include|tests|bench)/.*"]
    command += ["--extra-arg=-Wno-unknown-warning-option", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode != 0 else ""


def main() -> int:
    build, folders, jobs = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    commands, known = without_precompiled(build)
    files = [
        f
        for f in known
        if f.is_relative_to(ROOT) and re.match(rf"({folders})/", str(f.relative_to(ROOT)))
    ]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for text in pool.map(lambda f: check(commands, f), files):
            if text:
                bad += 1
                print(text, flush=True)
    print(f"clang-tidy: {len(files)} sources, {bad} not clean")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
