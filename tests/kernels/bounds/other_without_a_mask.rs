//! Lanes outside of the tensor read `other`, also where the mask is known to hold for all of them.
//! x: any 100
//! y: zeros 128
//! s: 0, 60, 99, 100, -7
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    let lanes = arange(0, 64);
    store(y + lanes, load(x + s + lanes, mask = lanes < 64, other = 9));
    store(y + 64 + lanes, load(x + s + lanes, mask = lanes >= 0, other = lanes as i32));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, s: usize) {
    for i in 0..64 {
        let is_inside = s + i >= 0 && s + i < 100;
        store(y + i, if is_inside { load(x + s + i) } else { 9 });
        store(y + 64 + i, if is_inside { load(x + s + i) } else { i as i32 });
    }
}
