// Double sine and cosine: the reduction of large arguments is a function with a table in constant memory and an array in local memory.
extern "C" __global__ void sin_cos(const double *in, double *sines, double *cosines, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sincos(in[i], &sines[i], &cosines[i]);
}

extern "C" __global__ void divide(const double *a, const double *b, double *quotient, long long *rounded, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        quotient[i] = a[i] / b[i] + sqrt(fabs(a[i]));
        rounded[i] = llrint(a[i]) % (i + 1);
    }
}
