#[kernel(T = [f32], N = [64], num_warps = 1, assume(n = 64, skip % 16 == 0), do_not_specialize = [unasked])]
fn facts<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: i32, skip: i64, stride_x: isize, stride_y: i32, unasked: isize) {
    let at = arange(0, N);
    let v = load(x + skip + at * stride_x, mask = at < n as usize) + load(x + at * unasked);
    store(y + at * stride_y as usize, v);
}
