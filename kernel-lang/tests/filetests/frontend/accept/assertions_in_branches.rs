#[kernel(N = [8, 64])]
fn assertions_in_branches<const N: usize>(y: PtrMut<f32>) {
    if N == 8 {
        store(y, 1.0);
    } else if N == 64 {
        store(y, 2.0);
    } else {
        static_assert!(false, "N is 8 or 64");
    }
    if 1 == 2 {
        static_assert!(1 == 2, "never");
    }
}
