#[kernel]
fn k(y: PtrMut<f32>, n: usize) {
    'outer: for i in 0..n {
        for j in 0..n {
            break 'outer;
        }
    }
}
