// Tensor cores: the library's fragments, and ldmatrix with mma.sync in inline assembly.
#include <cuda_bf16.h>
#include <mma.h>
extern "C" __global__ void wmma(const __half *a, const __half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < 64; k += 16) {
        load_matrix_sync(left, a + k, 64);
        load_matrix_sync(right, b + k, 64);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c, sum, 16, mem_row_major);
}

extern "C" __global__ void mma(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    __shared__ __align__(16) __nv_bfloat16 left[16 * 16], right[8 * 16];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) left[i] = a[i];
    for (int i = lane; i < 128; i += 32) right[i] = b[i];
    __syncwarp();
    unsigned x[4], y[2];
    unsigned from = (unsigned)__cvta_generic_to_shared(&left[(lane & 15) * 16 + (lane >> 4) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
    from = (unsigned)__cvta_generic_to_shared(&right[(lane & 7) * 16 + (lane >> 3 & 1) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(from));
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    int row = lane >> 2, column = (lane & 3) * 2;
    c[row * 8 + column] = d[0];
    c[row * 8 + column + 1] = d[1];
    c[(row + 8) * 8 + column] = d[2];
    c[(row + 8) * 8 + column + 1] = d[3];
}
