//! A tile that begins in front of its tensor by a number that is known when it is compiled: those lanes read `other` and write nothing.
//! x: any 50
//! y: zeros 40
//! n: 50, 61, 40, 3, 0
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let lanes = arange(0, 64);
    store(y + (lanes - 5), load(x + (lanes - 3), mask = lanes < n, other = 2.0));
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    for i in 0..40 {
        let from = i + 2;
        let is_inside = from < 50 && from + 3 < n;
        store(y + i, if is_inside { load(x + from) } else { 2.0 });
    }
}
