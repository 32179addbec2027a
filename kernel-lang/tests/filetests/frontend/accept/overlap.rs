#[kernel(N = 64)]
fn overlap<const N: usize>(x: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    gdc_launch_dependents();
    if n > 7 {
        gdc_wait();
    }
    store(x + offsets, load(x + offsets) * 2.0);
    gdc_wait()
}
