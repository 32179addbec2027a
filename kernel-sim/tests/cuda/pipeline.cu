// Tiles copied ahead with cp.async, once through the library and once in inline assembly.
#include <cuda/pipeline>
extern "C" __global__ void pipeline(const float *in, float *out, int tiles) {
    extern __shared__ float stages[];
    auto pipe = cuda::make_pipeline();
    const int width = blockDim.x;
    for (int ahead = 0; ahead < 2; ++ahead) {
        pipe.producer_acquire();
        if (ahead < tiles) cuda::memcpy_async(&stages[ahead * width + threadIdx.x], &in[ahead * width + threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
        pipe.producer_commit();
    }
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
        pipe.consumer_wait();
        __syncthreads();
        sum += stages[(tile & 1) * width + (threadIdx.x ^ 1)];
        __syncthreads();
        pipe.consumer_release();
        pipe.producer_acquire();
        if (tile + 2 < tiles)
            cuda::memcpy_async(&stages[(tile & 1) * width + threadIdx.x], &in[(tile + 2) * width + threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
        pipe.producer_commit();
    }
    out[blockIdx.x * width + threadIdx.x] = sum;
}

extern "C" __global__ void pipeline_asm(const int4 *in, int4 *out) {
    __shared__ __align__(16) int4 stage[128];
    unsigned address = (unsigned)__cvta_generic_to_shared(&stage[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(address), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;\n" ::"n"(0) : "memory");
    __syncthreads();
    out[threadIdx.x] = stage[127 - threadIdx.x];
}
