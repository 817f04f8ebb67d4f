"""ocltensor-info --report: what is in the file, and what is not. usage: info_report.py PROGRAM"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "device.json")
    subprocess.run([sys.argv[1], "--report", path, "--kit-seconds", "1"], check=True)
    text = path.read_text()
report = json.loads(text)
assert report["format"] == 1 and report["self_test"]["right"], report
assert report["kit"]["exit"] == 0 and not report["kit"]["failures"], report["kit"]
assert len(report["kit"]["operators"]) > 40, report["kit"]["operators"].keys()
failed = [row for row in report["speed"] if "error" in row]
assert not failed and len(report["speed"]) > 20, failed
assert {"mm 1024x1024x1024 float32", "copy 2^24 float32"} <= {r["name"] for r in report["speed"]}
for private in (os.environ.get("HOME", "/root"), os.getcwd(), folder, os.uname().nodename):
    assert private not in text, f"the report tells {private}"
lost = subprocess.run([sys.argv[1], "--report", "/nowhere/a"], capture_output=True, text=True)
assert lost.returncode == 2 and "/nowhere/a cannot be written" in lost.stderr, lost
