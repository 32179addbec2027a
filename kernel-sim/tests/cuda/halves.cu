// Packed half and bf16 arithmetic, and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
extern "C" __global__ void halves(const __half2 *a, const __half2 *b, __half2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i];
    x = __hfma2_relu(x, y, __hmax2(x, y));
    x = __hadd2(x, h2exp2(y));
    out[i] = __hgt2(x, y);
}

extern "C" __global__ void brains(const __nv_bfloat162 *a, float2 *out, __nv_bfloat16 *narrow, __nv_fp8x2_e4m3 *tiny, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat162 x = __hmul2(a[i], a[i]);
    float2 wide = __bfloat1622float2(x);
    out[i] = wide;
    narrow[i] = __float2bfloat16_rz(wide.x - wide.y);
    tiny[i] = __nv_fp8x2_e4m3(wide);
}
