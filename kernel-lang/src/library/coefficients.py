"""Derives the polynomial coefficients of the library's functions, by the method of ../passes/expand_math/coefficients.py.

    pip install mpmath scipy && python3 coefficients.py [NAME ..]
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../passes/expand_math"))

from mpmath import asin, atan, exp, log, mpf, sqrt
from coefficients import FITS, LN2_HALF, TINY, define, fit, show

FITS.clear()


@define("exp f32", 32)
def _():
    # e^r = 1 + r + r^2 p(r)
    f = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -18 else 1 / mpf(2) + r / 6
    return fit(f, lambda r: r**2 / exp(r), range(0, 5), -LN2_HALF, LN2_HALF, 32)


def add(name, bits, count, f, w, low, high):
    define(f"{name} f{bits}", bits)(lambda: fit(f, w, range(0, count), low, high, bits))


def odd(g):
    """g(s) = s + s z p(z), z = s^2: p and the weight of its error"""
    return lambda z: (g(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / g(sqrt(z))


for bits, count in (32, 9), (64, 21):
    add("atan", bits, count, *odd(atan), TINY, mpf(1))
for bits, count in (32, 5), (64, 13):
    add("asin", bits, count, *odd(asin), TINY, mpf("0.2501"))


def log_quotient(z):
    """ln((1 + s) / (1 - s)) / s, z = s^2"""
    return log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z)


# ln((1 + s) / (1 - s)) = 2 s + s z (2/3 + z p(z))
for bits, count in (32, 3), (64, 8):
    add("log", bits, count, lambda z: ((log_quotient(z) - 2) / z - mpf(2) / 3) / z, lambda z: z * z / log_quotient(z), mpf(10) ** -8, mpf("0.17158") ** 2)

if __name__ == "__main__":
    for name, (make, bits) in FITS.items():
        if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:]):
            show(name, make(), bits)
