"""Windows of images: pooling and interpolation, over the flat index of the output."""

import torch
import triton
import triton.language as tl
from row import FLAT, empty, flat, normal, work


@triton.jit
def max_pool_kernel(x_ptr, y_ptr, n, h, w, oh, ow, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % ow
    row = offsets // ow % oh
    plane = offsets // (ow * oh)
    best = tl.full([BLOCK_SIZE], -float("inf"), tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            from_row, from_column = row * 2 + i - 1, column * 2 + j - 1
            inside = mask & (from_row >= 0) & (from_row < h) & (from_column >= 0) & (from_column < w)
            at = (plane * h + from_row) * w + from_column
            v = tl.load(x_ptr + at, mask=inside, other=-float("inf"), eviction_policy=LOAD).to(tl.float32)
            best = tl.maximum(best, v)
    tl.store(y_ptr + offsets, best, mask=mask)


def max_pool(dtype, planes, h, w):
    oh, ow = (h + 1) // 2, (w + 1) // 2
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, oh, ow)
    n = y.numel()
    return work(
        {"x": x}, {"y": y}, {"y": lambda: torch.nn.functional.max_pool2d(x.double(), 3, stride=2, padding=1)},
        flat(max_pool_kernel, n, x, y, n, h, w, oh, ow), FLAT,
    )


@triton.jit
def bilinear_upsample_kernel(x_ptr, y_ptr, n, h, w, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % (2 * w)
    row = offsets // (2 * w) % (2 * h)
    plane = offsets // (4 * h * w)
    from_row = tl.maximum((row.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    from_column = tl.maximum((column.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    top, left = from_row.to(tl.int32), from_column.to(tl.int32)
    bottom, right = tl.minimum(top + 1, h - 1), tl.minimum(left + 1, w - 1)
    down, along = from_row - top.to(tl.float32), from_column - left.to(tl.float32)
    image = x_ptr + plane * h * w
    upper_left = tl.load(image + top * w + left, mask=mask, eviction_policy=LOAD).to(tl.float32)
    upper_right = tl.load(image + top * w + right, mask=mask, eviction_policy=LOAD).to(tl.float32)
    lower_left = tl.load(image + bottom * w + left, mask=mask, eviction_policy=LOAD).to(tl.float32)
    lower_right = tl.load(image + bottom * w + right, mask=mask, eviction_policy=LOAD).to(tl.float32)
    upper = upper_left * (1.0 - along) + upper_right * along
    lower = lower_left * (1.0 - along) + lower_right * along
    tl.store(y_ptr + offsets, upper * (1.0 - down) + lower * down, mask=mask)


def bilinear_upsample(dtype, planes, h, w):
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, 2 * h, 2 * w)
    n = y.numel()
    whole = lambda: torch.nn.functional.interpolate(x.double()[None], scale_factor=2, mode="bilinear", align_corners=False)
    return work({"x": x}, {"y": y}, {"y": whole}, flat(bilinear_upsample_kernel, n, x, y, n, h, w), FLAT)


@triton.jit
def average_pool_kernel(x_ptr, y_ptr, n, h, w, oh, ow, BLOCK_SIZE: tl.constexpr, LOAD: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    column = offsets % ow
    row = offsets // ow % oh
    plane = offsets // (ow * oh)
    total = tl.zeros([BLOCK_SIZE], tl.float32)
    for i in tl.static_range(2):
        for j in tl.static_range(2):
            at = (plane * h + row * 2 + i) * w + column * 2 + j
            total += tl.load(x_ptr + at, mask=mask, eviction_policy=LOAD).to(tl.float32)
    tl.store(y_ptr + offsets, total / 4.0, mask=mask)


def average_pool(dtype, planes, h, w):
    oh, ow = h // 2, w // 2
    x, y = normal(dtype, planes, h, w), empty(dtype, planes, oh, ow)
    n = y.numel()
    whole = lambda: x.double()[:, : 2 * oh, : 2 * ow].reshape(planes, oh, 2, ow, 2).mean((2, 4))
    return work({"x": x}, {"y": y}, {"y": whole}, flat(average_pool_kernel, n, x, y, n, h, w, oh, ow), FLAT)
