"""Derives the polynomial coefficients of expand_math: Remez exchange with coefficients rounded one by one.

    pip install mpmath scipy && python3 coefficients.py [NAME ..]

Each polynomial minimises the weighted error max |w(x) (f(x) - sum c_k x^k)|. The exchange runs in 60 digits; then the coefficient of
the lowest power is rounded to the target format and held, and the exchange runs again over the others, and so on: the rounding of
a coefficient is made up by those after it. Printed are the coefficients, lowest power first, and log2 of the error that is left.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, log, exp, sin, cos, tan, tanh, erf, erfc, pi, sqrt
from scipy.optimize import linprog

mp.dps = 60


def round_to(value, bits):
    if bits == 32:
        # mpf -> f32 directly: through f64 would round twice.
        if value == 0:
            return mpf(0)
        mantissa, exponent = mp.frexp(value)
        return mp.ldexp(mp.nint(mp.ldexp(mantissa, 24)), exponent - 24)
    if bits == 64:
        return mpf(float(value))
    return value


def solve(f, w, powers, points):
    n = len(powers)
    a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
    for i, x in enumerate(points):
        for j, p in enumerate(powers):
            a[i, j] = x**p
        a[i, n] = (-1) ** i / max(w(x), mpf(10) ** -9)
        b[i] = f(x)
    s = lu_solve(a, b)
    return [s[j] for j in range(n)], abs(s[n])


def remez(f, w, powers, low, high, rounds=12):
    n = len(powers)
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * (i + mpf(1) / 2) / (n + 1)) for i in range(n + 1)]
    # The offset keeps zero, where a quotient may have no value, off the grid.
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * i / (40 * n)) * (1 - mpf(10) ** -11) for i in range(40 * n + 1)]
    grid = [x if x != 0 else mpf(10) ** -9 for x in grid]
    target = [(x, f(x), w(x)) for x in grid]
    for _ in range(rounds):
        coefficients, level = solve(f, w, powers, points)
        errors = [wx * (fx - sum(c * x**p for c, p in zip(coefficients, powers))) for x, fx, wx in target]
        # One extremum for each run of one sign.
        peaks, best = [], None
        for i, e in enumerate(errors):
            if best is not None and (e > 0) != (errors[best] > 0):
                peaks.append(best)
                best = i
            elif best is None or abs(e) > abs(errors[best]):
                best = i
        peaks.append(best)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        worst = max(abs(e) for e in errors)
        if len(peaks) < n + 1:
            break
        points = [grid[i] for i in peaks]
        if worst < level * mpf("1.001"):
            break
    return coefficients, worst


def minimax(f, w, powers, low, high):
    """As remez, for coefficients whose basis breaks Haar's condition: a linear programme, good to about 2^-40 of the largest term."""
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * (i + mpf(1) / 3) / 600) for i in range(600)]
    scale = max(abs(low), abs(high))
    unit = max(w(x) * abs(f(x)) for x in grid) * mpf(2) ** -20
    rows, bounds = [], []
    for x in grid:
        row = [float(w(x) * (x / scale) ** p) for p in powers]
        bound = float(w(x) * f(x) / unit)
        rows += [row + [-1.0], [-c for c in row] + [-1.0]]
        bounds += [bound, -bound]
    free = [(None, None)] * len(powers)
    result = linprog([0.0] * len(powers) + [1.0], A_ub=rows, b_ub=bounds, bounds=free + [(0, None)], method="highs-ds",
                     options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10})
    return [mpf(c) * unit / scale**p for c, p in zip(result.x, powers)]


def fit(f, w, powers, low, high, bits):
    """Coefficients for `powers`, rounded to `bits`, and the error that is left."""
    low, high = mpf(low), mpf(high)
    powers = list(powers)
    exact, _ = remez(f, w, powers, low, high)
    fixed = []
    if bits == 64:
        # The first coefficients carry the error; what the rounding of the others adds is far below it.
        fixed = [(p, round_to(c, 64)) for p, c in zip(powers, exact)]
    while len(fixed) < len(powers):
        rest = powers[len(fixed) :]
        error = lambda x: f(x) - sum(c * x**p for p, c in fixed) - sum(c * x**p for p, c in zip(rest, exact[len(fixed) :]))
        nudge = minimax(error, w, rest, low, high)[0] if fixed else 0
        fixed.append((rest[0], round_to(exact[len(fixed)] + nudge, bits)))
    grid = [low + (high - low) * (i + mpf(1) / 3) / 2001 for i in range(2001)]
    worst = max(abs(w(x) * (f(x) - sum(c * x**p for p, c in fixed))) for x in grid)
    return [c for _, c in fixed], worst


def show(name, result, bits):
    coefficients, worst = result
    print(f"{name}: error 2^{mp.nstr(log(worst, 2), 5)}")
    for c in coefficients:
        print(f"    {float(c)!r},")


# Functions of the square get a tiny positive lower end, where the quotient by x is still computed well.
TINY = mpf(10) ** -12


def log1p_tail(x):
    """(ln(1 + x) - x) / x^2"""
    return (log(1 + x) - x) / x**2 if abs(x) > mpf(10) ** -15 else mpf(-1) / 2 + x / 3


def log2_tail(x):
    """log2(1 + x) / x"""
    return log(1 + x) / x / log(mpf(2)) if abs(x) > mpf(10) ** -25 else 1 / log(mpf(2))


def odd(g, linear):
    """(g(sqrt(z)) / sqrt(z) - linear) / z as a function of z = x^2"""
    return lambda z: (g(sqrt(z)) / sqrt(z) - linear) / z


FITS = {}


def define(name, bits):
    def add(make):
        FITS[name] = (make, bits)
        return make
    return add


@define("log f32", 32)
def _():
    # relative error of ln(1 + x) ~ x: weight x^2 / ln(1 + x)
    w = lambda x: abs(x**2 / log(1 + x)) if abs(x) > mpf(10) ** -15 else abs(x)
    return fit(log1p_tail, w, range(0, 8), sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 32)


@define("log2 f32", 32)
def _():
    # log2(1 + x) = x * L + x * x * p, L = log2(e) split in the code: p approximates (log2(1+x) - L x) / x^2
    ln2 = log(mpf(2))
    f = lambda x: log1p_tail(x) / ln2
    w = lambda x: abs(x**2 / log(1 + x) * ln2) if abs(x) > mpf(10) ** -15 else abs(x)
    return fit(f, w, range(0, 8), sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 32)


@define("log half", 32)
def _():
    w = lambda x: abs(x**2 / log(1 + x)) if abs(x) > mpf(10) ** -15 else abs(x)
    return fit(log1p_tail, w, range(0, 3), mpf(-1) / 16, mpf(1) / 16, 32)


@define("log2 half", 32)
def _():
    ln2 = log(mpf(2))
    f = lambda x: log1p_tail(x) / ln2
    w = lambda x: abs(x**2 / log(1 + x) * ln2) if abs(x) > mpf(10) ** -15 else abs(x)
    return fit(f, w, range(0, 3), mpf(-1) / 16, mpf(1) / 16, 32)


@define("tanh f32", 32)
def _():
    f = odd(tanh, 1)
    w = lambda z: z * sqrt(z) / tanh(sqrt(z))
    return fit(f, w, range(0, 4), TINY, mpf("0.5625") ** 2, 32)


@define("sin f32", 32)
def _():
    w = lambda z: z * sqrt(z) / sin(sqrt(z))
    return fit(odd(sin, 1), w, range(0, 3), TINY, (pi / 4 * mpf("1.0001")) ** 2, 32)


@define("cos f32", 32)
def _():
    # cos(x) = 1 - z/2 + z^2 p(z)
    f = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2
    return fit(f, lambda z: z**2 / cos(sqrt(z)), range(0, 3), mpf(10) ** -8, (pi / 4 * mpf("1.0001")) ** 2, 32)


@define("tan f32", 32)
def _():
    w = lambda z: z * sqrt(z) / tan(sqrt(z))
    return fit(odd(tan, 1), w, range(0, 6), TINY, (pi / 4 * mpf("1.0001")) ** 2, 32)


@define("erf f32 small", 32)
def _():
    f = lambda z: erf(sqrt(z)) / sqrt(z) - 1
    w = lambda z: sqrt(z) / erf(sqrt(z))
    return fit(f, w, range(0, 6), TINY, mpf("0.95") ** 2, 32)


@define("erf f32 large", 32)
def _():
    # erfc(x) = 2^p(x)
    f = lambda x: log(erfc(x), 2)
    return fit(f, lambda x: erfc(x), range(0, 7), mpf("0.95"), mpf("3.95"), 32)


LN2_HALF = log(mpf(2)) / 2 * mpf("1.0001")
QUARTER_PI = pi / 4 * mpf("1.0001")


@define("exp f64", 64)
def _():
    # e^r = 1 + r + r^2 p(r)
    f = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10) ** -18 else 1 / mpf(2) + r / 6
    return fit(f, lambda r: r**2 / exp(r), range(0, 10), -LN2_HALF, LN2_HALF, 64)


@define("exp2 f64", 64)
def _():
    # 2^r = 1 + r p(r)
    f = lambda r: (mpf(2) ** r - 1) / r if abs(r) > mpf(10) ** -25 else log(mpf(2))
    return fit(f, lambda r: abs(r) / mpf(2) ** r, range(0, 11), mpf(-1) / 2, mpf(1) / 2, 64)


@define("log f64", 64)
def _():
    # ln((1 + s) / (1 - s)) = 2 s + s z p(z), z = s^2
    ln = lambda z: log((1 + sqrt(z)) / (1 - sqrt(z)))
    f = lambda z: (ln(z) / sqrt(z) - 2) / z
    return fit(f, lambda z: z * sqrt(z) / ln(z), range(0, 7), TINY, mpf("0.17158") ** 2, 64)


@define("tanh f64", 64)
def _():
    return fit(odd(tanh, 1), lambda z: z * sqrt(z) / tanh(sqrt(z)), range(0, 11), TINY, mpf("0.625") ** 2, 64)


@define("sin f64", 64)
def _():
    return fit(odd(sin, 1), lambda z: z * sqrt(z) / sin(sqrt(z)), range(0, 6), TINY, QUARTER_PI**2, 64)


@define("cos f64", 64)
def _():
    # cos(r) = 1 - z / 2 + z^2 p(z)
    f = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2
    return fit(f, lambda z: z**2 / cos(sqrt(z)), range(0, 6), mpf(10) ** -8, QUARTER_PI**2, 64)


@define("tan f64", 64)
def _():
    return fit(odd(tan, 1), lambda z: z * sqrt(z) / tan(sqrt(z)), range(0, 14), TINY, QUARTER_PI**2, 64)


@define("erf f64 small", 64)
def _():
    f = lambda z: erf(sqrt(z)) / sqrt(z) - 1
    return fit(f, lambda z: sqrt(z) / erf(sqrt(z)), range(0, 13), TINY, mpf(1), 64)


@define("erf f64 large", 64)
def _():
    # erfc(x) = e^p(x)
    return fit(lambda x: log(erfc(x)), lambda x: erfc(x), range(0, 20), mpf(1), mpf("5.9375"), 64)


if __name__ == "__main__":
    for name, (make, bits) in FITS.items():
        if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:]):
            show(name, make(), bits)
