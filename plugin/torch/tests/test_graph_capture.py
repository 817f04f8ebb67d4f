"""Recorded graphs: that replays compute what eager work does, what a recording refuses, memory."""

from __future__ import annotations

import copy
import gc
import unittest
from collections.abc import Callable

import torch
import torch_ocl  # noqa: F401  registers ocl where no entry point is installed
from gpu_style import IS_GPU_STYLE, THOROUGH, run_again
from graph_case import Block, Case, Elsewhere, Work, mlp, recorded
from torch.nn import functional


class Replays(Elsewhere, Case):
    @unittest.skipIf(IS_GPU_STYLE or THOROUGH, "all of them run so")
    def test_with_structures_in_memory(self) -> None:
        """As GPUs with discrete memory have them: what a launch reads is part of the graph."""
        names = ("new_inputs", "steps_of_training", "any_stream", "custom_kernels")
        settings = {"OCLTENSOR_LAUNCH_THREAD": "1", "OCLTENSOR_CAPS": "structs_by_value=0"}
        run_again(self, *names, OCLTENSOR_KERNEL_STYLE="gpu", **settings)

    def test_nothing_runs_before_the_replay(self) -> None:
        x, y = torch.ones(4, device="ocl"), torch.zeros(4, device="ocl")
        (x + 1).add_(y)
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            self.assertTrue(torch.ocl.is_current_stream_capturing())
            before = torch.ocl.counters()["launches"]
            y.add_(x + 1)
            self.assertEqual(torch.ocl.counters()["launches"], before)
        self.assertFalse(torch.ocl.is_current_stream_capturing())
        self.same(y, torch.zeros(4))
        graph.replay()
        self.same(y, torch.full((4,), 2.0))
        graph.replay()
        self.same(y, torch.full((4,), 4.0))
        self.assertEqual(torch.ocl.counters()["launches"] - before, 2 * graph.info()["launches"])

    def test_new_inputs_give_new_results(self) -> None:
        model, x = mlp(), torch.randn(8, 16, device="ocl")
        with torch.no_grad():
            graph, y = recorded(lambda: model(x))
            for _ in range(3):
                x.copy_(torch.randn(8, 16))
                graph.replay()
                self.same(y, model(x))

    def test_steps_of_training(self) -> None:
        optimizers = {
            "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
            "one by one": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=False),
            "AdamW": lambda p: torch.optim.AdamW(p, 0.01, capturable=True),
            "fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
            "RMSprop": lambda p: torch.optim.RMSprop(p, 0.01, capturable=True),
        }
        for name, make in optimizers.items():
            with self.subTest(name):
                self.train(make, set_to_none=name != "SGD")

    def train(self, make: Callable[..., torch.optim.Optimizer], set_to_none: bool) -> None:
        tokens = torch.randint(50, (2, 8), device="ocl")
        model = Block().to("ocl")
        other = copy.deepcopy(model)

        def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = model(tokens)
            loss.backward()
            optimizer.step()
            return loss

        ours, theirs = make(model.parameters()), make(other.parameters())
        side = torch.ocl.Stream()
        side.wait_stream(torch.ocl.current_stream())
        with torch.ocl.stream(side):
            step(model, ours)
            step(model, ours)
        torch.ocl.current_stream().wait_stream(side)
        ours.zero_grad(set_to_none=set_to_none)
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            loss = step(model, ours)
        step(other, theirs)
        step(other, theirs)
        for _ in range(3):
            tokens.copy_(torch.randint(50, (2, 8)))
            graph.replay()
            self.same(loss, step(other, theirs))
            for a, b in zip(model.parameters(), other.parameters(), strict=True):
                self.same(a, b)
                self.same(a.grad, b.grad)

    def test_operators(self) -> None:
        x = torch.randn(6, 8, device="ocl")
        weight = torch.randn(4, 6, 3, device="ocl")
        index = torch.tensor([5, 0, 2], device="ocl")
        work = {
            "reductions": lambda: (x.sum(0), x.argmax(1), x.std(), x.logsumexp(1)),
            "sort": lambda: (*x.sort(1), *x.topk(3)),
            "scan": lambda: x.cumsum(1).cumprod(0),
            "index": lambda: (x[index], x.index_add(0, index, x[:3]), x.gather(1, index[:, None])),
            "convolution": lambda: functional.conv1d(x[None], weight),
            "pool": lambda: functional.max_pool1d(x[None], 2),
            "norm": lambda: functional.batch_norm(x, None, None, training=True),
            "copies": lambda: (x.t().contiguous(), torch.cat([x, x * 2]), x.clone(), x.half()),
            "fills": lambda: torch.zeros_like(x).add_(x).tril_(),
            "lists": lambda: torch._foreach_mul([x, x + 1, x * 2], 3.0),
            "products": lambda: (x @ x.t(), torch.einsum("ij,kj->ik", x, x)),
            "fft": lambda: torch.fft.rfft(x).abs(),
            "where": lambda: torch.where(x > 0, x, torch.exp(x)),
        }
        for name, run in work.items():
            with self.subTest(name):
                graph, got = recorded(run)
                for _ in range(2):
                    x.copy_(torch.randn(6, 8))
                    graph.replay()
                    wanted = run()
                    if isinstance(wanted, torch.Tensor):
                        wanted, got = (wanted,), (got,)
                    for a, b in zip(got, wanted, strict=True):
                        self.same(a, b)
                    got = got[0] if len(got) == 1 else got

    def test_on_any_stream(self) -> None:
        x = torch.zeros(1000, device="ocl")
        graph, _ = recorded(lambda: x.add_(1))
        start = x[0].item()
        side = torch.ocl.Stream()
        for _ in range(5):
            side.wait_stream(torch.ocl.current_stream())
            with torch.ocl.stream(side):
                graph.replay()
            torch.ocl.current_stream().wait_stream(side)
            graph.replay()
        self.same(x, torch.full((1000,), start + 10))

    def test_on_the_default_stream(self) -> None:
        x = torch.zeros(10, device="ocl")
        graph, y = recorded(lambda: x * 2 + 1, stream=torch.ocl.default_stream())
        x.fill_(3)
        graph.replay()
        self.same(y, torch.full((10,), 7.0))

    def test_pinned_memory_is_read_again(self) -> None:
        x, host = torch.zeros(100, device="ocl"), torch.zeros(100).pin_memory()
        graph, y = recorded(lambda: x.copy_(host, non_blocking=True) * 2)
        for value in (3.0, 4.0):
            torch.ocl.synchronize()
            host.fill_(value)
            graph.replay()
            self.same(y, torch.full((100,), 2 * value))

    def test_custom_kernels(self) -> None:
        library = [
            torch.ocl.compile_kernel(
                "__kernel void scale(__global float* x, __global const float* factors) {"
                "  x[get_global_id(0)] *= factors[get_global_id(0) % 2]; }"
            )
        ]
        x = torch.ones(256, device="ocl")[128:]
        graph, _ = recorded(lambda: library[0].scale(x, [2.0, 3.0], threads=x.numel()))
        library.clear()
        gc.collect()
        x.fill_(1)
        graph.replay()
        graph.replay()
        self.same(x, torch.tensor([4.0, 9.0]).repeat(64))

    def test_values_that_only_the_device_sees(self) -> None:
        x, index = torch.arange(4.0, device="ocl"), torch.tensor([0, 1], device="ocl")
        graph, _ = recorded(lambda: x[index])
        torch.ocl.synchronize()
        graph.replay()
        torch.ocl.synchronize()
        index.fill_(7)
        for stream in (torch.ocl.current_stream(), torch.ocl.Stream()):
            torch.ocl.synchronize()
            with torch.ocl.stream(stream):
                graph.replay()
                with self.assertRaisesRegex(IndexError, "index 7 is out of range"):
                    stream.synchronize()

    @unittest.skipUnless(hasattr(torch.accelerator, "Graph"), "this torch has no such class")
    def test_accelerator_graphs(self) -> None:
        x = torch.zeros(4, device="ocl")
        x += 1
        graph = torch.accelerator.Graph()
        with torch.Stream("ocl"), graph:
            x += 1
        for _ in range(2):
            graph.replay()
        self.same(x, torch.full((4,), 3.0))
        self.assertEqual(len(graph.pool()), 2)
        graph.reset()


class Refusals(Case):
    def fails(self, text: str, body: Work) -> None:
        """The body raises in a recording, which then gives no graph; later ones work."""
        graph = torch.ocl.OCLGraph()
        with self.assertRaisesRegex(RuntimeError, text), torch.ocl.graph(graph):
            body()
        with self.assertRaisesRegex(RuntimeError, "no recorded work"):
            graph.replay()
        with self.assertRaisesRegex(RuntimeError, f"recording of a graph failed.*{text}"):
            with torch.ocl.graph(graph):
                with self.assertRaises(RuntimeError):
                    body()
        x = torch.ones(3, device="ocl")
        with torch.ocl.graph(graph):
            y = x + 1
        graph.replay()
        self.same(y, torch.full((3,), 2.0))

    def test_what_needs_results(self) -> None:
        x = torch.ones(4, device="ocl")
        (x * 2).nonzero()
        body = {
            "reading results": lambda: (x * 2).sum().item(),
            "reading results on": lambda: (x * 2).cpu(),
            "reading results on the": lambda: (x * 2).nonzero(),
            "copying from the host": lambda: torch.tensor([1.0, 2.0], device="ocl"),
            "copying from": lambda: x.copy_(torch.zeros(4)),
            "synchronisation": torch.ocl.synchronize,
            "recording an event": lambda: torch.ocl.Event().record(),
        }
        for text, run in body.items():
            with self.subTest(text):
                self.fails(text, run)

    def test_the_operator_is_named(self) -> None:
        x = torch.ones(4, device="ocl")
        x.nonzero()
        self.fails("nonzero", x.nonzero)

    def test_optimizers_that_count_on_the_host(self) -> None:
        model = mlp()
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        model(torch.ones(2, 16, device="ocl")).sum().backward()
        optimizer.step()
        with self.assertRaisesRegex(RuntimeError, "capturable=True"):
            with torch.ocl.graph(torch.ocl.OCLGraph()):
                optimizer.step()
        optimizer.step()

    def test_one_recording_at_a_time(self) -> None:
        x, first, second = torch.ones(4, device="ocl"), torch.ocl.OCLGraph(), torch.ocl.OCLGraph()
        with torch.ocl.graph(first):
            x.add_(1)
        with torch.ocl.graph(second):
            with self.assertRaisesRegex(RuntimeError, "holds recorded work"):
                first.capture_begin()
            with self.assertRaisesRegex(RuntimeError, "being recorded already"):
                second.capture_begin()
            with self.assertRaisesRegex(RuntimeError, "graph"):
                torch.ocl.OCLGraph().capture_begin()
            with torch.ocl.stream(torch.ocl.Stream()):
                with self.assertRaisesRegex(RuntimeError, "another graph is being recorded"):
                    torch.ocl.OCLGraph().capture_begin()
            x.add_(2)
        second.replay()
        self.same(x, torch.full((4,), 3.0))
        with self.assertRaisesRegex(RuntimeError, "not being recorded"):
            second.capture_end()
        self.fails("replaying another graph", first.replay)

    def test_an_exception_ends_the_recording(self) -> None:
        model, x = mlp(), torch.randn(8, 16, device="ocl")
        model(x).sum().backward()
        model.zero_grad()
        gc.collect()
        torch.ocl.synchronize()
        before = torch.ocl.memory_allocated()
        for _ in range(3):
            graph = torch.ocl.OCLGraph()
            with self.assertRaisesRegex(ValueError, "stop"), torch.ocl.graph(graph):
                loss = model(x).sum()
                loss.backward()
                raise ValueError("stop")
            self.assertFalse(torch.ocl.is_current_stream_capturing())
            del graph, loss
            model.zero_grad()
            gc.collect()
            torch.ocl.synchronize()
            self.assertEqual(torch.ocl.memory_allocated(), before)

    def test_other_streams_work_meanwhile(self) -> None:
        x, y = torch.ones(4, device="ocl"), torch.ones(4, device="ocl")
        x + y
        graph, side = torch.ocl.OCLGraph(), torch.ocl.Stream()
        with torch.ocl.graph(graph):
            x.add_(1)
            with torch.ocl.stream(side):
                y.add_(1)
                side.synchronize()
                self.assertEqual(y.sum().item(), 8)
        graph.replay()
        self.same(x, torch.full((4,), 2.0))


class Memory(Case):
    def test_is_kept_until_the_reset(self) -> None:
        x = torch.randn(64, 64, device="ocl")
        torch.ocl.synchronize()
        before = torch.ocl.memory_allocated()
        graph, y = recorded(lambda: (x @ x).relu() @ x)
        graph.replay()
        wanted = y.cpu()
        # If the pool gave its memory to others, a replay would write into theirs.
        others = [torch.full((64, 64), float(i), device="ocl") for i in range(200)]
        graph.replay()
        self.same(y, wanted)
        for i, other in enumerate(others):
            self.same(other, torch.full((64, 64), float(i)))
        del others, other
        graph.reset()
        self.same(y, wanted)
        del y
        torch.ocl.synchronize()
        self.assertEqual(torch.ocl.memory_allocated(), before)

    def test_comes_back_to_the_driver(self) -> None:
        x = torch.randn(4096, 1024, device="ocl")
        (x + 1) * 2 + (x * 3)
        torch.ocl.empty_cache()
        before = torch.ocl.memory_reserved()
        graph = torch.ocl.OCLGraph()
        with torch.ocl.graph(graph):
            y = (x + 1) * 2 + (x * 3)
        torch.ocl.empty_cache()
        self.assertGreater(torch.ocl.memory_reserved(), before)
        graph.replay()
        del y, graph
        gc.collect()
        torch.ocl.synchronize()
        torch.ocl.empty_cache()
        self.assertLessEqual(torch.ocl.memory_reserved(), before)

    def test_graphs_share_a_pool(self) -> None:
        x = torch.randn(1024, 1024, device="ocl")
        (x + 1).exp()

        def reserved(pools: list[tuple[int, int] | None]) -> int:
            torch.ocl.empty_cache()
            before = torch.ocl.memory_reserved()
            kept = []
            for pool in pools:
                graph = torch.ocl.OCLGraph()
                with torch.ocl.graph(graph, pool=pool):
                    y = (x + 1).exp().sum()
                graph.replay()
                self.same(y, (x + 1).exp().sum())
                kept.append((graph, y))
            torch.ocl.empty_cache()
            return torch.ocl.memory_reserved() - before

        pool = torch.ocl.graph_pool_handle()
        shared, own = reserved([pool] * 4), reserved([None] * 4)
        self.assertLess(shared, own / 2)
        first = torch.ocl.OCLGraph()
        with torch.ocl.graph(first):
            y = x + 1
        with torch.ocl.graph(torch.ocl.OCLGraph(), pool=first.pool()):
            z = x + 2
        self.assertNotEqual(y.data_ptr(), z.data_ptr())

    def test_parameters_may_go_before_the_graph(self) -> None:
        x = torch.randn(8, 16, device="ocl")
        model = [mlp()]
        graph, y = recorded(lambda: model[0](x))
        model.clear()
        gc.collect()
        torch.ocl.empty_cache()
        graph.replay()  # computes with whatever is there now, and harms nothing
        torch.ocl.synchronize()
        self.assertEqual(y.shape, (8, 4))


if __name__ == "__main__":
    unittest.main()
