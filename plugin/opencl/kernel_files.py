"""Reads kernel files: their text, macros that parameter lists consist of, kernels and defines;
and writes what is generated from them."""

from __future__ import annotations

import pathlib
import re
import sys

# Capitals that OpenCL C or its compilers define.
BUILT_IN = re.compile(
    r"__\w+|CLK_\w+|cl_\w+|(FLT|DBL|INT|LONG|UINT|ULONG)_\w+|M_\w+|INFINITY|NAN|OPENCL|EXTENSION|FP_CONTRACT|OCLTENSOR_\w+_H"
)


def code_of(path: pathlib.Path) -> str:
    """Returns the file's text without comments, each macro on one line."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    return re.sub(r"//[^\n]*", "", text).replace("\\\n", " ")


def split(parameters: str) -> list[str]:
    """Splits at commas that are outside of brackets."""
    parts, depth = [""], 0
    for c in parameters:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [" ".join(p.split()) for p in parts if p.strip()]


def without_optional(parameters: list[str]) -> list[str]:
    kept, depth = [], 0
    for p in parameters:
        depth += (p == "#if") - (p == "#endif")
        if depth == 0 and p != "#endif":
            kept.append(p)
    return kept


def write(path: pathlib.Path, lines: list[str]) -> None:
    """Writes a file unless its text is the same, so that what includes it is not compiled again."""
    text = "\n".join(lines) + "\n"
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Source:
    """A kernel file with the headers that it includes, macros and kernels found in its text."""

    def __init__(self, path: pathlib.Path, headers: dict[str, pathlib.Path]) -> None:
        self.path = path
        self.texts: dict[pathlib.Path, str] = {}
        self._read(path, headers)
        self.macros: dict[str, tuple[list[str] | None, str]] = {}
        self.may_be_empty: set[str] = set()
        for text in self.texts.values():
            for name, brackets, inner, body in re.findall(
                r"^\s*#\s*define\s+(\w+)(\(([^)]*)\))?[ \t]*(.*)$", text, re.M
            ):
                known = self.macros.get(name)
                if known and bool(known[1].strip()) != bool(body.strip()):
                    self.may_be_empty.add(name)
                if not known or not known[1].strip():
                    self.macros[name] = (split(inner) if brackets else None, body)

    def _read(self, path: pathlib.Path, headers: dict[str, pathlib.Path]) -> None:
        if path in self.texts:
            return
        self.texts[path] = code_of(path)
        for name in re.findall(r'#\s*include\s+"([^"]+)"', self.texts[path]):
            self._read(headers[name], headers)

    def expand(self, text: str) -> str:
        """Expands macros that parameter lists consist of: those that contain a declaration."""
        out, at = "", 0
        while found := re.compile(r"[A-Za-z_]\w*").search(text, at):
            out += text[at : found.start()]
            at = found.end()
            arguments, body = self.macros.get(found[0], (None, ""))
            if not re.search(r"__global|__local|FaultRecord", self._reach(body)):
                out += found[0]
                continue
            if arguments is not None:
                begin = text.index("(", at)
                depth, at = 1, begin + 1
                while depth:
                    depth += (text[at] == "(") - (text[at] == ")")
                    at += 1
                for name, value in zip(arguments, split(text[begin + 1 : at - 1])):
                    body = re.sub(rf"\b{name}\b", value, body)
                body = re.sub(r"\s*##\s*", "", body)
            expanded = self.expand(body)
            out += f"#if, {expanded} #endif, " if found[0] in self.may_be_empty else expanded
        return out + text[at:]

    def _reach(self, body: str) -> str:
        """Returns a body with the bodies of the macros that it uses, two levels deep."""
        for _ in range(2):
            body = re.sub(r"\b[A-Z]\w*\b", lambda m: self.macros.get(m[0], (None, m[0]))[1], body)
        return body

    def kernels(self) -> dict[str, list[str]]:
        """Returns kernels with their parameters, macros expanded; #if and #endif remain."""
        qualifiers = [n for n, (_, body) in self.macros.items() if "__kernel" in body]
        pattern = rf"\b(?:{'|'.join(['__kernel', *qualifiers])})\s+void\s+(\w+)\s*\("
        text = self.texts[self.path]
        found: dict[str, list[str]] = {}
        for match in re.finditer(pattern, text):
            depth, at = 1, match.end()
            while depth:
                depth += (text[at] == "(") - (text[at] == ")")
                at += 1
            listed = re.sub(
                r"^\s*#\s*(if|endif)\b.*$", r"#\1,", text[match.end() : at - 1], flags=re.M
            )
            parameters = split(self.expand(listed))
            known = found.setdefault(match[1], parameters)
            if known != parameters and without_optional(known) != without_optional(parameters):
                sys.exit(f"{self.path}: two kernels '{match[1]}' with different parameters")
            found[match[1]] = max(known, parameters, key=len)
        return found

    def defines(self) -> set[str]:
        """Returns names in capitals that the code reads or a header's table explains, and that the
        code does not define itself (a definition under a condition, and only one, is a default)."""
        used, fixed, guarded = set(), set(), set()
        for path, text in self.texts.items():
            read = re.sub(r'"[^"]*"', "", text)
            used |= set(re.findall(r"\b[A-Z](?:[A-Z0-9_]*[A-Z0-9])?\b", read))
            used |= set(re.findall(r"^// +([A-Z][A-Z0-9_]*)  ", path.read_text(), re.M))
            depth = -1 if re.match(r"\s*#\s*ifndef \w+_H\b", text) else 0
            for directive, name in re.findall(r"^\s*#\s*(if\w*|endif|define)\b *(\w*)", text, re.M):
                depth += directive.startswith("if") - (directive == "endif")
                if directive == "define" and (depth == 0 or name in guarded):
                    fixed.add(name)
                elif directive == "define":
                    guarded.add(name)
        return {n for n in used - fixed if not BUILT_IN.fullmatch(n)}

    def needs(self) -> set[str]:
        """Returns those of defines() that an #if reads whatever else is defined: missing, they
        would be 0 there, silently. What has a default, or is asked for by defined(), may be."""
        own = "\n".join(self.texts.values())
        defaults = set(re.findall(r"^\s*#\s*define\s+(\w+)", own, re.M))
        found: set[str] = set()
        self._walk(self.path, 0, set(), found)
        return (found & self.defines()) - defaults

    def _walk(self, path: pathlib.Path, depth: int, seen: set[pathlib.Path], found: set) -> None:
        """Collects the names in conditions that stand in no other, of a file and its headers."""
        seen.add(path)
        text = self.texts[path]
        depth -= bool(re.match(r"\s*#\s*ifndef \w+_H\b", text))
        headers = {p.name: p for p in self.texts}
        for word, rest in re.findall(r"^\s*#\s*(if\w*|endif|include)\b(.*)$", text, re.M):
            if word == "include":
                header = headers.get(rest.strip().strip('"'))
                if header and header not in seen:
                    self._walk(header, depth, seen, found)
            elif word == "if" and depth == 0 and "defined" not in rest and "__has" not in rest:
                found |= set(re.findall(r"\b[A-Z](?:[A-Z0-9_]*[A-Z0-9])?\b", rest))
            depth += word.startswith("if") - (word == "endif")
