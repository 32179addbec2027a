// A function that is called, with an array in local memory that is indexed by a value, a struct by value, and a struct returned.
struct Polynomial { float coefficients[5]; int degree; };
struct Extremes { float low, high; };

__device__ __noinline__ Extremes extremes(Polynomial polynomial, const float *points, int count) {
    float values[16];
    for (int i = 0; i < count && i < 16; ++i) {
        float value = 0.0f;
        for (int d = polynomial.degree; d >= 0; --d) value = value * points[i] + polynomial.coefficients[d];
        values[(i * 7) & 15] = value;
    }
    Extremes found = {3.0e38f, -3.0e38f};
    for (int i = 0; i < count && i < 16; ++i) {
        found.low = fminf(found.low, values[(i * 7) & 15]);
        found.high = fmaxf(found.high, values[(i * 7) & 15]);
    }
    return found;
}

__device__ __noinline__ unsigned collatz(unsigned n) {
    unsigned steps = 0;
    while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; ++steps; }
    return steps;
}

extern "C" __global__ void ranges(Polynomial polynomial, const float *points, float2 *out, unsigned *steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Extremes found = extremes(polynomial, points + i, 16);
    out[i] = make_float2(found.low, found.high);
    steps[i] = collatz(i + 1);
}
