"""Wrong values that only the device sees: the next wait raises them, names them, and the stream
goes on."""

import os
import subprocess
import sys
import unittest

import torch
import torch.nn.functional as F
import torch_ocl  # noqa: F401
from gpu_style import InGpuStyle

LONG = torch.int64


def ocl(*values, dtype=LONG):
    return torch.tensor(values, dtype=dtype, device="ocl")


def x(*sizes):
    return torch.ones(*sizes, device="ocl")


def ctc(targets):
    return F.ctc_loss(
        x(5, 1, 4).log_softmax(2), targets, torch.tensor([5]), torch.tensor([2]), reduction="none"
    )


# name: what calls it, the exception, what its text says, and what the same call does on the CPU
# (None: nothing)
FAULTS = {
    "embedding": (
        lambda: F.embedding(ocl(0, 4), x(4, 3)),
        IndexError,
        "embedding.out: index 4 is out of range for dimension 0 of size 4",
    ),
    "embedding negative": (
        lambda: F.embedding(ocl(-1), x(4, 3)),
        IndexError,
        "index -1 is out of range for dimension 0 of size 4",
    ),
    "embedding_bag": (
        lambda: F.embedding_bag(ocl(0, 9), x(4, 3), ocl(0)),
        IndexError,
        "index 9 .* dimension 0 of size 4",
    ),
    "gather": (
        lambda: x(2, 3).gather(1, ocl([0], [3])),
        IndexError,
        "gather.out: index 3 is out of range for dimension 1 of size 3",
    ),
    "gather wraps nothing": (lambda: x(3).gather(0, ocl(-1)), IndexError, "index -1"),
    "take": (lambda: x(2, 3).take(ocl(6)), IndexError, "index 6 .* size 6"),
    "index_select": (
        lambda: x(5, 4).index_select(1, ocl(1, 7)),
        IndexError,
        "index_select.out: index 7 .* dimension 1 of size 4",
    ),
    "index": (
        lambda: x(5, 4)[ocl(0, 5)],
        IndexError,
        "index.Tensor_out: index 5 .* dimension 0 of size 5",
    ),
    "index of two": (
        lambda: x(5, 4)[ocl(0, 1), ocl(0, -5)],
        IndexError,
        "index -5 .* dimension 1 of size 4",
    ),
    "index strided": (
        lambda: x(5, 4, 6)[:, :, ocl(0, 6)],
        IndexError,
        "index 6 .* dimension 2 of size 6",
    ),
    "index int32": (lambda: x(5)[ocl(5, dtype=torch.int32)], IndexError, "index 5"),
    "index_put": (
        lambda: x(5).index_put_((ocl(5),), x(1)),
        IndexError,
        "index 5 .* dimension 0 of size 5",
    ),
    "index_put sums": (
        lambda: x(5).index_put_((ocl(-6),), x(1), accumulate=True),
        IndexError,
        "index -6",
    ),
    "index_add": (
        lambda: x(5).index_add_(0, ocl(5), x(1)),
        IndexError,
        "index_add.out: index 5 .* size 5",
    ),
    "index_copy": (lambda: x(5).index_copy_(0, ocl(5), x(1)), IndexError, "index 5"),
    "index_fill": (lambda: x(5).index_fill_(0, ocl(5), 2.0), IndexError, "index 5"),
    "scatter": (
        lambda: x(2, 3).scatter_(1, ocl([3]), 2.0),
        IndexError,
        "scatter.*: index 3 is out of range for dimension 1 of size 3",
    ),
    "scatter tensor": (
        lambda: x(2, 3).scatter(0, ocl([2, 0, 1]), x(1, 3)),
        IndexError,
        "index 2 .* dimension 0 of size 2",
    ),
    "scatter_add": (
        lambda: x(3).scatter_add_(0, ocl(-1), x(1)),
        IndexError,
        "scatter_add.out: index -1",
    ),
    "scatter_reduce": (
        lambda: x(3).scatter_reduce_(0, ocl(3), x(1), "amax"),
        IndexError,
        "index 3",
    ),
    "max_unpool": (lambda: F.max_unpool2d(x(1, 1, 1, 1), ocl([[[4]]]), 2), IndexError, "index 4"),
    "put": (lambda: x(3).put_(ocl(3), x(1)), IndexError, "index 3"),
    "cross_entropy": (
        lambda: F.cross_entropy(x(2, 3), ocl(0, 3)),
        IndexError,
        "target 3 is out of range: there are 3 classes",
    ),
    "nll_loss of each": (
        lambda: F.nll_loss(x(2, 3), ocl(0, -1), reduction="none"),
        IndexError,
        "target -1",
    ),
    "nll_loss2d": (
        lambda: F.nll_loss(x(1, 2, 2, 2), ocl([[0, 1], [2, 0]])),
        IndexError,
        "target 2 .* 2 classes",
    ),
    "multi_margin_loss": (lambda: F.multi_margin_loss(x(2, 3), ocl(0, 5)), IndexError, "index 5"),
    "multilabel_margin_loss": (
        lambda: F.multilabel_margin_loss(x(1, 3), ocl([0, 3, -1])),
        IndexError,
        "target 3 is out of range: there are 3 classes",
    ),
    "ctc_loss": (
        lambda: ctc(ocl([1, 9])),
        IndexError,
        "_ctc_loss.out: target 9 is out of range: there are 4 classes",
    ),
    "ctc_loss negative": (lambda: ctc(ocl([-1, 2])), IndexError, "target -1 .* 4 classes"),
    "ctc_loss int32": (
        lambda: ctc(ocl([4, 2], dtype=torch.int32)),
        IndexError,
        "target 4 .* 4 classes",
    ),
    "ctc_loss of labels in one row": (lambda: ctc(ocl(1, 5)), IndexError, "target 5 .* 4 classes"),
    "ctc_loss with lengths on the device": (
        lambda: F.ctc_loss(
            x(5, 1, 4).log_softmax(2), ocl([1, 9]), ocl(5), ocl(2), zero_infinity=True
        ),
        IndexError,
        "target 9 .* 4 classes",
    ),
    "binary_cross_entropy input": (
        lambda: F.binary_cross_entropy(ocl(0.5, 2, dtype=torch.float32), x(2)),
        RuntimeError,
        r"all elements of input should be between 0 and 1 \(element 1 is not\)",
    ),
    "binary_cross_entropy target": (
        lambda: F.binary_cross_entropy(x(3) / 2, ocl(0, 1, -1, dtype=torch.float32)),
        RuntimeError,
        r"all elements of target should be between 0 and 1 \(element 2 is not\)",
    ),
    "binary_cross_entropy NaN": (
        lambda: F.binary_cross_entropy(
            ocl(0.5, float("nan"), dtype=torch.float32)[:, None].expand(2, 2),
            x(2, 2),
            reduction="none",
        ),
        RuntimeError,
        "all elements of input",
    ),
    "offsets late": (
        lambda: F.embedding_bag(ocl(0, 1), x(4, 3), ocl(0, 3), mode="max"),
        IndexError,
        "_ocl_rows_of.out: offset 3 is out of range: there are 2 elements",
    ),
    "offsets of nothing": (
        lambda: F.embedding_bag(ocl(), x(4, 3), ocl(0, 1), include_last_offset=True),
        IndexError,
        "offset 1 is out of range: there are 0 elements",
    ),
    "offsets not from 0": (
        lambda: F.embedding_bag(ocl(0, 1), x(4, 3), ocl(1, 1)),
        IndexError,
        "offset 1 at the start or end must be 0",
    ),
    "offsets unsorted": (
        lambda: F.embedding_bag(ocl(0, 1, 2), x(4, 3), ocl(0, 2, 1)),
        IndexError,
        "offsets descend: 1 follows 2",
    ),
    "segments unsorted": (
        lambda: torch.segment_reduce(x(6), "sum", offsets=ocl(0, 4, 2, 6)),
        IndexError,
        "offsets descend: 2 follows 4",
    ),
    "segments late": (
        lambda: torch.segment_reduce(x(6), "max", offsets=ocl(0, 4, 9)),
        IndexError,
        "offset 9 .* 6 elements",
    ),
    "segments of negative length": (
        lambda: torch.segment_reduce(x(6), "sum", lengths=ocl(7, -1), unsafe=True),
        IndexError,
        "offset 7 .* 6 elements|offsets descend: 6 follows 7",
    ),
    "repeat_interleave negative": (
        lambda: torch.repeat_interleave(ocl(1, -1, 2), output_size=2),
        IndexError,
        "offsets descend: 0 follows 1",
    ),
    "repeat_interleave of another sum": (
        lambda: torch.repeat_interleave(ocl(1, 1, 2), output_size=5),
        IndexError,
        "offset 4 at the start or end must be 5",
    ),
    "jagged beyond the elements": (
        lambda: torch.ops.aten._jagged_to_padded_dense_forward(x(6, 2), [ocl(0, 2, 8)], [7], 0.0),
        IndexError,
        "index_select.out: index [67] is out of range for dimension 0 of size 6",
    ),
    "jagged of another sum": (
        lambda: torch.ops.aten._padded_dense_to_jagged_forward(x(2, 4, 2), [ocl(0, 2, 4)], 6),
        IndexError,
        "offset 4 at the start or end must be 6",
    ),
    "one_hot": (lambda: F.one_hot(ocl(0, 3), 3), IndexError, "index 3 .* size 3"),
    "one_hot negative": (lambda: F.one_hot(ocl(-1, 1), 3), IndexError, "index -1"),
    "multinomial negative": (
        lambda: torch.multinomial(ocl(1, -1, dtype=torch.float32), 1),
        RuntimeError,
        "negative or not finite",
    ),
    "multinomial NaN": (
        lambda: torch.multinomial(ocl(1, float("nan"), dtype=torch.float32), 1, True),
        RuntimeError,
        "not finite",
    ),
    "multinomial zero": (
        lambda: torch.multinomial(x(2, 3) * ocl([1], [0]), 2, True),
        RuntimeError,
        r"not positive \(row 1\)",
    ),
    "bernoulli": (
        lambda: torch.bernoulli(ocl(0.5, 2, dtype=torch.float32)),
        RuntimeError,
        "not between 0 and 1",
    ),
    "bernoulli_ tensor": (
        lambda: x(2).bernoulli_(ocl(0.5, -1, dtype=torch.float32)),
        RuntimeError,
        "not between 0 and 1",
    ),
    "floor_divide": (lambda: ocl(4, 5) // ocl(2, 0), RuntimeError, "ZeroDivisionError"),
    "remainder": (lambda: ocl([4, 5], [6, 7]) % ocl([2], [0]), RuntimeError, "ZeroDivisionError"),
    "fmod": (
        lambda: torch.fmod(ocl(4, 5, 6, 7)[::2], ocl(2, 1, 0, 1)[::2]),
        RuntimeError,
        "ZeroDivisionError",
    ),
    "div trunc": (
        lambda: torch.div(ocl(4), ocl(0), rounding_mode="trunc"),
        RuntimeError,
        "ZeroDivisionError",
    ),
}

# Wrong numbers that the host sees: at once.
AT_ONCE = {
    "number divisor": (lambda: ocl(4) // 0, "ZeroDivisionError"),
    "number remainder": (lambda: ocl(4) % 0, "ZeroDivisionError"),
    "fill float32": (
        lambda: x(2).fill_(1e300),
        "cannot be converted to type float32 without overflow",
    ),
    "fill float16": (lambda: x(2).half().fill_(70000), "type float16 without overflow"),
    "fill int8": (lambda: ocl(1).char().fill_(200), "type int8 without overflow"),
    "full int32": (
        lambda: torch.full((2,), 2**31, dtype=torch.int32, device="ocl"),
        "type int32 without overflow",
    ),
    "masked_fill": (
        lambda: x(2).masked_fill_(x(2).bool(), -1e300),
        "type float32 without overflow",
    ),
    "copy to itself spread": (
        lambda: x(1).expand(3).copy_(x(3)),
        "more than one element of the written-to tensor",
    ),
    "copy over itself": (
        lambda: (lambda t: t[1:].copy_(t[:-1]))(x(4)),
        "some elements of the input tensor and the written-to tensor",
    ),
}


class Faults(InGpuStyle, unittest.TestCase):
    def test_the_next_wait_raises(self) -> None:
        for name, (call, error, text) in FAULTS.items():
            with self.subTest(name):
                with self.assertRaisesRegex(error, text):
                    call()
                    torch.ocl.synchronize()
                torch.ocl.synchronize()  # once only
                self.assertEqual((x(2) + 1).tolist(), [2, 2])  # and the stream goes on

    def test_at_once(self) -> None:
        for name, (call, text) in AT_ONCE.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, text):
                call()

    def test_what_the_cpu_takes_is_taken(self) -> None:
        x(2).fill_(float("inf")), x(2).half().fill_(float("nan")), ocl(1).to(torch.uint8).fill_(-1)
        x(2).fill_(torch.finfo(torch.float32).min), x(2).bfloat16().masked_fill_(x(2).bool(), -1e38)
        (
            x(5)[ocl(-5, 4)],
            x(5).index_put_((ocl(-5),), x(1)),
            F.embedding(ocl(3), x(4, 3), padding_idx=3),
        )
        F.cross_entropy(x(2, 3), ocl(0, -100)), torch.bernoulli(ocl(0, 1, dtype=torch.float32))
        torch.multinomial(ocl(0, 1, dtype=torch.float32), 1), x(4)[x(4) > 2], ocl(0) // ocl(3)
        torch.ocl.synchronize()

    def test_results_raise_too(self) -> None:
        for wait in (lambda y: y.sum().item(), lambda y: y.cpu(), lambda y: y.tolist()):
            with self.assertRaises(IndexError):
                wait(x(3)[ocl(3)])

    def test_the_rest_of_the_work_is_done(self) -> None:
        rows, out = x(4, 3), torch.zeros(3, 2, device="ocl")
        with self.assertRaises(IndexError):
            read = rows.index_select(0, ocl(1, 4, 2))
            out.index_copy_(0, ocl(0, 3, 2), x(3, 2))
            torch.ocl.synchronize()
        self.assertEqual(read.sum(1).tolist(), [3, 0, 3])
        self.assertEqual(out.sum(1).tolist(), [2, 0, 2])

    def test_each_stream_has_its_own(self) -> None:
        stream = torch.ocl.Stream()
        with torch.ocl.stream(stream):
            x(3)[ocl(3)]
        torch.ocl.current_stream().synchronize()
        with self.assertRaisesRegex(IndexError, "index 3"):
            stream.synchronize()

    def test_the_devices_wait_tells_of_one_stream_at_a_time(self) -> None:
        for index in (4, 5):
            with torch.ocl.stream(torch.ocl.Stream()):
                x(3)[ocl(index)]
        found = []
        for _ in range(2):
            with self.assertRaises(IndexError) as raised:
                torch.ocl.synchronize()
            found.append(str(raised.exception).split(" is out")[0][-7:])
        self.assertEqual(sorted(found), ["index 4", "index 5"])
        torch.ocl.synchronize()

    def test_waits_of_the_allocator_leave_it_to_the_users(self) -> None:
        slow = x(1 << 20)
        x(3)[ocl(3)]
        for _ in range(20):
            slow = slow.sin()
        del slow
        torch.ocl.empty_cache()
        with self.assertRaises(IndexError):
            torch.ocl.synchronize()

    def test_backward_of_a_wrong_target(self) -> None:
        scores = x(2, 3).requires_grad_()
        with self.assertRaises(IndexError):
            F.cross_entropy(scores, ocl(0, 3)).backward()
            torch.ocl.synchronize()
        torch.ocl.synchronize()

    def test_backward_of_a_wrong_label(self) -> None:
        scores = x(5, 1, 4).requires_grad_()
        with self.assertRaisesRegex(IndexError, "target 9"):
            loss = F.ctc_loss(
                scores.log_softmax(2), ocl([1, 9]), torch.tensor([5]), torch.tensor([2])
            )
            loss.backward()
            torch.ocl.synchronize()
        with self.assertRaisesRegex(IndexError, "_ctc_loss_backward.out: target 9"):
            loss, alphas = torch.ops.aten._ctc_loss(
                x(5, 1, 4).log_softmax(2), ocl([1, 2]), [5], [2]
            )
            torch.ops.aten._ctc_loss_backward(
                x(1), x(5, 1, 4).log_softmax(2), ocl([1, 9]), [5], [2], loss, alphas, 0
            )
            torch.ocl.synchronize()
        torch.ocl.synchronize()

    def test_switched_off(self) -> None:
        code = (
            "import torch, torch_ocl; x = torch.ones(3, device='ocl'); i = torch.tensor([0, 3], "
            "device='ocl');"
            "print(x[i].tolist(), (i // torch.zeros_like(i)).shape)"
        )
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OCLTENSOR_CHECK_VALUES": "0"},
            capture_output=True,
            text=True,
            timeout=1800,
        )
        self.assertEqual(run.stdout.strip(), "[1.0, 0.0] torch.Size([2])", run.stderr)


if __name__ == "__main__":
    unittest.main()
