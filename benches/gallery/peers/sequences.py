"""A convolution along sequences, and a step of an optimizer over a list of tensors."""

import functools

import torch
import triton
import triton.language as tl
from row import FLAT, Launch, empty, flat, normal, peers, uneven_lengths, work


@triton.jit
def causal_conv1d_kernel(x_ptr, weight_ptr, y_ptr, n, channels, length, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    at = offsets % length
    channel = offsets // length % channels
    total = tl.zeros([BLOCK_SIZE], tl.float32)
    for k in tl.static_range(4):
        w = tl.load(weight_ptr + channel * 4 + k, mask=mask).to(tl.float32)
        total += w * tl.load(x_ptr + offsets + k - 3, mask=mask & (at + k >= 3), other=0.0, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + offsets, total, mask=mask)


def causal_conv1d(dtype, batch, channels, length):
    x, weight, y = normal(dtype, batch, channels, length), normal(dtype, channels, 4), empty(dtype, batch, channels, length)
    n = y.numel()

    def whole():
        padded = torch.nn.functional.pad(x.double(), (3, 0))
        return sum(weight.double()[:, k, None] * padded[..., k : k + length] for k in range(4))

    return work(
        {"x": x, "weight": weight}, {"y": y}, {"y": whole}, flat(causal_conv1d_kernel, n, x, weight, y, n, channels, length), FLAT
    )


@triton.jit
def adamw_list_kernel(
    list_ptr, lengths_ptr, count, rate, decay, step, weights_of: tl.constexpr, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr
):
    tensor = tl.program_id(1)
    n = tl.load(lengths_ptr + tensor)
    weights = tl.load(list_ptr + tensor).to(tl.pointer_type(weights_of))
    gradients = tl.load(list_ptr + count + tensor).to(tl.pointer_type(weights_of))
    m = tl.load(list_ptr + 2 * count + tensor).to(tl.pointer_type(tl.float32))
    v = tl.load(list_ptr + 3 * count + tensor).to(tl.pointer_type(tl.float32))
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    g = tl.load(gradients + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    first = 0.9 * tl.load(m + offsets, mask=mask, eviction_policy=LOAD) + 0.1 * g
    second = 0.999 * tl.load(v + offsets, mask=mask, eviction_policy=LOAD) + 0.001 * g * g
    tl.store(m + offsets, first, mask=mask)
    tl.store(v + offsets, second, mask=mask)
    mean = first / (1.0 - tl.exp(step * -0.1053605156578263))
    scale = tl.sqrt(second / (1.0 - tl.exp(step * -0.0010005003335835335))) + 1e-8
    w = tl.load(weights + offsets, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(weights + offsets, w - rate * (mean / scale + decay * w), mask=mask)


RATE, DECAY, STEP = 0.01, 0.1, 100


def adamw_list(dtype, tensors, longest):
    # Every tensor is aligned if the longest length is.
    of = 64 if longest % 64 == 0 else 1
    lengths = [triton.cdiv(length, of) * of for length in uneven_lengths(tensors, longest)]
    n = sum(lengths)
    weights, gradients = normal(dtype, n), normal(dtype, n)
    m, v = normal(torch.float32, n), 0.5 + torch.rand(n, device=peers.DEVICE) / 2
    starts = torch.tensor([0, *lengths[:-1]]).cumsum(0).tolist()
    # A tensor without data has no address.
    address = lambda tensor: tensor.data_ptr() if tensor.device.type != "meta" else 0
    addresses = [address(each) + start * each.element_size() for each in (weights, gradients, m, v) for start in starts]
    of_list, counts = torch.tensor(addresses, device=peers.DEVICE), torch.tensor(lengths, device=peers.DEVICE)
    before = [each.clone() for each in (weights, m, v)]

    @functools.cache
    def whole():
        w, first, second = (each.double() for each in before)
        first, second = 0.9 * first + 0.1 * gradients.double(), 0.999 * second + 0.001 * gradients.double() ** 2
        mean, scale = first / (1 - 0.9**STEP), torch.sqrt(second / (1 - 0.999**STEP)) + 1e-8
        return w - RATE * (mean / scale + DECAY * w), first, second

    weights_of = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}[dtype]
    args = (of_list, counts, tensors, RATE, DECAY, float(STEP), weights_of)
    of_n = lambda name, at: {name: lambda: whole()[at]}
    return work(
        {"weights": weights, "gradients": gradients, "m": m, "v": v, "lengths": counts}, {"weights": weights, "m": m, "v": v},
        of_n("weights", 0) | of_n("m", 1) | of_n("v", 2),
        lambda config: [Launch(adamw_list_kernel, (triton.cdiv(longest, config["BLOCK_SIZE"]), tensors), args, config)],
        [{"BLOCK_SIZE": 1024, "num_warps": 4}], relative={"weights": 2e-6} if dtype == torch.float32 else {},
    )
