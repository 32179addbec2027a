"""Makes the table of exact values of the library's functions: python3 library_f64.py [COUNT] [NAME ..] > library_f64.txt (needs mpmath).

Each line is `function x high low` or `function x,y high low`: the bits of the arguments, and the exact value as the sum of two f64.
"""
import math
import random
import sys
from mpmath import mp, mpf, pi

from math_f64 import anything, around, bits, positive, small, unbits, within

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 120
ONLY = sys.argv[2:]


def exponents(low, high):
    return lambda: random.choice((1, -1)) * 2.0 ** random.uniform(low, high)


def near_one():
    return 1 + random.choice((1, -1)) * 2.0 ** random.uniform(-52, -1)


def pair(a, b):
    return lambda: (a(), b())


def power_pair():
    """A base anywhere, an exponent that gives a number."""
    x = positive(anything)()
    return x, random.uniform(-745, 710) / (math.log(x) or 1.0)


def erfinv(x):
    if abs(x) < mpf(10) ** -12:
        return mp.sqrt(pi) / 2 * x * (1 + pi / 12 * x * x)
    return mp.erfinv(x) if abs(x) < mpf("0.9") else mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(1 - abs(x)), mp.sqrt(-mp.log(1 - abs(x)))) * mp.sign(x)


def gamma_arguments():
    x = random.choice((random.uniform(-184, 172), random.uniform(-20, 20), random.uniform(0, 4)))
    return x if x != math.floor(x) else 0.5


def near_zero_of(name):
    zero = {"j0": mp.besseljzero, "j1": mp.besseljzero, "y0": mp.besselyzero, "y1": mp.besselyzero}[name]
    zeros = [float(zero(int(name[1]), k)) for k in range(1, 6)]
    return lambda: random.choice(zeros) * (1 + random.choice((1, -1)) * 2.0 ** random.uniform(-52, -5))


BESSEL = {
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
}
one = within(-1, 1)
FUNCTIONS = {
    "exp10": (lambda x: mpf(10) ** x, [within(-323.5, 308.2), within(-2, 2), small]),
    "expm1": (mp.expm1, [within(-40, 709.7), within(-2, 2), small, around(0.34657359, -0.34657359, 1.03972, 709.78)]),
    "log1p": (mp.log1p, [positive(anything), lambda: within(-1, 1)(), small, around(0.41421356237309505, -0.2928932188134524), lambda: -near_one() if random.random() < 0 else within(-0.999999, 3)()]),
    "log10": (mp.log10, [positive(anything), positive(within(0, 4)), near_one, around(10.0, 1000.0, 0.70710678118654752)]),
    "pow": (lambda x, y: x**y, [power_pair, pair(positive(within(0, 10)), within(-50, 50)), pair(near_one, exponents(0, 50)), pair(positive(small), within(-8, 8))]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [anything, within(-10, 10), exponents(-1074, -1022)]),
    "hypot": (mp.hypot, [pair(anything, anything), pair(within(-9, 9), within(-9, 9)), pair(exponents(-3, 3), exponents(-30, 3)), pair(exponents(-1074, -1000), exponents(-1074, -1000)), pair(exponents(1015, 1023), exponents(1015, 1023))]),
    "asin": (mp.asin, [one, small_one := lambda: max(-1.0, min(1.0, small())), around(0.5, -0.5, 0.99)]),
    "acos": (mp.acos, [one, small_one, around(0.5, -0.5), lambda: 1 - 2.0 ** random.uniform(-52, -1), lambda: 2.0 ** random.uniform(-52, -1) - 1]),
    "atan": (mp.atan, [within(-3, 3), small, anything, around(1.0, -1.0)]),
    "atan2": (mp.atan2, [pair(within(-3, 3), within(-3, 3)), pair(exponents(-40, 40), exponents(-40, 40)), pair(anything, anything), pair(exponents(-1074, -1000), exponents(-40, 0))]),
    "sinh": (mp.sinh, [within(-4, 4), within(-710.4, 710.4), small, around(22.0, 0.34657359)]),
    "cosh": (mp.cosh, [within(-4, 4), within(-710.4, 710.4), small, around(22.0)]),
    "asinh": (mp.asinh, [within(-4, 4), anything, small, exponents(-5, 40)]),
    "acosh": (mp.acosh, [within(1, 4), lambda: 1 + 2.0 ** random.uniform(-52, 0), lambda: max(1.0, abs(anything())), lambda: 2.0 ** random.uniform(0, 40)]),
    "atanh": (mp.atanh, [one, small_one, lambda: 1 - 2.0 ** random.uniform(-52, -1)]),
    "erfc": (mp.erfc, [within(-6, 6), within(0, 27.2), small, within(26, 27.3)]),
    "erfinv": (erfinv, [one, lambda: within(-1e-3, 1e-3)(), lambda: (1 - 2.0 ** random.uniform(-53, -1)) * random.choice((1, -1))]),
    "tgamma": (mp.gamma, [gamma_arguments, within(0.5, 3), small]),
    "lgamma": (lambda x: mp.loggamma(x).real, [positive(within(0, 20)), positive(anything), near_one, lambda: 1 + near_one(), positive(small), lambda: 2.0 ** random.uniform(0, 30)]),
    **{name: (f, [within(0, 9), within(0, 60), lambda: 2.0 ** random.uniform(3, 40), near_zero_of(name)]) for name, f in BESSEL.items()},
}

if __name__ == "__main__":
    print("# function x high low: bits of the arguments, the value as the sum of two f64. Made by library_f64.py.")
    random.seed(3)
    for name, (f, draws) in FUNCTIONS.items():
        if ONLY and name not in ONLY:
            continue
        for draw in draws:
            for _ in range(COUNT // len(draws)):
                mp.prec = 400
                arguments = draw()
                arguments = arguments if isinstance(arguments, tuple) else (arguments,)
                y = f(*map(mpf, arguments))
                if not mp.isfinite(y) or mp.im(y) != 0 or abs(y) > mpf(2) ** 1024 * (1 - mpf(2) ** -54):
                    continue
                high = float(y)
                low = float(y - mpf(high))
                print(f"{name} {','.join(f'{bits(x):016x}' for x in arguments)} {high!r} {low!r}")
