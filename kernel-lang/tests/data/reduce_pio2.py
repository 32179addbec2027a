"""Makes reduce_pio2.txt: python3 reduce_pio2.py > reduce_pio2.txt (needs mpmath; takes three minutes)."""
import random
import struct
from mpmath import mp, mpf, pi, nint, floor

mp.prec = 400
random.seed(1)
print("# bits n r: x = n pi/2 + r, n modulo 4. Made by reduce_pio2.py.")


def line(significand, exponent):
    x = mp.ldexp(mpf(significand), exponent - 23)
    n = nint(x * 2 / pi)
    r = x - n * pi / 2
    bits = ((exponent + 127) << 23) | (significand & 0x7FFFFF)
    print(f"{bits:08x} {int(n) % 4} {float(r)!r}")


def nearest(exponent, count=4):
    """Significands of 24 bits whose angle comes nearest to a multiple of pi/2, by the convergents of 2^(exponent - 23) 2/pi."""
    ratio = mp.ldexp(2 / pi, exponent - 23)
    candidates = set()
    rest, (p0, q0), (p1, q1) = ratio, (1, 0), (int(floor(ratio)), 1)
    denominators = [1]
    while q1 < 2**24:
        rest = 1 / (rest - floor(rest))
        a = int(floor(rest))
        (p0, q0), (p1, q1) = (p1, q1), (a * p1 + p0, a * q1 + q0)
        denominators.append(q1)
    for q in denominators:
        for k in range(1, 2**24 // q + 1 if q < 2**24 else 0):
            if k * q >= 2**23 and len(candidates) < 4000:
                candidates.add(k * q)
    for q in denominators:
        for other in denominators:
            for k in range(1, 40):
                for s in (q + k * other, abs(q - k * other)):
                    if 2**23 <= s < 2**24:
                        candidates.add(s)
    distance = lambda s: abs(ratio * s - nint(ratio * s))
    return sorted(candidates, key=distance)[:count]


for exponent in range(-3, 128):
    for s in nearest(exponent):
        line(s, exponent)
    for _ in range(8):
        line(random.randrange(2**23, 2**24), exponent)
