//! Long rows that begin at any address are added up in tiles that begin where loads are aligned. Rows may be short, or lie in part outside of their tensors.
//! x: any 8000
//! z: any 8000
//! y: any 3
//! least: any 3
//! bits: any 3
//! grid: 3
//! n: 1000, 1024, 1037, 2600, 2051, 2600, 1029, 2600, 2600, 1500, 2600
//! first: 0, 0, 0, 0, 5, 1, 3, 0, -7, 9223372036854775000, 0
//! start: 0, 5, 1, 7, 3, 195, 6000, -5, 40, 0, 6501
fn kernel(x: Ptr<i16>, z: Ptr<f16>, y: PtrMut<i32>, least: PtrMut<f32>, bits: PtrMut<i16>, n: usize, first: usize, start: usize) {
    let row = start + program_id(0) * n;
    let mut total = zeros::<i32>([256]);
    let mut found = full::<f32>([256], f32::INFINITY);
    let mut odd = zeros::<i16>([256]);
    for from in range(first, n, 256) {
        let at = from + arange(0, 256);
        let mask = at < n;
        let v = load(x + row + at, mask = mask);
        let w = load(z + row + at, mask = mask, other = f32::INFINITY) as f32;
        total = total + v as i32 * 3 + abs(v as i32);
        found = min(abs(w), found);
        odd = odd ^ v;
    }
    store(y + program_id(0), sum(total));
    store(least + program_id(0), min(found));
    store(bits + program_id(0), reduce(odd, 0, |a, b| a ^ b));
}

fn reference(x: Ptr<i16>, z: Ptr<f16>, y: PtrMut<i32>, least: PtrMut<f32>, bits: PtrMut<i16>, n: usize, first: usize, start: usize) {
    let row = start + program_id(0) * n;
    let mut total = 0i32;
    let mut found = f32::INFINITY;
    let mut odd = 0i16;
    for at in first..n {
        let v = load(x + row + at);
        let w = load(z + row + at, mask = true, other = f32::INFINITY) as f32;
        total = total + v as i32 * 3 + abs(v as i32);
        found = min(abs(w), found);
        odd = odd ^ v;
    }
    store(y + program_id(0), total);
    store(least + program_id(0), found);
    store(bits + program_id(0), odd);
}
