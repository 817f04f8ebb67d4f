"""The lines that random programs are drawn from: {r} is the new value, {x}, {y}, {z} are earlier
ones, {a}, {b} axes of x, {t} is a type. Those that the CPU refuses are not taken."""

_FLOAT = "{x}.float().clamp(-4, 4)"
_BOUND = "{x}.clamp(-4, 4)"
# Inductor takes the variance of one value for 0, NaN and Inf among them.
_FINITE = "{x}.float().nan_to_num(0, 4, -4)"
# What gives rounded values, of any.
ROUNDED = {
    "function": tuple(
        f"{{r}} = torch.{name}({argument})"
        for argument in (_FLOAT, _BOUND)
        for name in "sin tanh sigmoid exp erf atan cos sinh expm1 square".split()
    )
    + tuple(
        f"{{r}} = torch.{name}({{x}}.float().abs().clamp(max=9) + 0.5)"
        for name in "sqrt rsqrt log log2 log1p reciprocal".split()
    )
    + tuple(
        f"{{r}} = torch.nn.functional.{name}({_BOUND})"
        for name in "gelu silu softplus elu mish hardswish leaky_relu logsigmoid".split()
    ),
    "arithmetic": (
        "{r} = {x} * {y}.clamp(-2, 2) + {z}",
        "{r} = {x} / ({y}.abs() + 1)",
        "{r} = {x} * 0.3 + {y}",
        "{r} = torch.lerp({x}, {x}.flip({a}), 0.25)",
        "{r} = torch.addcmul({x}, {y}.clamp(-1, 1), {x}.flip({a}), value=0.5)",
        "{r} = torch.atan2({x}.float(), {y}.float().abs() + 1)",
        "{r} = ({x}.float().abs() + 0.5).clamp(max=4).pow(1.5)",
        "{r} = {x}.clamp(-4, 4).sigmoid() * {x}.sum({a}, keepdim=True).clamp(-3, 3)",
    ),
    "reduction": (
        "{r} = {x} - {x}.float().mean({a}, keepdim=True)",
        "{r} = {x}.float().mean({a})",
        "{r} = {x}.float().mean()",
        "{r} = {x}.softmax({a})",
        "{r} = {x}.log_softmax({a})",
        "{r} = " + _FINITE + ".var({a}, unbiased=False, keepdim=True) + {x}",
        "{r} = (" + _FINITE + ".var({a}, unbiased=False) + 0.1).sqrt()",
        "{r} = torch.logsumexp({x}.float(), {a}, keepdim=True) + {x}",
        "{r} = torch.nn.functional.layer_norm({x}, {x}.shape[-1:], eps=0.1)",
        "{r} = {x} * torch.rsqrt({x}.float().square().mean(-1, keepdim=True) + 0.1)",
        "{r} = {x}.float().cumsum({a}) * 0.125",
        "{r} = {x}.float().norm(dim={a})",
        "{r} = torch.logcumsumexp({x}.float().clamp(-4, 4), {a})",
        "{r} = {x}.clamp(-2, 2).float() @ {x}.clamp(-2, 2).float().transpose(-1, -2)",
    ),
}
# What keeps values as they are, so that any may come. What is flattened has no gaps: AOTAutograd
# takes a flattened view with gaps for one without, where sizes vary (torch 2.13, every device).
MOVES = {
    "view": (
        "{r} = {x}.transpose({a}, {b})",
        "{r} = {x}.movedim({a}, {b})",
        "{r} = {x}.contiguous().view(-1, {x}.shape[-1])",
        "{r} = {x}.contiguous().flatten()",
        "{r} = {x}.narrow({a}, {x}.shape[{a}] // 3, {x}.shape[{a}] // 2)",
        "{r} = {x}.unsqueeze({a}).expand(*{x}.shape[:{a}], 2, *{x}.shape[{a}:])",
        "{r} = {x}.select({a}, {x}.shape[{a}] - 1)",
        "{r} = {x}[..., ::2]",
        "{r} = {x}[..., 1:]",
        "{r} = {x}[1::3]",
        "{r} = {x}.diagonal(0, {a}, {b})",
        "{r} = {x}.unfold({a}, 2, 1)",
        "{r} = {x}.squeeze()",
        "{r} = {x}.split(({x}.shape[{a}] + 1) // 2, {a})[-1]",
    ),
    "move": (
        "{r} = {x}.flip({a})",
        "{r} = {x}.roll(1, {a})",
        "{r} = torch.cat([{x}, {x}.flip({a})], {a})",
        "{r} = torch.cat([{x}, {y}], {a})",
        "{r} = torch.stack([{x}, {x}], {a})",
        "{r} = torch.nn.functional.pad({x}, (1, 2), value=3)",
        "{r} = torch.nn.functional.pad({x}, (2, -1))",
        "{r} = {x}.repeat_interleave(2, {a})",
        "{r} = {x}.repeat(2, *[1] * ({x}.dim() - 1))",
        "{r} = {x}.contiguous()",
        "{r} = {x}.tril(1)",
        "{r} = {x}.triu()",
        "{r} = torch.where(torch.ones_like({x}, dtype=torch.bool).tril(), {x}, 0)",
        "{r} = {x} + torch.zeros_like({x})",
    ),
    "index": (
        "{r} = {x}.index_select({a}, torch.arange({x}.shape[{a}], device={x}.device).flip(0))",
        "{r} = {x}[torch.arange({x}.shape[0], device={x}.device) // 2]",
        "{r} = {x}.gather({a}, torch.zeros_like({x}, dtype=torch.int64))",
        "{r} = {x}[:, torch.arange({x}.shape[1], device={x}.device) - {x}.shape[1]]",
    ),
    "place": (
        "{r} = {x}.clone(); {r}.select({a}, 0).copy_({r}.select({a}, {r}.shape[{a}] - 1))",
        "{r} = {x}.clone(); {r}[..., 1:] = 2",
        "{r} = {x}.clone(); {r}[..., ::2] = {r}[..., :1]",
        "{r} = {x}.clone(); {r}.transpose({a}, {b}).copy_({x}.transpose({a}, {b}))",
        "{r} = {x}.clone(); {r}.diagonal(0, {a}, {b}).fill_(1)",
        "{x}.copy_({x}.flip({a})); {r} = {x}.clone()",
        "{x}.narrow({a}, 0, 1).fill_(1); {r} = {x}.clone()",
        "{x}.zero_(); {r} = {x}.clone()",
    ),
}
# What jumps, or is exact, so that values have to be.
_PLACES = "torch.arange({x}.shape[{a}], device={x}.device)"
_OF_NUMBERS = "{x}.nan_to_num(0, 1, -1)"
EXACTLY = {
    "number": (
        "{r} = {x} + {y}",
        "{r} = {x} - {y}",
        "{r} = {x} * {y}",
        "{r} = {x} * 2 - {y}",
        "{r} = torch.maximum({x}, {y})",
        "{r} = torch.minimum({x}, {y})",
        "{r} = torch.fmax({x}, {y})",
        "{r} = {x} + {x}.shape[0]",
        "{r} = -{x}",
        "{r} = {x}.abs()",
        "{r} = {x}.sign()",
        "{r} = {x}.relu()",
        "{r} = {x}.clamp(-2, 3)",
        "{r} = {x}.square()",
        "{r} = torch.nan_to_num({x}, 1, 2, -2)",
        "{r} = {x}.round() + {x}.floor() - {x}.ceil() + {x}.trunc()",
        "{r} = torch.remainder({x}, 3)",
        "{r} = torch.fmod({x}, 3)",
        "{r} = {x} // 3",
        "{r} = torch.div({x}, 4, rounding_mode='trunc')",
        "{r} = torch.remainder({x}, {y}.abs() + 1)",
        "{r} = torch.div({x}, {y}.abs() + 1, rounding_mode='floor')",
        "{r} = torch.arange({x}.numel(), device={x}.device).view({x}.shape) % 5 + {x}",
    ),
    "truth": (
        "{r} = {x} > {y}",
        "{r} = {x} <= {y}",
        "{r} = {x} == {y}",
        "{r} = {x} != 1",
        "{r} = {x}.isnan()",
        "{r} = torch.logical_xor({x}, {y})",
        "{r} = torch.logical_not({x})",
        "{r} = torch.where({x} > 0, {y}, {x})",
        "{r} = torch.where({y} < {x}, 1, {x})",
        "{r} = {x}.masked_fill({x} > 1, -1)",
        "{r} = ({x} > 1) & ({y} > 0) | ({x} == {y})",
        "{r} = ({x} > 0).sum({a})",
        "{r} = {x}.any({a})",
        "{r} = {x}.all({a})",
        "{r} = ({x} > 1).any()",
        "{r} = ({x} > 0).cumsum({a})",
    ),
    "bits": (
        "{r} = {x} & {y}",
        "{r} = {x} | {y}",
        "{r} = {x} ^ {y}",
        "{r} = ~{x}",
        "{r} = {x} ^ 3",
        "{r} = {x} * 1 >> 1",  # bool has no shifts; eager CPU converts it, fake tensors refuse
        "{r} = ({x} & 15) << 2",
        "{r} = torch.bitwise_left_shift({x} & 7, {y} & 3)",
    ),
    "type": (
        "{r} = {x}.to(torch.{t})",
        f"{{r}} = {_OF_NUMBERS}.to(torch.{{t}})",
        f"{{r}} = {_OF_NUMBERS}.abs().to(torch.{{t}})",
        "{r} = {x}.bool()",
        "{r} = {x}.double().mul(2).float()",
        "{r} = torch.tensor(2, device={x}.device) * {x}",
        "{r} = {x} * torch.tensor(2.5, device={x}.device)",
    ),
    "reduction": (
        "{r} = {x}.sum({a})",
        "{r} = {x}.sum()",
        "{r} = {x}.sum({a}, keepdim=True) + {x}",
        "{r} = {x}.sum((0, -1))",
        "{r} = {x}.clamp(-1, 1).prod({a})",
        "{r} = {x}.amax({a}, keepdim=True) - {x}",
        "{r} = {x}.amin({a})",
        "{r} = {x}.amax()",
        "{r} = {x}.argmax({a})",
        "{r} = {x}.argmin({a}, keepdim=True)",
        "{r} = {x}.argmax()",
        "{r} = {x}.argmin()",
        "{r} = {x}.argmax({a}) + {x}.amax({a})",
        "{r} = {x}.argmin({a}) - {x}.argmax({a})",
        "{r} = {x}.max({a})[1]",
        "{r} = {x}.aminmax(dim={a})[0]",
        "{r} = torch.count_nonzero({x}, {a})",
    ),
    "scan": (
        "{r} = {x}.cumsum({a})",
        "{r} = {x}.clamp(-1, 1).cumprod({a})",
        "{r} = {x}.cummax({a})[0]",
        "{r} = {x}.cummin({a})[1]",
        "{r} = {x}.sort({a}, stable=True)[0]",
        "{r} = {x}.sort({a}, stable=True, descending=True)[1]",
        "{r} = {x}.topk(1, {a})[0]",
    ),
    "index": (
        f"{{r}} = {{x}}[{_OF_NUMBERS}.long().flatten() % {{x}}.shape[0]]",
        "{r} = {x}.gather({a}, {x}.nan_to_num(0, 1, -1).long() % {x}.shape[{a}])",
        f"{{r}} = {{x}}.scatter({{a}}, {_PLACES}.flip(0).view(-1, *[1] * ({{x}}.dim() - {{a}} - 1))"
        ".expand_as({x}), {x})",
        "{r} = {x}.scatter_add({a}, {x}.nan_to_num(0, 1, -1).long() % {x}.shape[{a}], {x})",
        "{r} = {x}.scatter_reduce({a}, {x}.nan_to_num(0, 1, -1).long() % {x}.shape[{a}], {x},"
        " 'amax', include_self=True)",
        f"{{r}} = {{x}}.index_add({{a}}, {_PLACES} // 2, {{x}})",
        f"{{r}} = {{x}}.index_copy({{a}}, {_PLACES}.flip(0), {{x}})",
        f"{{r}} = {{x}}.index_fill({{a}}, {_PLACES}[::2], 1)",
        "{r} = {x}.index_put((torch.arange({x}.shape[0], device={x}.device) // 2,), {x}.flip(0),"
        " accumulate=True)",
        "{r} = {x}.index_put((torch.arange({x}.shape[0], device={x}.device).flip(0),), {x})",
        "{r} = {x}.clone(); {r}[{x} > 1] = 1",
        "{r} = {x}.clone(); {r}[torch.arange({x}.shape[0], device={x}.device)[::2]] = 3;"
        " {r}[{x} < 0] = 0",
        "{r} = {x}.masked_scatter({x} > 0, {x}.flip({a}).contiguous())",
        "{r} = {x}.take_along_dim({x}.argmin({a}, keepdim=True), {a})",
        "{r} = torch.bucketize({x}, torch.arange(-2, 3, device={x}.device).to({x}.dtype))",
        "{r} = torch.nn.functional.one_hot({x}.nan_to_num(0, 1, -1).long() % 5, 5)",
    ),
    "place": (
        "{x}.add_(1); {r} = {x} * 2",
        "{x}.mul_({y}); {r} = {x} + 1",
        "{r} = {x}.clone(); {r}.add_({y}); {r}.narrow({a}, 0, 1).sub_(1)",
        "{r} = {x}.clone(); {r}.select({a}, 0).mul_(2); {r}.transpose({a}, {b}).add_({x})",
        "{r} = {x}.clone(); {r}.masked_fill_({x} > 0, 1); {r}[..., :1] += 1",
        f"{{r}} = {{x}}.clone(); {{r}}.index_add_({{a}}, {_PLACES} // 3, {{x}})",
        "{x}.clamp_(-1, 1); {r} = {x} == {y}",
        "{r} = {x}.contiguous().flatten(); {r} += 1",
    ),
}
TABLES = {"rounded": ROUNDED, "moves": MOVES, "exactly": EXACTLY}
