// Kernels of the kinds that first programs and benchmarks have.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
namespace cg = cooperative_groups;

// Neighbouring pixels need different numbers of rounds.
extern "C" __global__ void mandelbrot(int *rounds, int width, int height, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    double re = -2.0 + 3.0 * x / width, im = -1.5 + 3.0 * y / height, a = 0, b = 0;
    int round = 0;
    for (; round < limit && __dadd_rn(__dmul_rn(a, a), __dmul_rn(b, b)) <= 4.0; ++round) {
        double next = __dadd_rn(__dsub_rn(__dmul_rn(a, a), __dmul_rn(b, b)), re);
        b = __dadd_rn(__dmul_rn(__dmul_rn(2.0, a), b), im);
        a = next;
    }
    rounds[y * width + x] = round;
}

template <typename T> __global__ void bitonic(T *keys, int count) {
    extern __shared__ unsigned char bytes[];
    T *local = reinterpret_cast<T *>(bytes);
    int i = threadIdx.x;
    local[i] = keys[i];
    for (int width = 2; width <= count; width <<= 1)
        for (int distance = width >> 1; distance > 0; distance >>= 1) {
            __syncthreads();
            int other = i ^ distance;
            if (other > i) {
                T a = local[i], b = local[other];
                if ((a > b) == ((i & width) == 0)) { local[i] = b; local[other] = a; }
            }
        }
    __syncthreads();
    keys[i] = local[i];
}
template __global__ void bitonic<short>(short *, int);
template __global__ void bitonic<long long>(long long *, int);

// A tile with a rim; its corners are never filled.
extern "C" __global__ void stencil(const float *in, float *out, int width, int height) {
    __shared__ float tile[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [&](int x, int y) { return x >= 0 && x < width && y >= 0 && y < height ? in[y * width + x] : 0.0f; };
    tile[ty][tx] = at(x, y);
    if (threadIdx.x == 0) tile[ty][0] = at(x - 1, y);
    if (threadIdx.x == 31) tile[ty][33] = at(x + 1, y);
    if (threadIdx.y == 0) tile[0][tx] = at(x, y - 1);
    if (threadIdx.y == 7) tile[9][tx] = at(x, y + 1);
    __syncthreads();
    if (x < width && y < height) out[y * width + x] = 4.0f * tile[ty][tx] - tile[ty][tx - 1] - tile[ty][tx + 1] - tile[ty - 1][tx] - tile[ty + 1][tx];
}

// Groups of 8 and of the threads that are there; a warp that reduces before one atomic.
extern "C" __global__ void groups(const int *in, int *out, int *total, int *sums, int count) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    int value = i < count ? in[i] : 0;
    int sum = cg::reduce(tile, value, cg::plus<int>());
    int before = cg::exclusive_scan(tile, value);
    if (i < count) out[i] = sum * 1000 + before;
    if (value & 1) {
        cg::coalesced_group odd = cg::coalesced_threads();
        int first = 0;
        if (odd.thread_rank() == 0) first = atomicAdd(total, (int)odd.size());
        first = odd.shfl(first, 0);
        if (first < 0) out[0] = first;
    }
    auto parts = cg::labeled_partition(cg::tiled_partition<32>(block), value & 3);
    int part = cg::reduce(parts, value, cg::greater<int>());
    if (parts.thread_rank() == 0) atomicMax(&sums[value & 3], part);
}

// Counts keys: the lanes of one key agree on a leader.
extern "C" __global__ void match_count(const unsigned long long *keys, int *bins, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned active = __ballot_sync(~0u, i < count);
    if (i < count) {
        unsigned same = __match_any_sync(active, keys[i]);
        if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&bins[keys[i] % 16], __popc(same));
        int all;
        __match_all_sync(active, keys[i] < 1000000000000ull, &all);
        if (!all) __trap();
    }
}

__device__ float atomic_max(float *address, float value) {
    int *bits = (int *)address, old = *(volatile int *)bits, seen;
    do {
        seen = old;
        if (__int_as_float(seen) >= value) break;
        old = atomicCAS(bits, seen, __float_as_int(value));
    } while (seen != old);
    return __int_as_float(old);
}
__device__ void atomic_add(__half *address, float value) { atomicAdd(address, __float2half(value)); }
extern "C" __global__ void atomics_by_hand(const float *in, float *most, __half *half, __nv_bfloat162 *pair, double *product, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    atomic_max(most, in[i]);
    atomic_add(half, in[i] > 0.0f ? 1.0f : 0.0f);
    atomicAdd(pair, __floats2bfloat162_rn(1.0f, in[i] > 0.0f));
    unsigned long long *bits = (unsigned long long *)product, old = *(volatile unsigned long long *)bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __double_as_longlong(__longlong_as_double(seen) * (i % 7 == 0 ? 2.0 : 1.0)));
    } while (seen != old);
}

// Divisions of 64 bits are calls; a struct with padding goes through local memory; 128 bits multiply.
struct Record { char kind; double value; short index; };
__device__ __noinline__ Record pick(const Record *records, int at) { return records[at & 3]; }
extern "C" __global__ void integers(const long long *a, const long long *b, long long *out, int count) {
    int i = threadIdx.x;
    if (i >= count) return;
    long long x = a[i], y = b[i];
    Record records[4];
    for (int k = 0; k < 4; ++k) records[(k + i) & 3] = Record{(char)(k + 1), (double)(x % (k + 2)), (short)(i * k)};
    Record chosen = pick(records, i + 1);
    out[8 * i] = x / y;
    out[8 * i + 1] = x % y;
    out[8 * i + 2] = (long long)((unsigned long long)x / (unsigned long long)y);
    out[8 * i + 3] = __mul64hi(x, y) ^ (long long)__umul64hi(x, y);
    out[8 * i + 4] = (long long)((__int128)x * y % 1000003);
    out[8 * i + 5] = chosen.kind * 1000 + (long long)chosen.value * 10 + chosen.index;
    out[8 * i + 6] = __popcll(x) + __clzll(y) * 100 + __ffsll(x) * 10000 + ((long long)__brev((unsigned)x) << 32);
    out[8 * i + 7] = __funnelshift_l((unsigned)x, (unsigned)y, i) + __byte_perm((unsigned)x, (unsigned)y, 0x5140 + i) + __dp4a((int)x, (int)y, i) + __vabsdiffu4((unsigned)x, (unsigned)y);
}

// A matrix of 32 x 32 in bf16, four fragments; and one in doubles.
extern "C" __global__ void wmma_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    using namespace nvcuda::wmma;
    __shared__ float tile[16 * 20];
    int warp = threadIdx.x / 32, row = warp / 2 * 16, column = warp % 2 * 16;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.5f);
    for (int k = 0; k < 32; k += 16) {
        fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> left;
        fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> right;
        load_matrix_sync(left, a + row * 32 + k, 32);
        load_matrix_sync(right, b + k * 32 + column, 32);
        mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
    for (int turn = 0; turn < 4; ++turn) {
        if (warp == turn) {
            store_matrix_sync(tile, sum, 20, mem_row_major);
            __syncwarp();
            for (int i = threadIdx.x % 32; i < 256; i += 32) c[(row + i / 16) * 32 + column + i % 16] = tile[i / 16 * 20 + i % 16];
        }
        __syncthreads();
    }
}
extern "C" __global__ void wmma_double(const double *a, const double *b, double *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 8, 8, 4, double, row_major> left;
    fragment<matrix_b, 8, 8, 4, double, col_major> right;
    fragment<accumulator, 8, 8, 4, double> sum;
    fill_fragment(sum, 0.0);
    load_matrix_sync(left, a, 4);
    load_matrix_sync(right, b, 4);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 8, mem_row_major);
}

// What only some lanes have goes through a shuffle, and only those that got something use it.
extern "C" __global__ void partial(const int *in, int *out, int count) {
    int lane = threadIdx.x, value;
    if (lane < count) value = in[lane];
    for (int offset = 16; offset > 0; offset /= 2) {
        int other = __shfl_down_sync(~0u, value, offset);
        if (lane + offset < count) value = max(value, other) + (value == other);
    }
    if (lane == 0) *out = value;
}

// Softmax of a row for each block, in vectors of 4, online.
extern "C" __global__ void softmax(const float4 *in, float4 *out, int vectors) {
    __shared__ float2 parts[32];
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
        float4 v = in[blockIdx.x * vectors + i];
        float next = fmaxf(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), most);
        sum = sum * __expf(most - next) + __expf(v.x - next) + __expf(v.y - next) + __expf(v.z - next) + __expf(v.w - next);
        most = next;
    }
    auto merge = [](float2 a, float2 b) {
        float next = fmaxf(a.x, b.x);
        return next == -INFINITY ? make_float2(next, 0.0f) : make_float2(next, a.y * __expf(a.x - next) + b.y * __expf(b.x - next));
    };
    float2 own = make_float2(most, sum);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        own = merge(own, make_float2(__shfl_xor_sync(~0u, own.x, offset), __shfl_xor_sync(~0u, own.y, offset)));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x < 32) {
        own = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : make_float2(-INFINITY, 0.0f);
        for (int offset = 16; offset > 0; offset /= 2)
            own = merge(own, make_float2(__shfl_xor_sync(~0u, own.x, offset), __shfl_xor_sync(~0u, own.y, offset)));
        if (threadIdx.x == 0) parts[0] = own;
    }
    __syncthreads();
    own = parts[0];
    for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
        float4 v = in[blockIdx.x * vectors + i];
        out[blockIdx.x * vectors + i] = make_float4(__expf(v.x - own.x) / own.y, __expf(v.y - own.x) / own.y, __expf(v.z - own.x) / own.y, __expf(v.w - own.x) / own.y);
    }
}
