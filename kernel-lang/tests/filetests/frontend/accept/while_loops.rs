#[kernel]
fn while_loops(x: Ptr<i32>, y: PtrMut<i32>, n: i32) {
    let mut i = 0;
    let mut a = n;
    while i < n && load(x + i) > 0 {
        a += load(x + i);
        i += 1;
    }
    while a > 1 || i > 1 {
        a /= 2;
        i = i - 1;
    }
    store(y, a);
}
