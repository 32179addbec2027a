//! A reduction of what a loop does not change, whose combining function uses the index of the loop.
//! x: whole 64
//! y: zeros 10
//! n: 0, 1, 3, 10
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let v = load(x + arange(0, 64));
    for i in 0..n {
        let factor = i as i32;
        store(y + i, reduce(v, 0, |a, b| a + b + factor));
    }
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let mut total = 0i32;
    for j in 0..64 {
        total += load(x + j);
    }
    for i in 0..n {
        store(y + i, total + 63 * i as i32);
    }
}
