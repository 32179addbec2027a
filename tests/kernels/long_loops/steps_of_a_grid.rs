//! Each program takes every so many blocks. Iterations stay aligned if a factor of the step is a multiple of a wide access, and not otherwise.
//! x: whole 5000
//! y: zeros 3
//! z: zeros 3
//! n: 0, 100, 128, 1000, 5000, 4999, 5000, 700
//! step: 128, 128, 128, 128, 128, 128, 43, 129
//! grid: 3
//! warps: 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, step: usize) {
    let mut total = zeros::<f32>([128]);
    for i in range(program_id(0) * 128, n, num_programs(0) * 128) {
        let at = i + arange(0, 128);
        total += load(x + at, mask = at < n);
    }
    store(y + program_id(0), sum(total));
    let mut other = zeros::<f32>([128]);
    for i in range(0, n - 128, step * num_programs(0)) {
        other += load(x + i + arange(0, 128));
    }
    store(z + program_id(0), sum(other));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize, step: usize) {
    for program in 0..3 {
        let mut total = 0.0f32;
        for i in range(program * 128, n, 384) {
            for j in 0..128 {
                if i + j < n {
                    total += load(x + i + j);
                }
            }
        }
        store(y + program, total);
        let mut other = 0.0f32;
        for i in range(0, n - 128, step * 3) {
            for j in 0..128 {
                other += load(x + i + j);
            }
        }
        store(z + program, other);
    }
}
