"""Fails unless every command of `./run help` has a row in tests/README.md, with tests that exist.

usage: commands.py ROOT CTEST BUILD
"""

import pathlib
import re
import subprocess
import sys


def main() -> int:
    root, ctest, build = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    usage = subprocess.run([root / "run", "help"], capture_output=True, text=True, check=True).stdout
    commands = [" ".join(words.split()) for words in re.findall(r"^  (\w+(?: \w+)?)  +\S", usage, re.M)]
    readme = (root / "tests/README.md").read_text()
    rows = dict(re.findall(r"^\| `\./run ([^`]+)` \| (.*?) \|", readme, re.M))
    listed = subprocess.run([ctest, "--test-dir", build, "-N"], capture_output=True, text=True, check=True).stdout
    tests = re.findall(r"Test +#\d+: (\S+)", listed)
    bad = [f"`./run {c}` has no row" for c in commands if c not in rows]
    bad += [f"`./run {c}` is in no help" for c in rows if c not in commands]
    for command, text in rows.items():
        for pattern in re.findall(r"`([\w.*]+)`", text):
            # A build without PyTorch, clang or clang-format has fewer tests.
            expected = re.compile(pattern.replace(".", r"\.").replace("*", ".*"))
            optional = re.match(r"torch\.|fuzz\.|bench|command\.(digits|semantic_search|lint)", pattern)
            if not optional and not any(expected.fullmatch(t) for t in tests):
                bad.append(f"`./run {command}`: there is no test {pattern}")
    print("\n".join(bad) or f"{len(commands)} commands")
    return 1 if bad or len(commands) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
