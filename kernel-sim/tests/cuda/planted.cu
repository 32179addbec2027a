// Kernels as users write them, each with mistakes that a parameter turns on: 0 is the correct kernel. `planted` marks the line that is wrong or, where something is missing, the first line that suffers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define FULL 0xffffffffu

// Threads without an element leave early; the others reduce with a mask of those that stay.
extern "C" __global__ void early_exit(const int *in, int *out, int n, int mistake) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned mask = mistake == 1 ? 0x0000ffffu : mistake == 2 ? 0xffffffffu >> 1 : __activemask();
    int sum = in[i];
    for (int offset = 16; offset > 0; offset /= 2) {
        int other = __shfl_down_sync(mask, sum, offset);
        int lane = threadIdx.x & 31;
        if (lane + offset < 32 && (mask >> (lane + offset) & 1)) sum += other;
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(out, sum);
    if (mistake == 3) out[i + 1] = sum;
}

// An exclusive scan (Blelloch, 1990) in shared memory.
extern "C" __global__ void blelloch(const int *in, int *out, int mistake) {
    __shared__ int tree[256];
    int thread = threadIdx.x, count = 2 * blockDim.x, offset = 1;
    tree[2 * thread] = in[2 * thread];
    tree[2 * thread + 1] = in[2 * thread + 1];
    for (int width = count / 2; width > 0; width /= 2) {
        if (mistake != 1) __syncthreads();
        if (thread < width) {
            int left = offset * (2 * thread + 1) - 1, right = offset * (2 * thread + 2) - 1;
            tree[right + (mistake == 2 ? 1 : 0)] += tree[left];
        }
        offset *= 2;
    }
    if (thread == 0) tree[count - 1] = 0;
    for (int width = 1; width < count; width *= 2) {
        offset /= 2;
        if (mistake != 3) __syncthreads();
        if (thread < width) {
            int left = offset * (2 * thread + 1) - 1, right = offset * (2 * thread + 2) - 1;
            int value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
        if (mistake == 4 && thread < 40) __syncthreads();
    }
    __syncthreads();
    out[2 * thread] = tree[2 * thread];
    out[2 * thread + 1] = tree[2 * thread + 1];
}

// The last block adds what all blocks left.
__device__ unsigned finished;
extern "C" __global__ void last_block(const float *in, float *partial, float *out, int n, int mistake) {
    __shared__ float sums[128];
    __shared__ bool is_last;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
        if (mistake != 1 || width > 32) __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        __threadfence();
        is_last = atomicAdd(&finished, 1u) == gridDim.x - 1; __threadfence();
    }
    if (mistake != 2) __syncthreads();
    if (is_last && threadIdx.x == 0) {
        float total = 0.0f;
        for (int block = 0; block < gridDim.x + (mistake == 3); ++block) total += ((volatile float *)partial)[block];
        *out = total;
        finished = 0;
    }
}

// A lock that one thread of each block takes, and one that all threads take in turn.
__device__ int lock;
extern "C" __global__ void spin_lock(int *count, int mistake) {
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) __nanosleep(10);
        __threadfence();
        *(volatile int *)count = *(volatile int *)count + 1;
        __threadfence();
        if (mistake != 1 || blockIdx.x < gridDim.x - 1) atomicExch(&lock, 0);
    }
    __syncthreads();
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence();
            *(volatile int *)(count + 1) += 1;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}

// A barrier of the whole grid, made of an atomic counter: all blocks must run at once.
extern "C" __global__ void grid_barrier(int *values, int *out, unsigned *arrived, int mistake) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, total = gridDim.x * blockDim.x;
    values[i] = i * i;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < gridDim.x + (mistake == 1)) {}
    }
    __syncthreads();
    __threadfence();
    out[i] = ((volatile int *)values)[total - 1 - i];
}

// A row of special functions.
extern "C" __global__ void doubles(const double *in, double *out, int n) {
    int i = threadIdx.x;
    double x = in[i];
    out[i] = sin(x);
    out[n + i] = exp(x);
    out[2 * n + i] = pow(fabs(x), 1.7);
    out[3 * n + i] = x / (x * x + 1.0);
    out[4 * n + i] = log(fabs(x));
    out[5 * n + i] = rsqrt(fabs(x));
    out[6 * n + i] = atan2(x, 2.0);
    out[7 * n + i] = cbrt(x);
    out[8 * n + i] = erf(x);
    out[9 * n + i] = fmod(x, 0.7);
    out[10 * n + i] = tanh(x);
    out[11 * n + i] = sqrt(fabs(x));
}
extern "C" __global__ void floats(const float *in, float *out, int n) {
    int i = threadIdx.x;
    float x = in[i];
    out[i] = sinf(x);
    out[n + i] = expf(x);
    out[2 * n + i] = powf(fabsf(x), 1.7f);
    out[3 * n + i] = x / (x * x + 1.0f);
    out[4 * n + i] = logf(fabsf(x));
    out[5 * n + i] = rsqrtf(fabsf(x));
    out[6 * n + i] = atan2f(x, 2.0f);
    out[7 * n + i] = cbrtf(x);
    out[8 * n + i] = erff(x);
    out[9 * n + i] = fmodf(x, 0.7f);
    out[10 * n + i] = tanhf(x);
    out[11 * n + i] = sqrtf(fabsf(x));
    out[12 * n + i] = __expf(x) * __fdividef(x, 3.0f) + __sinf(x);
}

// A tiled product of matrices.
extern "C" __global__ void tiled(const float *a, const float *b, float *c, int n, int mistake) {
    __shared__ float left[16][16], right[16][17];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 16) {
        left[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0.0f;
        if (mistake != 3 || threadIdx.y) right[threadIdx.y][threadIdx.x] = column < n && (k + threadIdx.y < n || mistake == 4) ? b[(k + threadIdx.y) * n + column] : 0.0f;
        if (mistake != 1) __syncthreads();
        for (int j = 0; j < 16; ++j) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
        if (mistake != 2) __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

// Shuffles inside both sides of a branch, each with the mask of its side, and exchange through shared memory in a warp.
extern "C" __global__ void sides(const int *in, int *out, int mistake) {
    __shared__ int words[32];
    int lane = threadIdx.x, value = in[lane];
    unsigned low = __ballot_sync(FULL, lane < 12);
    if (lane < 12) {
        value += __shfl_xor_sync(low, value, 1);
        value += __shfl_sync(low, value, mistake == 1 ? 20 : 3);
    } else {
        int below = __shfl_up_sync(mistake == 2 ? FULL : ~low, value, 1);
        if (lane > 12 || mistake == 5) value -= below;
    }
    words[lane] = value;
    if (mistake != 3) __syncwarp();
    value = words[lane ^ 5];
    __syncwarp();
    if (lane & 1) words[lane] = value * 2;
    if (mistake != 4) __syncwarp();
    out[lane] = value + words[lane | 1];
}

// Switches that become jump tables, inside a loop, with functions that are called.
__device__ __noinline__ int step(int state, int symbol, int *trace) {
    switch (state) {
        case 0: trace[symbol & 3] += 1; return symbol & 1 ? 3 : 1;
        case 1: trace[0] -= symbol; return symbol % 5;
        case 2: return trace[1] > 3 ? 4 : 0;
        case 3: trace[3] ^= symbol; return 2;
        case 4: trace[symbol % 4] *= 3; return symbol > 6 ? 5 : 1;
        case 5: trace[2] = trace[1] + trace[0]; return 6;
        case 6: return trace[3] & 1 ? 7 : 0;
        default: trace[1] += state; return 0;
    }
}
extern "C" __global__ void automaton(const int *symbols, int *out, int count, int mistake) {
    int trace[4];
    for (int k = mistake == 1 ? 1 : 0; k < 4; ++k) trace[k] = k;
    int state = threadIdx.x & 7;
    for (int k = 0; k < count; ++k) state = step(state, symbols[(threadIdx.x + k) % count], trace);
    int sum = state;
    for (int k = 0; k < 4; ++k) sum = sum * 31 + trace[k];
    out[threadIdx.x] = sum;
}

// One warp fills a buffer, three read it; named barriers say full and empty.
extern "C" __global__ void named_barriers(const int *in, int *out, int rounds, int mistake) {
    __shared__ int buffer[2][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = 0;
    for (int round = 0; round < rounds; ++round) {
        int stage = round & 1;
        if (warp == 0) {
            if (round >= 2 && mistake != 1) asm volatile("bar.sync %0, 128;" ::"r"(3 + stage) : "memory");
            buffer[stage][lane] = in[round * 32 + lane];
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + stage) : "memory");
        } else {
            if (mistake != 2) asm volatile("bar.sync %0, 128;" ::"r"(1 + stage) : "memory");
            sum += buffer[stage][(lane + warp) % 32];
            if (round + 2 < rounds) asm volatile("bar.arrive %0, %1;" ::"r"(3 + stage), "r"(mistake == 3 ? 96 : 128) : "memory");
        }
    }
    if (warp) out[threadIdx.x - 32] = sum;
}

// Packed halves with an exchange through shared memory.
extern "C" __global__ void packed(const __half2 *a, const __nv_bfloat162 *b, float *out, int mistake) {
    __shared__ __half2 halves[64];
    __shared__ __nv_bfloat162 brains[64];
    int i = threadIdx.x;
    halves[i] = __hfma2(a[i], a[i], __float2half2_rn(0.5f));
    brains[i] = __hmul2(b[i], __hneg2(b[i]));
    if (mistake != 1) __syncthreads();
    float2 x = __half22float2(halves[63 - i]), y = __bfloat1622float2(brains[(i + 1) & 63]);
    out[2 * i] = x.x + y.x;
    out[2 * i + 1] = x.y + y.y + __low2float(__hmin2(a[i], a[i ^ 1])) + (__hbeq2(a[i], a[i]) ? 1.0f : 0.0f);
}
