"""Runs ocltensor-tune in short forms: list, a few problems, what a second run leaves out, an export
that serves elsewhere and can be embedded, the end of the budget, Ctrl-C. usage: tune.py PROGRAM
EMBED_TUNED.PY"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, EMBED = sys.argv[1:3]
PRODUCTS = ("--family", "matmul", "--dtype", "float32")


def run(cache: pathlib.Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OCLTENSOR_CACHE_DIR": str(cache), **settings}
    return subprocess.run(
        [PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def expect(condition: bool, what: str, done: subprocess.CompletedProcess[str]) -> None:
    if not condition:
        sys.exit(f"{what}:\n{done.stdout}\n{done.stderr}")


def file_of(cache: pathlib.Path) -> pathlib.Path:
    (path,) = cache.glob("measured-*.tsv")
    return path


def check_list(cache: pathlib.Path) -> None:
    done = run(cache, "--list")
    families = {line.split()[0] for line in done.stdout.splitlines()}
    expect({"matmul", "conv", "attention_forward"} <= families, "--list", done)
    done = run(cache, "--family", "matmull")
    expect(done.returncode == 1 and "'matmull'" in done.stderr, "a wrong family", done)


def check_products(cache: pathlib.Path) -> None:
    begin = time.monotonic()
    done = run(cache, "--quick", *PRODUCTS)
    first = time.monotonic() - begin
    expect(done.returncode == 0 and "geometric mean" in done.stdout, "--quick", done)
    expect("wrong" not in done.stdout, "a choice is wrong", done)
    expect(str(file_of(cache)) in done.stdout, "the file is not named", done)
    lines = file_of(cache).read_text()
    begin = time.monotonic()
    done = run(cache, "--quick", *PRODUCTS)
    second = time.monotonic() - begin
    expect(done.returncode == 0 and second < first / 2, f"{first} s, then {second} s", done)
    expect(file_of(cache).read_text() == lines, "the second run changed the file", done)


def check_export(cache: pathlib.Path, elsewhere: pathlib.Path) -> None:
    exported = cache / "exported.tsv"
    done = run(cache, "--export", str(exported))
    expect(done.returncode == 0, "--export", done)
    text = exported.read_text()
    expect(text.startswith("ocltensor tuned 1\ndevice\t"), "the export's title", done)
    expect("\nmatmul\t" in text, "the export has no product", done)
    done = run(elsewhere, "--export", "/nowhere/exported.tsv")
    expect(done.returncode == 1 and "/nowhere" in done.stderr, "an export to nowhere", done)
    check_embedding(cache / "tuned", text)
    exported.write_text(text.replace("device\t", "device\tanother ", 1))
    done = run(elsewhere, "--quick", "--budget", "0.1", OCLTENSOR_TUNED_FILES=str(exported))
    expect("is not used for" in done.stderr, "no warning of another device", done)


def check_embedding(folder: pathlib.Path, text: str) -> None:
    folder.mkdir()
    (folder / "device.tsv").write_text(text)
    source = folder / "tuned_files.cpp"
    command = [sys.executable, EMBED, str(folder), str(source)]
    subprocess.run(command, check=True)
    if '{"tuned/device.tsv", R"' not in source.read_text() or text not in source.read_text():
        sys.exit(f"the file is not embedded:\n{source.read_text()}")
    (folder / "damaged.tsv").write_text("ocltensor tuned 0\n")
    if subprocess.run(command, check=False, capture_output=True).returncode == 0:
        sys.exit("a file of another version was embedded")


def check_end(cache: pathlib.Path) -> None:
    done = run(cache, "--budget", "3", *PRODUCTS)
    expect(done.returncode == 0 and "Stopped early" in done.stdout, "--budget", done)
    kept = len(file_of(cache).read_text().splitlines())
    process = subprocess.Popen(
        [PROGRAM, *PRODUCTS],
        env={**os.environ, "OCLTENSOR_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("matmul"):
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=1800)
    if process.returncode != 130 or "Kept in" not in rest:
        sys.exit(f"Ctrl-C: {process.returncode}\n{rest}")
    if len(file_of(cache).read_text().splitlines()) < kept:
        sys.exit("Ctrl-C lost what was measured")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        caches = [pathlib.Path(folder, name) for name in ("one", "other", "third")]
        for cache in caches:
            cache.mkdir(mode=0o700)
        check_list(caches[0])
        check_products(caches[0])
        check_export(caches[0], caches[1])
        check_end(caches[2])


main()
