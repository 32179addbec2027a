// out[i] = a[i] + b[i], one element a thread and then four at once.
extern "C" __global__ void vector_add(const float *__restrict__ a, const float *__restrict__ b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

extern "C" __global__ void vector_add_grid(const float4 *a, const float4 *b, float4 *out, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 x = a[i], y = b[i];
        out[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
