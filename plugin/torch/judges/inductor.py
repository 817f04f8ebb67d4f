"""PyTorch's own tests of torch.compile's default compiler, Inductor, on ocl and on the CPU.

usage: inductor.py FOLDER [options of suite.py]

FOLDER is a copy of github.com/pytorch/pytorch, or a folder that has test_torchinductor.py and,
where wanted, test_torchinductor_dynamic_shapes.py and test_torchinductor_opinfo.py; pytest and
expecttest have to be installed. The parts are static/0 to 9 (CommonTemplate, each part a tenth of
its tests, drawn by name), dynamic/0 to 9 (the same with dynamic shapes) and opinfo/0 to 9 (op_db,
the types of --dtypes). On ocl a graph that is not compiled fails its test, though users get it run
operator by operator. Files need not be of the installed torch's version: what fails on both
devices, or asks for Triton's or C++'s text, is theirs.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import pathlib
import re
import sys
import unittest
import zlib
from typing import Any

import suite

FILES = {
    "static": "test_torchinductor",
    "dynamic": "test_torchinductor_dynamic_shapes",
    "opinfo": "test_torchinductor_opinfo",
}
TENTHS = 10
EXPLAINED: dict[str, str] = {
    r"dropout[23]|neg_index|conv_inference_heuristics|randint_kernel_count": "reads Triton's text",
    r"index_propagation_(remainder|floordiv|abs)": "reads the text of Triton or C++",
    r"sdpa|dot_product_efficient_attention|cudnn_rnn|philox": "calls an operator of CUDA alone",
    r"(mm|linear)_mixed_dtype|errors_with_long": "an error, of another text",
    r"inner_fn_str_and_stride": "asks a GPU's graph for what torch 2.13 has no more",
    r"mix_device_index_dynamic": "wants the names that torch 2.7 gave sizes",
    r"AllenaiLongformerBase_repro_dynamic": "passes, where the file expects a failure",
    r"mutable_custom_op_fixed_layout2": "wants convolutions changed to channels_last",
    r"nll_loss_backward": "PyTorch's decomposition gives float32, eager float16",
    r"test_resize(_as)?(_dynamic|$)": "deterministic algorithms fill new elements in compiled code",
    r"aoti_eager_override_registration": "builds C++ for the CPU for minutes",
}

# ---- Copies of the files


def sources(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """By kind of part, the files that the folder has."""
    places = (folder, folder / "test" / "inductor")
    found = {
        kind: [place / f"{name}.py" for place in places if (place / f"{name}.py").exists()]
        for kind, name in FILES.items()
    }
    return {kind: files[0] for kind, files in found.items() if files}


def for_device(text: str, kind: str, device: str) -> str:
    """A fork's device becomes ocl; on the CPU, a GPU that is not there, or where all tests are of
    that device the CPU."""
    text = re.sub(r"from (?:inductor)?\.(test_torchinductor\w*) import", r"from \1 import", text)
    if "NPU_TYPE" in text:
        absent = "cpu" if kind == "opinfo" else "cuda"
        text = re.sub(r"\bnpu\b", "ocl" if device == "ocl" else absent, text)
        text = text.replace('"NPU"', '"PrivateUse1"' if device == "ocl" else '"CUDA"')
    return text


def parts(options: argparse.Namespace) -> list[pathlib.Path]:
    scratch = pathlib.Path(options.scratch)
    kinds = sources(options.folder)
    for device in suite.DEVICES:
        (scratch / device).mkdir(exist_ok=True)
        for kind, file in kinds.items():
            text = for_device(file.read_text(), kind, device)
            (scratch / device / file.name).write_text(text)
    files = []
    for kind in kinds:
        (scratch / kind).mkdir(exist_ok=True)
        for tenth in range(TENTHS):
            file = scratch / kind / f"test_{tenth}.py"
            file.write_text(
                "from __main__ import cases\n\n"
                f"Tests = cases({kind!r}, {tenth}, {str(scratch)!r}, {options.dtypes!r})\n"
            )
            files.append(file)
    return files


# ---- In the child
_told = {"device": ""}


def prepare(device: str) -> list[Any]:
    """Before the files are imported: what this torch lacks of their imports; ocl as their GPU."""
    _told["device"] = device
    import torch
    from torch._inductor import codecache, compile_fx
    from torch.testing._internal import common_methods_invocations as of_operators
    from torch.testing._internal import common_utils, inductor_utils, triton_utils
    from torch.utils import _dtype_abbrs

    stand_ins = (
        (triton_utils, "requires_cuda", unittest.skip("wants CUDA")),
        (inductor_utils, "HAS_XPU", False),
        (codecache, "cpp_prefix_path", functools.cache(lambda: "")),
        (compile_fx, "complex_memory_overlap", None),
        (of_operators, "skipOps", lambda *_: lambda test: test),
        (common_utils, "dtype_abbrs", _dtype_abbrs.dtype_abbrs),
    )
    for module, name, value in stand_ins:
        if not hasattr(module, name):
            setattr(module, name, value)
    if device == "ocl":
        import torch_ocl  # noqa: F401

        inductor_utils.GPU_TYPE, inductor_utils.HAS_GPU = "ocl", True
        inductor_utils.requires_gpu = lambda: lambda test: test
        _go_by_our_way(torch)
    return []


def _go_by_our_way(torch: Any) -> None:
    """Calls of Inductor around torch.compile: the tests' own backends are such."""
    from torch._inductor import compile_fx as place
    from torch._inductor.test_operators import _test_lib_impl
    from torch_ocl import _compile, inductor
    from torch_ocl.inductor.registration import register

    register()
    whole, inner = place.compile_fx, place.compile_fx_inner

    def compile_fx(model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        is_inside = "inner_compile" in options  # it calls itself by its name
        if args or is_inside or not _compile._is_of_ocl(model, inputs):
            return whole(model, inputs, *args, **options)
        return inductor.compile_graph(model, inputs, options.pop("config_patches", {}), **options)

    def compile_fx_inner(model: Any, inputs: Any, **options: Any) -> Any:
        how = inductor.compile_pass if _compile._is_of_ocl(model, inputs) else inner
        return how(model, inputs, **options)

    def not_compiled(graph: Any) -> None:
        raise AssertionError(f"not compiled: {inductor.report.graphs[-1].eager}")

    # PyTorch has this operator of its tests for the devices in its tree.
    _test_lib_impl.impl("realize", lambda x: x.clone(), "PrivateUse1")
    place.compile_fx, place.compile_fx_inner = compile_fx, compile_fx_inner
    inductor._operator_by_operator = not_compiled


def cases(kind: str, tenth: int, scratch: str, dtypes: str) -> type:
    """A class with a tenth of the tests of a file; called by the parts."""
    sys.path.insert(0, os.path.join(scratch, _told["device"]))
    module = importlib.import_module(FILES[kind])
    if kind == "opinfo":
        cls, names = _of_operators(module, dtypes.split(","))
    else:
        cls, names = _of_template(module, kind)
    own = {name: getattr(cls, method) for name, method in names.items()}
    for method in [name for name in dir(cls) if name.startswith("test_")]:
        delattr(cls, method)
    for name, test in own.items():
        if zlib.crc32(name.encode()) % TENTHS == tenth:
            setattr(cls, name, test)
    return cls


def _of_template(module: Any, kind: str) -> tuple[type, dict[str, str]]:
    """The class, and its tests' names by names that do not tell the device."""
    base, chosen = importlib.import_module(FILES["static"]), _told["device"]
    if chosen == "ocl":
        base.is_triton_backend = lambda device: False  # as for mps

    class Tests(base.TestCase):
        common = base.check_model if chosen == "cpu" else base.check_model_gpu
        device = chosen

    template = base.CommonTemplate if kind == "static" else module.DynamicShapesCommonTemplate
    base.copy_tests(template, Tests, chosen, getattr(module, "test_failures", None))
    return Tests, {n.removesuffix(f"_{chosen}"): n for n in vars(Tests) if n.startswith("test_")}


def _of_operators(module: Any, dtypes: list[str]) -> tuple[type, dict[str, str]]:
    """The same of op_db, for some types."""
    classes = [c for n, c in vars(module).items() if n.startswith("TestInductorOpInfo")]
    ends = tuple(f"_{_told['device']}_{dtype}" for dtype in dtypes)
    cls = next(c for c in classes if any(n.endswith(ends) for n in dir(c)))
    found = [n for n in dir(cls) if n.startswith("test_") and n.endswith(ends)]
    return cls, {re.sub(rf"_{_told['device']}_(\w+)$", r"_\1", n): n for n in found}


SUITE = suite.Suite(
    harness=__file__,
    describe=__doc__ or "",
    parts=parts,
    environment=lambda device, options: {
        # The CPU's compiler makes its precompiled headers once, not for each test.
        "INDUCTOR_TEST_DISABLE_FRESH_CACHE": "1" if device == "cpu" else "0",
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(options.cache or options.scratch, device),
    },
    explained=EXPLAINED,
    prepare=prepare,
)


def main() -> int:
    p = suite.parser(SUITE)
    p.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    p.add_argument("--dtypes", default="float32", help="of opinfo's tests: float32,int64,...")
    p.add_argument("--cache", help="a folder for what Inductor compiles for the CPU, to be kept")

    def check(options: argparse.Namespace) -> None:
        if not sources(options.folder):
            p.error(f"FOLDER is to have {FILES['static']}.py")

    return suite.main(SUITE, p, check)


if __name__ == "__main__":
    sys.exit(main())
