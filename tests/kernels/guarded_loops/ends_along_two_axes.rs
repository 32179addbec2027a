//! Masks that end at the end of the loop along both axes of a tile: the first iteration accesses elements further on than the last one.
//! x: whole 100
//! c: counting 4
//! y: zeros 256
//! n: 100, 90, 97, 64
//! grid: 4
fn kernel(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, n: usize) {
    let program = program_id(0);
    let (p, q) = (arange(0, 64), arange(0, 64));
    let loaded = n - load(c + program);
    let mut total = zeros::<f32>([64, 64]);
    for i in range(0, loaded, 64) {
        let mask = (i + p < loaded)[(.., None)] & (i + q < loaded)[(None, ..)];
        total += load(x + i + p[(.., None)] + q[(None, ..)], mask = mask);
    }
    for i in range(0, loaded, 48) {
        let mask = (p < loaded - i)[(.., None)] & (q < loaded - i)[(None, ..)];
        total += load(x + i + p[(.., None)] + q[(None, ..)], mask = mask);
    }
    for i in range(0, n, 48) {
        let mask = (p < n - i)[(.., None)] & (q < n - i)[(None, ..)];
        total += load(x + i + p[(.., None)] + q[(None, ..)], mask = mask);
    }
    store(y + 64 * program + q, sum(total, axis = 0));
}

fn reference(x: Ptr<f32>, c: Ptr<i64>, y: PtrMut<f32>, n: usize) {
    let program = program_id(0);
    let loaded = n - load(c + program);
    for q in 0..64 {
        let mut total = 0.0f32;
        for p in 0..64 {
            for i in range(0, loaded, 64) {
                total += if i + p < loaded && i + q < loaded { load(x + i + p + q) } else { 0.0 };
            }
            for i in range(0, loaded, 48) {
                total += if i + p < loaded && i + q < loaded { load(x + i + p + q) } else { 0.0 };
            }
            for i in range(0, n, 48) {
                total += if i + p < n && i + q < n { load(x + i + p + q) } else { 0.0 };
            }
        }
        store(y + 64 * program + q, total);
    }
}
