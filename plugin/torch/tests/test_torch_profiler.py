"""torch.profiler and torch.autograd.profiler with kernels and copies of ocl."""

import importlib.util
import json
import pathlib
import tempfile
import unittest
from collections import defaultdict

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

KINETO = [int(part) for part in torch.__version__.split("+")[0].split(".")[:2]] >= [2, 13]


def gpt2_step():
    """A training step of a small GPT-2, and the tensors that it changed."""
    from models.language import gpt2

    torch.manual_seed(1)
    case = gpt2()
    model = case.model.to("ocl").train()
    inputs = {k: v.to("ocl") for k, v in case.inputs.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        optimizer.step()
        return loss.detach().cpu()

    return step, model


@unittest.skipUnless(KINETO, "this torch's kineto takes no profiler of an out-of-tree device")
class Kineto(unittest.TestCase):
    def profile(self, work, **options):
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1], **options
        ) as p:
            work()
            torch.ocl.synchronize()
        return p

    def agrees(self, work):
        """Device time in torch's table against our own statistics of the same run."""
        work()
        torch.ocl.profiler.reset_statistics()
        p = self.profile(work)
        ours = torch.ocl.profiler.statistics()
        total = sum(row["total_ms"] for kind in ("operators", "copies") for row in ours[kind])
        rows = p.key_averages()
        operators = (
            sum(r.self_device_time_total for r in rows if r.device_type == DeviceType.CPU) / 1e3
        )
        kernels = (
            sum(r.self_device_time_total for r in rows if r.device_type == DeviceType.PrivateUse1)
            / 1e3
        )
        self.assertGreater(total, 0)
        self.assertLess(abs(kernels - total), 0.05 * total)
        self.assertLess(abs(operators - total), 0.05 * total)  # so every command found its operator
        return p, ours

    def test_training_step(self) -> None:
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)
        ).to("ocl")
        x = torch.randn(32, 64).to("ocl")
        p, ours = self.agrees(lambda: model(x).square().mean().backward())
        rows = {r.key: r for r in p.key_averages()}
        self.assertGreater(rows["aten::addmm"].self_device_time_total, 0)
        self.assertIn("OCL", p.key_averages().table(sort_by="self_device_time_total"))
        counts = {r["name"]: r["count"] for r in ours["kernels"]}
        self.assertEqual({n: rows[n].count for n in counts}, counts)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "needs transformers")
    def test_gpt2(self) -> None:
        step, model = gpt2_step()
        p, _ = self.agrees(step)
        with_time = {
            r.key
            for r in p.key_averages()
            if r.device_type == DeviceType.CPU and r.self_device_time_total > 0
        }
        self.assertTrue(any("mm" in name for name in with_time), with_time)
        again, other = gpt2_step()
        for _ in range(2):
            again()
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            self.assertTrue(torch.equal(a.cpu(), b.cpu()))  # profiled or not

    def test_chrome_trace(self) -> None:
        x = torch.randn(1 << 16)

        def work():
            with torch.profiler.record_function("mine"):
                return (x.to("ocl") * 2).cpu()

        p = self.profile(work)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            p.export_chrome_trace(str(path))
            events = json.loads(path.read_text())["traceEvents"]
        by_kind = defaultdict(list)
        for e in events:
            by_kind[e.get("cat")].append(e)
        (kernel,) = by_kind["kernel"]
        self.assertEqual(kernel["args"]["operator"], "mul.out")
        self.assertEqual(
            sorted(e["name"] for e in by_kind["gpu_memcpy"]), ["copy to device", "copy to host"]
        )
        self.assertEqual({e["args"]["bytes"] for e in by_kind["gpu_memcpy"]}, {4 << 16})
        operators = {e["args"]["External id"]: e["name"] for e in by_kind["cpu_op"]}
        self.assertEqual(operators[kernel["args"]["External id"]], "aten::mul")
        call = next(
            e for e in by_kind["privateuse1_runtime"] if e["args"]["call"] == kernel["args"]["call"]
        )
        self.assertEqual(call["name"], "mul.out")
        self.assertLessEqual(call["ts"], kernel["ts"] + 300)
        flows = defaultdict(set)
        for e in by_kind["ac2g"]:
            flows[e["id"]].add(e["ph"])
        self.assertEqual(len([ends for ends in flows.values() if ends == {"s", "f"}]), 3)
        self.assertIn(
            torch.ocl.get_device_name(0), {e["args"].get("name") for e in events if e["ph"] == "M"}
        )

    def test_memory_and_schedule(self) -> None:
        def work() -> None:
            torch.ones(1 << 16, device="ocl").add(1)

        p = self.profile(work, profile_memory=True)
        self.assertGreaterEqual(max(r.self_device_memory_usage for r in p.key_averages()), 4 << 16)
        seen = []
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
            on_trace_ready=lambda q: seen.append(
                sum(r.count for r in q.key_averages() if r.key == "aten::add")
            ),
        ) as p:
            for _ in range(5):
                work()
                p.step()
        self.assertEqual(seen, [2])

    def test_beside_our_own_trace(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            with torch.ocl.profiler.profile(path=path):
                p = self.profile(lambda: torch.ones(8, device="ocl").add(1))
                torch.ones(8, device="ocl").mul(3)
            names = {e["name"] for e in json.loads(path.read_text())["traceEvents"]}
        self.assertLess({"add.out", "mul.out"}, names)
        operators = {r.key for r in p.key_averages()}
        self.assertIn("add.out", operators)
        self.assertNotIn("mul.out", operators)


class Autograd(unittest.TestCase):
    def work(self):
        a = torch.randn(256, 256, device="ocl")
        return (a @ a).sum().item()

    def test_events_around_operators(self) -> None:
        """Without kineto's records: an event before and after each operator."""
        self.work()
        with torch.autograd.profiler.profile(use_device="ocl", use_kineto=False) as p:
            self.work()
        rows = {r.key: r for r in p.key_averages()}
        # Not aten::mm: torch joins it with its own second record, now and then, and forgets the
        # time then.
        self.assertGreater(rows["aten::matmul"].device_time_total, 0)

    @unittest.skipUnless(KINETO, "this torch's kineto takes no profiler of an out-of-tree device")
    def test_kineto(self) -> None:
        with torch.autograd.profiler.profile(use_device="ocl", use_kineto=True) as p:
            self.work()
        rows = {r.key: r for r in p.key_averages()}
        self.assertGreater(rows["aten::mm"].self_device_time_total, 0)


if __name__ == "__main__":
    unittest.main()
