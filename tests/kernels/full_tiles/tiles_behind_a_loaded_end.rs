//! The end of a tile is loaded: of most programs, the tile lies behind it. In the last launch, sums of large numbers wrap and are less than the end.
//! lengths: whole 8
//! x: any 1024
//! y: zeros 8192
//! z: zeros 1024
//! s: 0, 512, 1024, 9223372036854775000
//! grid: 8
fn kernel(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<i32>, s: usize) {
    let n = load(lengths + program_id(0)) * 100;
    let i = arange(0, 1024);
    let mask = s + i < n;
    store(y + program_id(0) * 1024 + i, load(x + i), mask = mask);
    atomic_add(z + i, 1, mask = mask);
}

fn reference(lengths: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<i32>, s: usize) {
    // One program, because the sums of several would race.
    for p in 0..8 * (program_id(0) == 0) as usize {
        let n = load(lengths + p) * 100;
        for i in 0..1024 {
            if s + i < n {
                store(y + p * 1024 + i, load(x + i));
                store(z + i, load(z + i) + 1);
            }
        }
    }
}
