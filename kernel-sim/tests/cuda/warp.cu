// Votes, matches, reductions and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void warp(const int *in, int *out) {
    int lane = threadIdx.x & 31;
    int value = in[threadIdx.x];
    unsigned ballot = __ballot_sync(0xffffffffu, value > 0);
    int any = __any_sync(0xffffffffu, value == 7), all = __all_sync(0xffffffffu, value != 0);
    unsigned same = __match_any_sync(0xffffffffu, value);
    int agree;
    unsigned everyone = __match_all_sync(0xffffffffu, value, &agree);
    int sum = __reduce_add_sync(0xffffffffu, value);
    unsigned most = __reduce_max_sync(0xffffffffu, (unsigned)value);
    int rotated = __shfl_sync(0xffffffffu, value, lane + 1, 16) + __shfl_xor_sync(0xffffffffu, value, 3);
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int tile_sum = cg::reduce(tile, value, cg::plus<int>());
    if (value & 1) {
        auto group = cg::coalesced_threads();
        tile_sum += group.size() + group.thread_rank();
    }
    out[threadIdx.x] = ballot + any + all + same + agree + everyone + sum + most + rotated + tile_sum + __popc(__activemask());
}
