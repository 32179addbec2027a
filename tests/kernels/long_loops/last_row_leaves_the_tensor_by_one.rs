//! A loop over rows that begin at multiples of an argument: one of them ends one element behind the tensor, or with it.
//! x: whole 963
//! y: zeros 40
//! n: 13, 10, 9, 0, 33
//! s: 100, 90, 300, 75, 27
//! t: 0, 0, 1, 1, 0
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, n: usize, s: usize, t: usize) {
    let mut total = zeros::<i32>([64]);
    for i in range(0, n, 1) {
        total += load(x + i * s - t + arange(0, 64));
    }
    store(y, sum(total));
    let mut twice = zeros::<i32>([64]);
    for i in range(0, n, 1) {
        twice += load(x + i * 25 + 150 - t + arange(0, 64), other = 2);
    }
    store(y + 1, sum(twice));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, n: usize, s: usize, t: usize) {
    let (mut total, mut twice) = (0 as i32, 0 as i32);
    for i in range(0, n, 1) {
        for lane in 0..64 {
            total = total + load(x + i * s - t + lane);
            twice = twice + load(x + i * 25 + 150 - t + lane, other = 2);
        }
    }
    store(y, total);
    store(y + 1, twice);
}
