//! Ends near the least and the greatest number: neither the end nor its run may wrap around.
//! x: any 2048
//! y: zeros 2048
//! a: 9223372036854775807, 9223372036854775806, 9223372036854775800, -9223372036854775808, -9223372036854775801, -1, 0, 254, 255, 256
//! grid: 8
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, a: i64) {
    let row = program_id(0);
    let i = arange(0, 256);
    // The sum of the program's number and of its opposite keeps the end of each program unknown to the compiler.
    let end = a + (row - row / 2 - (row + 1) / 2);
    store(y + row * 256 + i, load(x + row * 256 + i, mask = i <= end, other = 7.0), mask = i <= end);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, a: i64) {
    for i in 0..256 {
        if i <= a {
            store(y + program_id(0) * 256 + i, load(x + program_id(0) * 256 + i));
        }
    }
}
