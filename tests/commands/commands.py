"""Fails unless every command of `./run help`, and every other that a text names, has a row in
tests/README.md, with tests that exist.

usage: commands.py ROOT CTEST BUILD
"""

import pathlib
import re
import subprocess
import sys

# Commands in texts, besides `./run`: programs, modules, scripts that are called by python3 or named
# as commands.
PROGRAM = re.compile(
    r"(?:(?<![\w-])ocltensor-[a-z]+\b(?!\.\w)|python3? -m [a-z_.]+"
    r"|(?<=python3 )[\w/]+\.py|\b[\w/]+\.sh)\b"
)
EXAMPLES = ("train.py",)  # a user's


def named_programs(root: pathlib.Path) -> dict[str, str]:
    """Programs that Markdown files name, each with one that does. Debian packages are none."""
    control = (root / "src/package/debian/control").read_text()
    packages = re.findall(r"^Package: (\S+)", control, re.M)
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, str] = {}
    for name in listed.split():
        if (root / name).is_file():
            for program in PROGRAM.findall((root / name).read_text()):
                found.setdefault(program.replace("python3 -m", "python -m"), name)
    return {p: name for p, name in found.items() if p not in (*EXAMPLES, *packages)}


def main() -> int:
    root, ctest, build = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    usage = subprocess.run(
        [root / "run", "help"], capture_output=True, text=True, check=True
    ).stdout
    commands = [
        " ".join(words.split()) for words in re.findall(r"^  ([\w-]+(?: \w+)?)  +\S", usage, re.M)
    ]
    readme = (root / "tests/README.md").read_text()
    rows = dict(
        re.findall(
            r"^\| `(\./run [^`]+|ocltensor-\w+|python -m [^`]+|[\w/]+\.(?:py|sh))` \| (.*?) \|",
            readme,
            re.M,
        )
    )
    listed = subprocess.run(
        [ctest, "--test-dir", build, "-N"], capture_output=True, text=True, check=True
    ).stdout
    tests = re.findall(r"Test +#\d+: (\S+)", listed)
    programs = named_programs(root)
    bad = [f"`./run {c}` has no row" for c in commands if f"./run {c}" not in rows]
    bad += [
        f"`{c}` is in no help" for c in rows if c.startswith("./run ") and c[6:] not in commands
    ]
    bad += [
        f"`{p}`, which {name} names, has no row" for p, name in programs.items() if p not in rows
    ]
    for command, text in rows.items():
        if not re.search(r"`|none: |all of them", text):
            bad.append(f"`{command}`: no test is named")
        for pattern in re.findall(r"`([\w.*]+)`", text):
            # A build without PyTorch, clang or a device has fewer tests.
            expected = re.compile(pattern.replace(".", r"\.").replace("*", ".*"))
            optional = re.match(r"torch\.|fuzz\.|bench|command\.(digits|semantic_search)", pattern)
            known = [t for t in tests if expected.fullmatch(t)]
            family = "torch" if pattern.startswith("command.") else pattern.split(".")[0]
            if not known and not (optional and not any(t.startswith(family + ".") for t in tests)):
                bad.append(f"`{command}`: there is no test {pattern}")
    print("\n".join(bad) or f"{len(commands)} commands, {len(programs)} programs")
    return 1 if bad or len(commands) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
