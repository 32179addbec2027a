// Kernels with asynchronous copies, tensor cores and clusters, each with mistakes that a parameter turns on: 0 is the correct kernel.
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// A product of 32 x n and n x 32 with mma.sync: two stages of cp.async, ldmatrix, four warps of 16 x 16.
extern "C" __global__ void mma_pipeline(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int mistake) {
    __shared__ __align__(16) __nv_bfloat16 left[2][32][24], right[2][32][24];
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row = thread % 64 / 2, part = thread % 2 * 8;
    auto copy = [&](int stage, int k) {
        const __nv_bfloat16 *from = (thread < 64 ? a : b) + row * n + k + part;
        unsigned to = shared_address(thread < 64 ? &left[stage][row][part] : &right[stage][row][part]);
        if (k < n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float d[2][4] = {};
    copy(0, 0);
    for (int k = 0; k < n; k += 16) {
        int stage = k / 16 & 1;
        copy(stage ^ 1, k + 16);
        if (mistake == 1) asm volatile("cp.async.wait_group 2;" ::: "memory");
        else asm volatile("cp.async.wait_group 1;" ::: "memory");
        if (mistake != 2) __syncthreads();
        unsigned x[4], y[4];
        unsigned from = shared_address(&left[stage][warp / 2 * 16 + (lane & 15)][(lane >> 4) * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
        from = shared_address(&right[stage][warp % 2 * 16 + (lane & 7) + (lane >> 4) * 8][(lane >> 3 & 1) * 8]) + (mistake == 4 ? 8 : 0);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3]) : "r"(from) : "memory");
        for (int half = 0; half < 2; ++half)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                : "+f"(d[half][0]), "+f"(d[half][1]), "+f"(d[half][2]), "+f"(d[half][3])
                : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * half]), "r"(y[2 * half + 1]));
        if (mistake != 3) __syncthreads();
    }
    int top = warp / 2 * 16 + lane / 4, first = warp % 2 * 16 + lane % 4 * 2;
    for (int half = 0; half < 2; ++half)
        for (int i = 0; i < 4; ++i) c[(top + i / 2 * 8) * 32 + first + half * 8 + i % 2] = d[half][i];
}

// Bulk copies into two stages, awaited with mbarriers in inline PTX; the result leaves by a bulk copy too.
extern "C" __global__ void bulk_pipeline(const int *in, int *out, int tiles, int mistake) {
    __shared__ __align__(128) int stages[2][128];
    __shared__ __align__(128) int result[128];
    __shared__ __align__(8) unsigned long long full[2];
    int thread = threadIdx.x;
    if (thread == 0) {
        for (int stage = 0; stage < 2; ++stage) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[stage])) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    if (mistake != 1) __syncthreads();
    auto copy = [&](int tile) {
        if (thread != 0 || tile >= tiles) return;
        unsigned bar = shared_address(&full[tile & 1]);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(mistake == 2 ? 528 : 512) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(shared_address(stages[tile & 1])), "l"(in + tile * 128), "r"(bar) : "memory");
    };
    copy(0);
    copy(1);
    int sum = 0;
    for (int tile = 0; tile < tiles; ++tile) {
        unsigned bar = shared_address(&full[tile & 1]), parity = (tile >> 1 & 1) ^ (mistake == 3), done = mistake == 4;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
        sum += stages[tile & 1][thread ^ 1];
        if (mistake != 5) __syncthreads();
        copy(tile + 2);
    }
    result[thread] = sum;
    if (mistake != 6) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (thread == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out), "r"(shared_address(result)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        if (mistake != 7) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        result[0] = 0;
    }
}

// The library's barrier as a full and an empty one between a producer warp and a consumer warp.
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void producer_consumer(const int *in, int *out, int rounds, int mistake) {
    __shared__ int buffer[32];
    __shared__ alignas(8) unsigned char storage[2 * sizeof(barrier)];
    barrier *full = reinterpret_cast<barrier *>(storage), *empty = full + 1;
    if (threadIdx.x == 0) {
        init(full, 64);
        init(empty, 64);
    }
    __syncthreads();
    int lane = threadIdx.x % 32, sum = 0;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x < 32) {
            if (round > 0 && mistake != 1) empty->arrive_and_wait();
            buffer[lane] = in[round * 32 + lane];
            (void)full->arrive();
        } else {
            if (mistake == 2) (void)full->arrive();
            else full->arrive_and_wait();
            sum += buffer[31 - lane];
            if (round + 1 < rounds && (mistake != 3 || lane)) (void)empty->arrive();
        }
    }
    if (threadIdx.x >= 32) out[lane] = sum;
}

// The library's bulk copy with its barrier.
extern "C" __global__ void library_bulk(const int *in, int *out) {
    __shared__ alignas(128) int tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::memcpy_async(tile, in, cuda::aligned_size_t<16>(sizeof tile), bar);
        token = bar.arrive();
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = tile[255 - i] + 1;
}

// A histogram whose bins are spread over the shared memory of a cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_histogram(const int *in, int *bins, int n, int mistake) {
    __shared__ int own[16];
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    if (mistake != 1) cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = in[i];
        int *there = cluster.map_shared_rank(own, bin / 16);
        if (mistake == 4) there[bin % 16] += 1;
        else atomicAdd(there + bin % 16 + (mistake == 3 ? 16 : 0), 1);
    }
    if (mistake != 2) cluster.sync();
    if (threadIdx.x < 16) atomicAdd(&bins[rank * 16 + threadIdx.x], own[threadIdx.x]);
}
