// Algorithms of CUB for a block.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void radix_sort(const unsigned *in, unsigned *out) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 4>;
    using Load = cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union { Sort::TempStorage sort; Load::TempStorage load; Store::TempStorage store; } room;
    unsigned keys[4];
    Load(room.load).Load(in, keys);
    __syncthreads();
    Sort(room.sort).Sort(keys);
    __syncthreads();
    Store(room.store).Store(out, keys);
}
extern "C" __global__ void block_scan(const int *in, int *out, int *total) {
    using Scan = cub::BlockScan<int, 96>;
    __shared__ Scan::TempStorage room;
    int value = in[threadIdx.x], all;
    Scan(room).ExclusiveSum(value, value, all);
    out[threadIdx.x] = value;
    if (threadIdx.x == 0) *total = all;
}
extern "C" __global__ void block_scan_raking(const int *in, int *out) {
    using Scan = cub::BlockScan<int, 96, cub::BLOCK_SCAN_RAKING>;
    __shared__ Scan::TempStorage room;
    int value = in[threadIdx.x];
    Scan(room).InclusiveSum(value, value);
    out[threadIdx.x] = value;
}
extern "C" __global__ void block_reduce(const float *in, float *out, int valid) {
    using Reduce = cub::BlockReduce<float, 100>;
    __shared__ Reduce::TempStorage room;
    float sum = Reduce(room).Sum(threadIdx.x < valid ? in[threadIdx.x] : 0.0f, valid);
    if (threadIdx.x == 0) *out = sum;
}
extern "C" __global__ void merge_sort(const int *in, int *out) {
    using Sort = cub::BlockMergeSort<int, 64, 3>;
    __shared__ Sort::TempStorage room;
    int keys[3];
    for (int i = 0; i < 3; ++i) keys[i] = in[threadIdx.x * 3 + i];
    Sort(room).Sort(keys, [] __device__(int a, int b) { return a < b; });
    for (int i = 0; i < 3; ++i) out[threadIdx.x * 3 + i] = keys[i];
}
extern "C" __global__ void block_histogram(const unsigned char *in, unsigned *out) {
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ Histogram::TempStorage room;
    __shared__ unsigned bins[256];
    unsigned char items[4];
    for (int i = 0; i < 4; ++i) items[i] = in[threadIdx.x * 4 + i];
    Histogram(room).Histogram(items, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 64) out[i] = bins[i];
}
