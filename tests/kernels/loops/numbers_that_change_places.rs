//! Numbers and tiles that a loop carries change places in each iteration, two of them and three in a circle.
//! x: any 384
//! y: zeros 384
//! z: zeros 5
//! n: 0, 1, 2, 3, 10
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize) {
    let lanes = arange(0, 128);
    let (mut a, mut b, mut c) = (load(x + lanes), load(x + 128 + lanes), load(x + 256 + lanes));
    let (mut first, mut second, mut last) = (3i64, 5i64, n as i64);
    let (mut even, mut odd) = (1i64, 2i64);
    for i in 0..n {
        let old = a;
        a = b;
        b = c;
        c = old;
        let before = first;
        first = second;
        second = last;
        last = before;
        let swapped = even;
        even = odd;
        odd = swapped;
    }
    store(y + lanes, a);
    store(y + 128 + lanes, b);
    store(y + 256 + lanes, c);
    store(z, first);
    store(z + 1, second);
    store(z + 2, last);
    store(z + 3, even);
    store(z + 4, odd);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i64>, n: usize) {
    for part in 0..3 {
        for i in 0..128 {
            store(y + 128 * part + i, load(x + (part + n) % 3 * 128 + i));
        }
        let from = (part + n) % 3;
        let mut number = 3i64;
        if from == 1 {
            number = 5;
        }
        if from == 2 {
            number = n as i64;
        }
        store(z + part, number);
    }
    store(z + 3, (1 + n % 2) as i64);
    store(z + 4, (2 - n % 2) as i64);
}
