"""Tries ComfyUI on ocl: starts its server with the node folder of this place, sends it a workflow
over HTTP, and compares the image with the CPU's.

usage: run_workflow.py COMFYUI [--steps 4] [--size 128] [--save FILE.png] [--screenshot FILE.png]
                       [--launcher FILE]

COMFYUI is a checkout of ComfyUI, and this Python has what its requirements.txt asks for. The models
are small and have random weights (random_models.py), in a temporary folder. Ends with an error
where a pixel, from 0 to 255, differs by more than LIMIT. --screenshot runs a workflow from the page
on ocl, too, compares its image, and takes a picture of the page (screenshot.py). --launcher names a
Python file that is to run main.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import screenshot
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 2  # float32 sums in another order, rounded to 8 bits
START = 300  # seconds until the server answers
RUN = 900  # seconds for a workflow: the first compiles kernels
# Of the page: no greeting, and nothing over the graph.
SETTINGS = {
    "Comfy.TutorialCompleted": True,
    "Comfy.Minimap.Visible": False,
    "Comfy.Graph.CanvasInfo": False,
}


def workflow(steps: int, size: int) -> dict[str, Any]:
    """Text to image, as "Export (API)" of ComfyUI's menu writes it."""

    def node(kind: str, **inputs: Any) -> dict[str, Any]:
        return {"class_type": kind, "inputs": inputs}

    return {
        "model": node("CheckpointLoaderSimple", ckpt_name="random_sd3.safetensors"),
        "vae": node("VAELoader", vae_name="taesd3"),
        "positive": node("CLIPTextEncode", clip=["model", 1], text="a kettle on a stove"),
        "negative": node("CLIPTextEncode", clip=["model", 1], text="blurred"),
        "latent": node("EmptySD3LatentImage", width=size, height=size, batch_size=1),
        "sampler": node(
            "KSampler",
            model=["model", 0],
            positive=["positive", 0],
            negative=["negative", 0],
            latent_image=["latent", 0],
            seed=7,
            steps=steps,
            cfg=4.0,
            sampler_name="euler",
            scheduler="normal",
            denoise=1.0,
        ),
        "image": node("VAEDecode", samples=["sampler", 0], vae=["vae", 0]),
        "save": node("SaveImage", images=["image", 0], filename_prefix="trial"),
    }


class Server:
    """ComfyUI's server, and what its page asks it over HTTP."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
        self.address, self.process, self.log = f"http://127.0.0.1:{port}", process, log

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.address + path, timeout=60) as answer:
            return answer.read()

    def json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def wait(self) -> None:
        """Until it answers."""
        end = time.monotonic() + START
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                self.get("/system_stats")
                return
            time.sleep(0.5)
        raise RuntimeError(f"ComfyUI did not start:\n{self.tail()}")

    def run(self, nodes: dict[str, Any]) -> np.ndarray:
        """Runs a workflow; its one image."""
        body = json.dumps({"prompt": nodes}).encode()
        request = urllib.request.Request(self.address + "/prompt", body)
        with urllib.request.urlopen(request, timeout=60) as answer:
            name = json.loads(answer.read())["prompt_id"]
        end = time.monotonic() + RUN
        while time.monotonic() < end:
            done = self.json(f"/history/{name}").get(name)
            if done is not None and done["status"]["completed"]:
                (image,) = done["outputs"]["save"]["images"]
                return self.view(image)
            if done is not None:
                raise RuntimeError(f"the workflow failed: {done['status']}\n{self.tail()}")
            time.sleep(0.2)
        raise RuntimeError(f"the workflow did not end\n{self.tail()}")

    def view(self, image: dict[str, str]) -> np.ndarray:
        """An image by the names that the server gave it."""
        data = self.get("/view?" + urllib.parse.urlencode(image))
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def run_from_page(self, nodes: dict[str, Any], file: pathlib.Path) -> np.ndarray:
        (image,) = asyncio.run(screenshot.take(self.address, nodes, file))
        return self.view(image)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def started(comfyui: pathlib.Path, base: pathlib.Path, *options: str) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = base / "server.log"
    command = [sys.executable, *options, "--port", str(port), "--base-directory", str(base)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=comfyui, stdout=out, stderr=subprocess.STDOUT)
    try:
        server = Server(port, process, log)
        server.wait()
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # as its user does: it then clears what it has made
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def seeded(nodes: dict[str, Any], seed: int) -> dict[str, Any]:
    sampler = nodes["sampler"]
    return {**nodes, "sampler": {**sampler, "inputs": {**sampler["inputs"], "seed": seed}}}


def timed(server: Server, nodes: dict[str, Any]) -> tuple[np.ndarray, float, float]:
    """The image, seconds of the first run, and seconds of one with another seed."""
    start = time.monotonic()
    image = server.run(nodes)
    first, start = time.monotonic() - start, time.monotonic()
    server.run(seeded(nodes, 8))
    return image, first, time.monotonic() - start


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("comfyui", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--size", type=int, default=128)
    p.add_argument("--save", type=pathlib.Path)
    p.add_argument("--screenshot", type=pathlib.Path)
    p.add_argument("--launcher", type=pathlib.Path)
    options = p.parse_args()
    program = str(options.launcher.resolve()) if options.launcher else "main.py"
    nodes = workflow(options.steps, options.size)
    with tempfile.TemporaryDirectory() as name:
        base = pathlib.Path(name)
        shutil.copytree(HERE / "ocl_device", base / "custom_nodes/ocl_device")
        settings = base / "user/default/comfy.settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(SETTINGS))
        make = [sys.executable, HERE / "random_models.py", base / "models"]
        subprocess.run(make, cwd=options.comfyui, check=True)
        images = []
        for device in ("ocl", "cpu"):
            extra = ["--cpu"] if device == "cpu" else []
            with started(options.comfyui, base, program, *extra) as server:
                image, first, second = timed(server, nodes)
                images.append([image])
                used = server.json("/system_stats")["devices"][0]
                print(
                    f"{device}: ComfyUI uses {used['name']}; the workflow took {first:.1f} s, "
                    f"then {second:.1f} s",
                    flush=True,
                )
                if used["type"] != device or not used["torch_vram_total"]:
                    print(server.tail(), file=sys.stderr)
                    return 1
                other = seeded(nodes, 9)
                if options.screenshot and device == "ocl":
                    images[-1].append(server.run_from_page(other, options.screenshot))
                elif options.screenshot:
                    images[-1].append(server.run(other))
    if options.save:
        Image.fromarray(images[0][0]).save(options.save)
    ours, theirs = np.array(images, int)
    worst, spread = np.abs(ours - theirs).max(), np.ptp(ours)
    print(f"pixels of {len(ours)} images differ by {worst} of 255; their own spread is {spread}")
    return 0 if worst <= LIMIT and spread > 20 else 1


if __name__ == "__main__":
    sys.exit(main())
