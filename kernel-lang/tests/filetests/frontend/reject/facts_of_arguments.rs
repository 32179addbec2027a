#[kernel(
    assume(m = 1),
    assume(x = 1),
    assume(a = 1),
    assume(t = 1),
    assume(n = 300),
    assume(n = LIMIT),
    assume(n % 12 == 0),
    assume(n % 256 == 0),
    assume(n % 16 == 1),
    assume(n < 5),
    assume(n + 1 = 5),
    assume(n = 1, n % 2 == 0),
    assume(on = 1),
    assume(),
    assume = 3,
)]
fn facts_of_arguments<T: Int>(x: PtrMut<f32>, a: f32, t: T, n: u8, on: bool) {
    store(x, a);
}
