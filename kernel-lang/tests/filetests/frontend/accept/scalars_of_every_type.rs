#[kernel]
fn scalars(y: PtrMut<f64>, a: i8, b: i16, c: i32, d: i64, e: u8, f: u16, g: u32, h: u64, i: usize, j: isize, k: bool, l: f16, m: bf16, n: f32, o: f64) {
    let ints = a + b + c + d + i + j;
    let unsigned = e + f + g + h;
    let small = e + b;
    let floats = l as f64 + m as f64 + n as f64 + o;
    store(y, ints as f64 + unsigned as f64 + small as f64 + floats + (k as i32) as f64);
}
