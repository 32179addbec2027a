//! Indices are divided by two numbers, and a run crosses a multiple of each at another element.
//! x: whole 4096
//! y: zeros 4096
//! a: 9, 11, 8, 100, 13
//! b: 11, 9, 9, 37, 8
//! grid: 4
fn kernel(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let (p, q) = (o / a, o / b);
    let v = load(x + (p + q) % 512) + load(x + p * 2 - q % 3 + 2) + load(x + o % a * 3 + o % b);
    store(y + o, v + (abs(p - q) * 7) as i32);
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>, a: usize, b: usize) {
    for i in 0..1024 {
        let o = program_id(0) * 1024 + i;
        let p = o / a;
        let q = o / b;
        let v = load(x + (p + q) % 512) + load(x + p * 2 - q % 3 + 2) + load(x + o % a * 3 + o % b);
        store(y + o, v + (abs(p - q) * 7) as i32);
    }
}
