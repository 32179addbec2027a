// Constant tables with values and addresses, global variables with initial values, a switch, and a jump table in inline assembly.
__constant__ float weights[4][3] = {{0.25f, -1.5f, 3.0e-40f}, {1.0f, 2.0f, 4.0f}, {0.1f}};
__constant__ double scale = 0.1;
__device__ int counts[8] = {1, -2, 3};
__device__ const char *names[3] = {"zero", "one", "many"};
__device__ int *second = &counts[1];
struct Entry { char tag; int *where; float value; };
__device__ Entry entries[2] = {{'a', &counts[2], 1.5f}, {'b', nullptr, -0.0f}};

extern "C" __global__ void lookup(const int *in, double *out, int *lengths) {
    int i = threadIdx.x;
    out[i] = weights[in[i] & 3][in[i] % 3] * scale;
    const char *name = names[in[i] % 3];
    int length = 0;
    while (name[length]) ++length;
    lengths[i] = length + *second + *entries[0].where + entries[in[i] & 1].tag;
    __syncthreads(); if (i < 8) counts[i] = length;
}

extern "C" __global__ void choose(const int *in, float *out) {
    int i = threadIdx.x;
    float x = out[i];
    switch (in[i]) {
        case 0: x = x + 1.0f; break;
        case 1: x = x * x; break;
        case 2: x = sqrtf(x); break;
        case 3: x = 1.0f / x; break;
        case 4: x = expf(x); break;
        case 5: x = logf(x);
        case 6: x = fminf(x, 3.0f); break;
        case 7: x = floorf(x); break;
        case 8: x = __int_as_float(__float_as_int(x) ^ 5); break;
        case 9: x = tanhf(x); break;
        default: x = -x;
    }
    out[i] = x;
}

extern "C" __global__ void jump(int *values) {
    int value = values[threadIdx.x];
    asm volatile(
        "{\n"
        "  .reg .u32 index;\n"
        "  targets: .branchtargets zero, one, two;\n"
        "  rem.u32 index, %0, 3;\n"
        "  brx.idx index, targets;\n"
        "zero: add.s32 %0, %0, 100; bra done;\n"
        "one: mul.lo.s32 %0, %0, -7; bra done;\n"
        "two: xor.b32 %0, %0, 0x55;\n"
        "done:\n"
        "}"
        : "+r"(value));
    values[threadIdx.x] = value;
}
