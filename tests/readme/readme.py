"""Keeps texts true: the C++ example of README.md is what the test builds and runs, the settings
table is config.def's.

usage: readme.py snippets GUIDE.md ROOT          fails unless each block of code is the text of the
       file that the comment before it names
       readme.py extract README.md OUT.cpp       the first C++ block
       readme.py expect README.md PROGRAM        runs PROGRAM and compares with the text block after
       it
       readme.py shown TUTORIAL.md PROGRAM       the same with the text block that the comment
       before it calls the output of PROGRAM
       readme.py settings SETTINGS.md config.def   fails unless the table is the generated one
       readme.py write-settings SETTINGS.md config.def
       readme.py links FOLDER                    fails on a dead link of any text below FOLDER
       readme.py variables tests/README.md config.def    fails unless every variable has a test that
       exists readme.py prose README.md ROOT            fails on measured figures outside bench/,
       wide lines, dead links, a long front page
"""

import difflib
import pathlib
import re
import subprocess
import sys

FRONT_PAGE_LINES, COLUMNS = 110, 120
# A measurement dates; it belongs to bench/RESULTS.md and bench/history.md. Sizes, tolerances and
# versions do not.
FIGURE = re.compile(
    r"\b\d[\d.]* ?(?:ns|us|\u00b5s|ms|s|seconds|minutes|hours|[kMGT]B/s"
    r"|[kMGT]?FLOPS?|[kMGT]?FLOP/s|%)(?![\w/-])"
    r"|\b\d+(?:\.\d+)? ?times (?:as|faster|slower|torch)|\b\d+\.\d+ ?x\b|\bx "
    r"?\d+\.\d+|(?:faster|slower) by \d"
)
GENERATED = ("plugin/torch/OPERATORS.md", "plugin/torch/ERRORS.md", "plugin/opencl/DEVICES.md")
OUTPUT_OF = r"<!-- output of {} -->\n```text\n(.*?)```"
BEGIN, END = "<!-- settings:", "<!-- end of settings -->"


def block(text: str, language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", text, re.S).group(1)


def table(definitions: str) -> str:
    rows = ["| variable | default | accepted | meaning |", "|---|---|---|---|"]
    for m in re.finditer(
        r'OCLTENSOR_KNOB\(\w+,\s*"(\w+)",\s*\w+,\s*"([^"]*)",[^"]*"([^"]*)",\s*"([^"]*)"\)',
        definitions,
    ):
        name, default, accepted, meaning = m.groups()
        rows.append(f"| `{name}` | {f'`{default}`' if default else ''} | {accepted} | {meaning} |")
    return "\n".join(rows)


def with_table(readme: str, definitions: str) -> str:
    head, rest = readme.split(BEGIN, 1)
    first_line, rest = rest.split("\n", 1)
    tail = rest.split(END, 1)[1]
    return f"{head}{BEGIN}{first_line}\n{table(definitions)}\n{END}{tail}"


def check_variables(readme: str, definitions: str, root: pathlib.Path) -> None:
    """Every variable of config.def has a row, whose file has a test of the name given (Class.test
    or a name)."""
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


def dead_links(root: pathlib.Path, name: str) -> list[str]:
    """Links of a text to files that are not there."""
    code, problems = False, []
    for number, line in enumerate((root / name).read_text().splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", line) if not code else ():
            if not ((root / name).parent / target).exists():
                problems.append(f"{name}:{number}: the link to {target} leads nowhere")
    return problems


def check_links(root: pathlib.Path) -> None:
    """The same of all texts of a folder."""
    files = [str(f.relative_to(root)) for f in root.rglob("*.md")]
    problems = [p for name in files for p in dead_links(root, name)]
    if len(files) < 20:
        problems.append(f"only {len(files)} texts were found")
    if problems:
        sys.exit("\n".join(problems))


def check_prose(front: str, root: pathlib.Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [
        f
        for f in listed.stdout.split()
        if not f.startswith("bench/") and f not in GENERATED and (root / f).is_file()
    ]
    problems = []
    if len(front.splitlines()) > FRONT_PAGE_LINES:
        problems.append(f"README.md has more than {FRONT_PAGE_LINES} lines")
    if len(files) < 30:
        problems.append(f"only {len(files)} texts were found")
    for name in files:
        code = False
        problems += dead_links(root, name)
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            bare = re.sub(r"\]\([^)]*\)|<http[^>]*>", "", line)
            if not code and not bare.lstrip().startswith("|") and len(bare) > COLUMNS:
                problems.append(f"{name}:{number}: {len(bare)} columns, more than {COLUMNS}")
            found = FIGURE.search(re.sub(r"`[^`]*`", "", line))
            if found and not code and name != "CHANGELOG.md":
                problems.append(
                    f"{name}:{number}: '{found[0]}' is a measured figure, which belongs to bench/"
                )
    if problems:
        sys.exit("\n".join(problems))


def check_snippets(guide: str, root: pathlib.Path) -> None:
    """What a guide shows stands in files that are compiled: whole lines, one after the other."""
    marked = re.findall(r"<!-- from (\S+) -->\n```\w+\n(.*?)```", guide, re.S)
    problems = [
        f"{name} does not have these lines:\n{code}"
        for name, code in marked
        if f"\n{code}" not in "\n" + (root / name).read_text()
    ]
    blocks = len(re.findall(r"^```\w+$", guide, re.M))
    named = len(marked) + len(re.findall(OUTPUT_OF.format(r"\w+"), guide, re.S))
    if not marked or blocks != named:
        problems.append(f"{blocks - named} of {blocks} blocks of code name no file")
    if problems:
        sys.exit("\n".join(problems))


def check_output(text: pathlib.Path, want: str, program: str) -> None:
    got = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
    if got != want:
        sys.exit(
            f"{text.name} shows another output:\n"
            + "\n".join(difflib.ndiff(want.split("\n"), got.split("\n")))
        )


def main() -> None:
    if sys.argv[1] == "links":
        return check_links(pathlib.Path(sys.argv[2]))
    command, readme_path, other = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    readme = readme_path.read_text()
    if command == "extract":
        pathlib.Path(other).write_text(block(readme, "cpp"))
    elif command == "expect":
        check_output(readme_path, block(readme, "text"), other)
    elif command == "shown":
        name = pathlib.Path(other).stem
        found = re.search(OUTPUT_OF.format(name), readme, re.S)
        if found is None:
            sys.exit(f"{readme_path.name} does not show the output of {name}")
        check_output(readme_path, found[1], other)
    elif command == "snippets":
        check_snippets(readme, pathlib.Path(other))
    elif command == "prose":
        check_prose(readme, pathlib.Path(other))
    elif command == "variables":
        check_variables(
            readme, pathlib.Path(other).read_text(), readme_path.resolve().parent.parent
        )
    elif command in ("settings", "write-settings"):
        wanted = with_table(readme, pathlib.Path(other).read_text())
        if command == "write-settings":
            readme_path.write_text(wanted)
        elif wanted != readme:
            sys.exit(
                f"{readme_path.name}: the table is not config.def's; run tests/readme/readme.py "
                f"write-settings"
            )
    else:
        sys.exit(__doc__)


main()
