"""Keeps README.md true: its C++ example is what the test builds and runs, its settings table is config.def's.

usage: readme.py extract README.md OUT.cpp       the first C++ block
       readme.py expect README.md PROGRAM        runs PROGRAM and compares with the text block after it
       readme.py settings README.md config.def   fails unless the table is the generated one
       readme.py write-settings README.md config.def
       readme.py variables tests/README.md config.def    fails unless every variable has a test that exists
"""

import difflib
import pathlib
import re
import subprocess
import sys

BEGIN, END = "<!-- settings:", "<!-- end of settings -->"


def block(text: str, language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", text, re.S).group(1)


def table(definitions: str) -> str:
    rows = ["| variable | default | accepted | meaning |", "|---|---|---|---|"]
    for m in re.finditer(r'OCLTENSOR_KNOB\(\w+,\s*"(\w+)",\s*\w+,\s*"([^"]*)",[^"]*"([^"]*)",\s*"([^"]*)"\)', definitions):
        name, default, accepted, meaning = m.groups()
        rows.append(f"| `{name}` | {f'`{default}`' if default else ''} | {accepted} | {meaning} |")
    return "\n".join(rows)


def with_table(readme: str, definitions: str) -> str:
    head, rest = readme.split(BEGIN, 1)
    first_line, rest = rest.split("\n", 1)
    tail = rest.split(END, 1)[1]
    return f"{head}{BEGIN}{first_line}\n{table(definitions)}\n{END}{tail}"


def check_variables(readme: str, definitions: str, root: pathlib.Path) -> None:
    """Every variable of config.def has a row, whose file has a test of the name given (Class.test or a name)."""
    rows = dict(re.findall(r"^\| `(OCLTENSOR_\w+)` \| (.*?) \|", readme, re.M))
    wanted = re.findall(r'OCLTENSOR_KNOB\(\w+,\s*"(\w+)"', definitions)
    problems = [f"{name} has no row" for name in wanted if name not in rows]
    problems += [f"{name} is no variable" for name in rows if name not in wanted]
    for name, text in rows.items():
        if text == "none: without effect yet":
            continue
        places = re.findall(r"`([^`]+)`: `([^`]+)`", text)
        problems += [f"{name}: no test is named"] * (not places)
        for path, test in places:
            file = root / path
            if not file.is_file() or not all(part in file.read_text() for part in test.split(".")):
                problems.append(f"{name}: {path} has no {test}")
    if problems:
        sys.exit("tests/README.md, table of variables:\n" + "\n".join(problems))


def main() -> None:
    command, readme_path, other = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    readme = readme_path.read_text()
    if command == "extract":
        pathlib.Path(other).write_text(block(readme, "cpp"))
    elif command == "expect":
        got = subprocess.run([other], capture_output=True, text=True, check=True).stdout
        want = block(readme, "text")
        if got != want:
            sys.exit("README.md shows another output:\n" + "\n".join(difflib.ndiff(want.split("\n"), got.split("\n"))))
    elif command == "variables":
        check_variables(readme, pathlib.Path(other).read_text(), readme_path.resolve().parent.parent)
    elif command in ("settings", "write-settings"):
        wanted = with_table(readme, pathlib.Path(other).read_text())
        if command == "write-settings":
            readme_path.write_text(wanted)
        elif wanted != readme:
            sys.exit("README.md: the settings table is not config.def's; run tests/readme/readme.py write-settings")
    else:
        sys.exit(__doc__)


main()
