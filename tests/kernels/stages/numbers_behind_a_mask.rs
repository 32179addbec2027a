//! Numbers and scattered elements that are loaded ahead, where masks leave out some: in between, and all behind a limit.
//! x: whole 600
//! y: zeros 64
//! z: zeros 1
//! n: 0, 1, 5, 9
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let lanes = arange(0, 64);
    let (mut sums, mut total) = (zeros::<i32>([64]), 0);
    for i in range(0, n, 1, num_stages = 3) {
        sums += load(x + 3 * lanes + i, mask = lanes % 3 != i % 3, other = 5);
        total += load(x + 10 * i, mask = i % 2 == 0, other = 1000);
    }
    store(y + lanes, sums);
    store(z, total);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let mut total = 0;
    for i in 0..n {
        for j in 0..64 {
            store(y + j, load(y + j) + if j % 3 != i % 3 { load(x + 3 * j + i) } else { 5 });
        }
        total += if i % 2 == 0 { load(x + 10 * i) } else { 1000 };
    }
    store(z, total);
}
