"""Makes the table of exact values: python3 math_f64.py [COUNT] > math_f64.txt (needs mpmath).

Each line is `function x high low`: the bits of x, and the exact value as the sum of two f64, or `nan`.
"""
import math
import random
import struct
import sys
from mpmath import mp, mpf, pi

mp.prec = 200


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def unbits(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def write(name, f, x):
    y = f(mpf(x))
    high = float(y)
    low = 0.0 if math.isinf(high) else float(y - mpf(high))
    print(f"{name} {bits(x):016x} {high!r} {low!r}")


def anything():
    return unbits(random.getrandbits(63) % 0x7FF0000000000000) * random.choice((1, -1))


def within(low, high):
    return lambda: random.uniform(low, high)


def around(*centres):
    def draw():
        centre = random.choice(centres)
        return unbits(bits(centre) + random.randrange(-3, 4)) if random.random() < 0.3 else centre * (1 + random.gauss(0, 1) * 10 ** random.uniform(-16, -1))
    return draw


def small():
    return random.choice((1, -1)) * 2.0 ** random.uniform(-60, 1)


def near_quarter_turns():
    n = random.randrange(1, 2 ** random.randrange(1, 40))
    return unbits(bits(float(n * pi / 4)) + random.randrange(-2, 3))


def huge_turns():
    return random.choice((1, -1)) * math.ldexp(random.uniform(1, 2), random.randrange(20, 1024))


positive = lambda draw: lambda: abs(draw()) or 1.0
FUNCTIONS = {
    "exp": (mp.exp, [within(-745.2, 709.8), within(-2, 2), small, around(-708.4, 709.78, -745.13, 0.34657359)]),
    "exp2": (lambda x: mpf(2) ** x, [within(-1075, 1024), within(-2, 2), small, around(-1022.0, 1023.99, -1074.5, 0.5)]),
    "log": (mp.log, [positive(anything), positive(within(0, 4)), around(1.0, 0.70710678118654752, 1.4142135623730951, 2.0), positive(small)]),
    "log2": (lambda x: mp.log(x) / mp.log(2), [positive(anything), positive(within(0, 4)), around(1.0, 0.70710678118654752, 1.4142135623730951, 2.0), positive(small)]),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), [positive(anything), positive(within(0, 4)), around(1.0, 4.0)]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [within(-745.2, 745), within(-40, 40), within(-3, 3), small, around(-708.4, -745.13, -36.7, 36.7)]),
    "tanh": (mp.tanh, [within(-3, 3), within(-22, 22), small, around(0.625, -0.625, 19.06)]),
    "erf": (mp.erf, [within(-3, 3), within(-7, 7), small, around(1.0, -1.0, 5.9375)]),
    "sin": (mp.sin, [within(-10, 10), within(-1e5, 1e5), small, near_quarter_turns, huge_turns]),
    "cos": (mp.cos, [within(-10, 10), within(-1e5, 1e5), small, near_quarter_turns, huge_turns]),
    "tan": (mp.tan, [within(-10, 10), within(-1e5, 1e5), small, near_quarter_turns, huge_turns]),
}

if __name__ == "__main__":
    COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    random.seed(2)
    print("# function x high low: bits of x, the value as the sum of two f64. Made by math_f64.py.")
    for name, (f, draws) in FUNCTIONS.items():
        for draw in draws:
            for _ in range(COUNT // len(draws)):
                # Angles up to 2^1024 need as many digits of pi.
                mp.prec = 1400 if name in ("sin", "cos", "tan") else 200
                write(name, f, draw())
