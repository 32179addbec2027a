//! Lanes so far apart that the difference of two of them has 63 bits: only the last one is inside of the tensor.
//! x: any 20
//! y: zeros 16
//! s: 4, 19, 20, 0
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 8);
    store(y + lanes, load(x + (lanes * 1317624576693539401 - 9223372036854775803)));
    store(y + 8 + lanes, load(x + (lanes * 1317624576693539401 - 9223372036854775807 + s)));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    store(y + 7, load(x + 4));
    if s < 20 {
        store(y + 15, load(x + s));
    }
}
