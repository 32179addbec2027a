#[kernel(N = 64, T = [f32, i8], DEBUG = [true, false])]
fn printing<T: Number, const N: usize, const DEBUG: bool>(x: Ptr<T>, n: usize, scale: f32) {
    let offsets = arange(0, N);
    let v = load(x + offsets);
    static_print!("N = {}, {N:x}, {{half}} = {}, v: {}, scale: {scale}", N, N / 2, v);
    if DEBUG {
        device_print!("v[{offsets}] = {}, as {:x}, n = {}", v, v, n);
        device_print!("here");
    }
    for i in 0..n {
        device_print!("i = {i}, scale = {scale}, {}", 2.5)
    }
    let rows = reshape(v, [N / 8, 8]);
    device_print!("rows \"{rows}\"\n{}", sum(rows, axis = 0)[(None, ..)]);
}
