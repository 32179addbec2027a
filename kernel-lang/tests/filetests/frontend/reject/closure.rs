#[kernel]
fn k(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let double = |a| a * 2.0;
    store(y, double);
    store(y, double(1.0, 2.0));
    store(y, double(1.0, by = 2.0));
    let mut total = 0.0;
    let add = |a| {
        total += a;
        total
    };
    store(y, add(load(x)));
    let leaves = {
        let inner = 2.0;
        let scaled = |a| a * inner;
        scaled
    };
    store(y, leaves(1.0));
    let recursive = |a| recursive(a - 1.0);
    store(y, recursive(load(x)));
    let later = |a| a * behind;
    let behind = 3.0;
    store(y, later(behind));
    let returns = |a| {
        if a > 0.0 {
            return;
        }
        a
    };
    store(y, returns(load(x)));
    store(y, (|a| a + 1.0)(load(x)));
    let wrong = |a| a + 1i32;
    store(y, wrong(load(x)));
    store(y, wrong(load(x)));
    store(y, wrong(1));
}
