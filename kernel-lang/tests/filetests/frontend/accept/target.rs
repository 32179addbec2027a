#[kernel(N = 64)]
fn target_rows<const N: usize>(y: PtrMut<i64>, n: usize) {
    let rows = if target() >= 90 { 8 } else { 4 };
    if target() == 0 {
        device_assert!(n > 0);
    }
    let at = arange(0, N + target());
    store(y + at, at * rows + target());
}
