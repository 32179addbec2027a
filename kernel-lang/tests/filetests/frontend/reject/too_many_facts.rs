#[kernel(
    assume(a = 1), assume(a = 2), assume(a = 3), assume(a = 4), assume(a = 5), assume(a = 6), assume(a = 7), assume(a = 8),
    assume(a = 11), assume(a = 12), assume(a = 13), assume(a = 14), assume(a = 15), assume(a = 16), assume(a = 17), assume(a = 18),
    assume(a = 21), assume(a = 22), assume(a = 23), assume(a = 24), assume(a = 25), assume(a = 26), assume(a = 27), assume(a = 28),
    assume(a = 31), assume(a = 32), assume(a = 33), assume(a = 34), assume(a = 35), assume(a = 36), assume(a = 37), assume(a = 38),
    assume(a = 41), assume(a = 42), assume(a = 43), assume(a = 44), assume(a = 45), assume(a = 46), assume(a = 47), assume(a = 48),
    assume(a = 51), assume(a = 52), assume(a = 53), assume(a = 54), assume(a = 55), assume(a = 56), assume(a = 57), assume(a = 58),
    assume(a = 61), assume(a = 62), assume(a = 63), assume(a = 64), assume(a = 65), assume(a = 66), assume(a = 67), assume(a = 68),
    assume(a = 71), assume(a = 72), assume(a = 73), assume(a = 74), assume(a = 75), assume(a = 76), assume(a = 77), assume(a = 78, b = 1)
)]
fn too_many_facts(x: PtrMut<f32>, a: usize, b: usize) {
    store(x + a + b, 1.0);
}
