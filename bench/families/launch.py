"""What the plugin adds to a driver's launch, by launch_bench where it was built: PoCL's device
without threads, or the GPU."""

from __future__ import annotations

from rows import Row, Scale

ROWS = {
    "launch by the driver": "raw_launch",
    "launch of an empty kernel by the driver": "raw_empty",
    "launch of an empty custom kernel through the ABI": "plugin_empty",
    "launch of add.out through the ABI": "plugin_add",
    "launch of ot::add_out": "host_add",
    "launch of ot::add": "host_add_functional",
    "launch share": "plugin_add - raw_launch",
    "tape of ot::add": "host_add_recorded - host_add_functional",
}


def rows(scale: Scale) -> list[Row]:
    return [
        Row("launch", name, what, [], [], only="launch", tolerance=0.0)
        for name, what in ROWS.items()
    ]
