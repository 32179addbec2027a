#[kernel]
fn find(x: Ptr<i32>, y: PtrMut<i32>, n: usize, wanted: i32) {
    for i in 0..n {
        if load(x + i) == wanted {
            store(y, i as i32);
            return;
        }
    }
    store(y, -1);
}
