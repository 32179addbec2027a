//! A carried tile of indices moves by a number that the loop's step does not divide.
//! x: any 400
//! y: zeros 400
//! n: 8, 9, 0, 1
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let (mut at, mut from) = (arange(0, 32), 100);
    for _ in range(0, n, 2) {
        store(y + at, load(x + from + arange(0, 32)));
        at += 33;
        from = from - 7;
    }
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for i in 0..(n + 1) / 2 {
        for lane in 0..32 {
            store(y + 33 * i + lane, load(x + 100 - 7 * i + lane));
        }
    }
}
