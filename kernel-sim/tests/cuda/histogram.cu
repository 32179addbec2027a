// A histogram: atomics in shared memory, then in global memory; and other atomics with scopes and orders.
#include <cuda/atomic>
extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned local_bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local_bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local_bins[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local_bins[i]) atomicAdd(&bins[i], local_bins[i]);
}

extern "C" __global__ void atomics(int *ints, unsigned long long *longs, double *doubles, unsigned *flag) {
    int i = threadIdx.x;
    atomicMax(&ints[0], i);
    atomicMin(&ints[1], -i);
    atomicXor(&ints[2], i);
    longs[1 + i] = atomicCAS(&longs[0], (unsigned long long)i, (unsigned long long)(i + 1));
    atomicAdd(&doubles[0], 0.5 * i);
    atomicExch_block(&ints[3], i);
    ints[4 + i] = atomicInc((unsigned *)&ints[3], 17);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    ready.fetch_add(1, cuda::memory_order_release);
    while (ready.load(cuda::memory_order_acquire) < 32) __nanosleep(20);
    __threadfence();
    ints[100 + i] = ints[0];
}
