//! A loop that does not begin at 0 carries a tile of indices and a number, each of which moves by a multiple of the loop's step.
//! x: any 900
//! y: zeros 900
//! z: zeros 40
//! low: 3, 0, -4, 9, 8
//! high: 9, 8, 8, 9, 2
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<i64>, low: i64, high: i64) {
    let (mut at, mut count) = (arange(0, 64), 1);
    for i in range(low, high, 2) {
        store(y + at, load(x + at));
        store(z + count, i);
        at += 128;
        count = count + 6;
    }
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<i64>, low: i64, high: i64) {
    let (mut at, mut count) = (0, 1);
    for i in range(low, high, 2) {
        for lane in 0..64 {
            store(y + at + lane, load(x + at + lane));
        }
        store(z + count, i);
        at = at + 128;
        count = count + 6;
    }
}
