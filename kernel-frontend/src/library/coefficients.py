"""Derives the polynomial coefficients of the library's functions, by the method of ../passes/expand_math/coefficients.py.

    pip install mpmath scipy && python3 coefficients.py [NAME ..]
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../passes/expand_math"))

from mpmath import asin, atan, besselj, besseljzero, bessely, erfc, erfinv, exp, expm1, hankel1, log, loggamma, mp, mpf, pi, rgamma, sqrt
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



def known(f):
    """f, computed once for each argument"""
    memo = {}
    return lambda x: memo[x] if x in memo else memo.setdefault(x, f(x))


def relative(name, bits, count, f, low, high):
    f = known(f)
    add(name, bits, count, f, lambda x: 1 / abs(f(x)), low, high)


def absolute(name, bits, count, f, low, high):
    add(name, bits, count, known(f), lambda x: mpf(1), low, high)


def erfc_factor(k):
    """(1 + 2 x) e^(x^2) erfc x for t = (x - k) / (x + k)"""
    def g(t):
        x = k * (1 + t) / (1 - t)
        return (1 + 2 * x) * exp(x * x) * erfc(x)
    return g


relative("erfc", 32, 12, erfc_factor(2), mpf(-1), mpf(9) / 13)
relative("erfc", 64, 24, erfc_factor(4), mpf(-1), mpf(24) / 32)


def inverse_over_x(w):
    """erfinv(x) / x for w = -ln(1 - x^2)"""
    if abs(w) < mpf(10) ** -12:
        return sqrt(pi) / 2 * (1 + w * pi / 12)
    x = sqrt(-expm1(-w))
    if w <= 1:
        return erfinv(x) / x
    rest, y = exp(-w) / (1 + x), sqrt(max(w - log(w) / 2 - log(mpf(2)), mpf("0.2")))
    for _ in range(60):
        e = erfc(y)
        step = (log(e) - log(rest)) * e / (2 / sqrt(pi) * exp(-y * y))
        y += step
        if abs(step) < mpf(10) ** -45:
            break
    return y / x


relative("erfinv center", 32, 10, lambda v: inverse_over_x(v + mpf("2.5")), mpf("-2.5"), mpf("2.5"))
relative("erfinv tail", 32, 9, lambda v: inverse_over_x((v + 3) ** 2), sqrt(mpf(5)) - 3, mpf("1.1"))
relative("erfinv center", 64, 24, lambda v: inverse_over_x(v + mpf("3.125")), mpf("-3.125"), mpf("3.125"))
relative("erfinv middle", 64, 19, lambda v: inverse_over_x((v + mpf("3.25")) ** 2), mpf("-0.75"), mpf("0.75"))
relative("erfinv tail", 64, 18, lambda v: inverse_over_x((v + 5) ** 2), mpf(-1), mpf("1.1"))


def lgamma_near(v):
    if abs(v) < mpf(10) ** -20 or abs(v + 1) < mpf(10) ** -20:
        return 1 - mp.euler if abs(v) < 1 / mpf(2) else mp.euler
    return loggamma(2 + v) / (v * (v + 1))


def lgamma_middle(v):
    x = v + mpf("5.5")
    return loggamma(x) / ((x - 1) * (x - 2))


def stirling(z):
    x = 1 / sqrt(z)
    return (loggamma(x) - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2)) * x


for bits, counts in (32, (13, 12, 3, 9)), (64, (31, 26, 7, 17)):
    relative("lgamma near", bits, counts[0], lgamma_near, mpf(-1), mpf(1))
    relative("lgamma middle", bits, counts[1], lgamma_middle, mpf("-2.5"), mpf("2.5"))
    absolute("stirling", bits, counts[2], stirling, mpf(10) ** -10, mpf(1) / 64)
    relative("inverse gamma", bits, counts[3], lambda t: rgamma(1 + t), mpf(0), mpf(1))

def of_center(f):
    """f(x) of v = x^2 / 32 - 1 in [-1, 1]"""
    return lambda v: f(max(sqrt(32 * (v + 1)), mpf(10) ** -12))


def over_zeros(order):
    """J(x), of order 1 over x, over the factors of its first two zeros"""
    first, second = besseljzero(order, 1), besseljzero(order, 2)
    return of_center(lambda x: besselj(order, x) / x**order / ((x * x - first**2) * (x * x - second**2)))


def y0_rest(x):
    return bessely(0, x) - 2 / pi * log(x) * besselj(0, x)


def y1_rest(x):
    return (bessely(1, x) - 2 / pi * (log(x) * besselj(1, x) - 1 / x)) / x


def wave(order):
    """M e^(i t) of w = 1 / x^2: Hankel's function without its wave"""
    return known(lambda w: sqrt(pi / sqrt(w) / 2) * hankel1(order, 1 / sqrt(w)) * mp.expj(-(1 / sqrt(w) - pi / 4 - order * pi / 2)))


for bits, counts in (32, (9, 12, 10, 4)), (64, (17, 18, 18, 12)):
    relative("j0", bits, counts[0], over_zeros(0), mpf(-1), mpf(1))
    relative("j1", bits, counts[0], over_zeros(1), mpf(-1), mpf(1))
    absolute("y0 rest", bits, counts[1], of_center(y0_rest), mpf(-1), mpf(1))
    absolute("y1 rest", bits, counts[2], of_center(y1_rest), mpf(-1), mpf(1))
    for order in 0, 1:
        of = wave(order)
        absolute(f"modulus {order}", bits, counts[3], lambda w, of=of: abs(of(w)), mpf(10) ** -8, mpf(1) / 64)
        absolute(f"phase {order}", bits, counts[3], lambda w, of=of: mp.arg(of(w)) / sqrt(w), mpf(10) ** -8, mpf(1) / 64)

if __name__ == "__main__":
    for name, (make, bits) in FITS.items():
        if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:]):
            show(name, make(), bits)
