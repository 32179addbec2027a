"""The numbers of `tl.rand` by torch, for references: Philox 4x32 with 10 rounds."""

import torch
from row import peers

WORD = 0xFFFFFFFF


def product(x, factor):
    """The high and the low word of products of 32-bit numbers in 64-bit tensors, whose own product would overflow."""
    by_low, by_high = x * (factor & 0xFFFF), x * (factor >> 16)
    middle = by_high + (by_low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (by_low & 0xFFFF)


def uniform(seed, n):
    """The numbers of the offsets 0 to n - 1, in [0, 1), in f64."""
    a = torch.arange(n, device=peers.DEVICE, dtype=torch.int64)
    b, c, d = (torch.zeros_like(a) for _ in range(3))
    low, high = seed & WORD, seed >> 32
    for _ in range(10):
        (a_high, a_low), (c_high, c_low) = product(a, 0xD2511F53), product(c, 0xCD9E8D57)
        a, b, c, d = c_high ^ b ^ low, c_low, a_high ^ d ^ high, a_low
        low, high = (low + 0x9E3779B9) & WORD, (high + 0xBB67AE85) & WORD
    signed = torch.where(a > 0x7FFFFFFF, a - 0x100000000, a)
    folded = torch.where(signed < 0, -signed - 1, signed)
    # As the kernel rounds: to f32, by a number of f32.
    return (folded.float() * 4.6566127342e-10).double()
