//! Products of complex numbers, added up in a loop over blocks of a row; in the last block only some are in the row.
//! x: whole 8192
//! y: whole 8192
//! z: zeros 8
//! n: 1024, 1000, 256, 255, 0
//! stride: 2048, 2000, 512, 511, 100
//! grid: 4
fn kernel(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>, n: usize, stride: usize) {
    let row = program_id(0) * stride;
    let (mut re, mut im) = (zeros::<f32>([256]), zeros::<f32>([256]));
    for k in range(0, n, 256) {
        let j = k + arange(0, 256);
        let at = row + 2 * j;
        let (a, b) = (load(x + at, mask = j < n), load(x + at + 1, mask = j < n));
        let (c, d) = (load(y + at, mask = j < n), load(y + at + 1, mask = j < n));
        re += a * c - b * d;
        im += a * d + b * c;
    }
    store(z + 2 * program_id(0), sum(re));
    store(z + 2 * program_id(0) + 1, sum(im));
}

fn reference(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>, n: usize, stride: usize) {
    for p in 0..4 {
        let (mut re, mut im) = (0.0f32, 0.0f32);
        for j in 0..n {
            let at = p * stride + 2 * j;
            let (a, b, c, d) = (load(x + at), load(x + at + 1), load(y + at), load(y + at + 1));
            re += a * c - b * d;
            im += a * d + b * c;
        }
        store(z + 2 * p, re);
        store(z + 2 * p + 1, im);
    }
}
