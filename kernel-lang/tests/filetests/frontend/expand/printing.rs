#[kernel(N = [64, 128])]
fn printing<const N: usize>(x: Ptr<f32>) {
    static_print!("twice: {}", 2 * N);
    static_print!("always");
    device_print!("{}", load(x + arange(0, N)));
}
