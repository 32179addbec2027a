//! Numbers of rows are loaded between loads of rows, one of them from memory that the program writes before.
//! at: whole 64
//! x: any 2560
//! n: zeros 16
//! y: zeros 3072
//! grid: 8
fn kernel(at: Ptr<u32>, x: Ptr<f32>, n: PtrMut<i64>, y: PtrMut<f32>) {
    let (p, i) = (program_id(0), arange(0, 128));
    let first = load(x + load(at + p) as i64 * 128 + i);
    store(n + p, load(at + p + 8) as i64);
    let second = load(x + load(n + p) * 128 + i);
    let third = load(x + load(at + load(at + p + 16) as i64) as i64 * 128 + i, mask = i < 100);
    store(y + p * 384 + i, first);
    store(y + p * 384 + 128 + i, second);
    store(y + p * 384 + 256 + i, third);
}

fn reference(at: Ptr<u32>, x: Ptr<f32>, n: PtrMut<i64>, y: PtrMut<f32>) {
    let p = program_id(0);
    store(n + p, load(at + p + 8) as i64);
    for i in 0..128 {
        store(y + p * 384 + i, load(x + load(at + p) as i64 * 128 + i));
        store(y + p * 384 + 128 + i, load(x + load(at + p + 8) as i64 * 128 + i));
        if i < 100 {
            store(y + p * 384 + 256 + i, load(x + load(at + load(at + p + 16) as i64) as i64 * 128 + i));
        }
    }
}
