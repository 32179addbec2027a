//! The mask of a row ends where its program's number says. What is computed from the row has one value behind the end, where a warp may copy it.
//! x: whole 3000
//! y: zeros 4096
//! z: zeros 4096
//! grid: 4
//! step: 0, 1, 37, 97, 256, 700, -3, 9223372036854775807
//! first: 5, 0, 20, 700, 31, 0, 8, 1
//! by: 3, 1, 7, 2, 5, 4, 3, 9
fn kernel(x: Ptr<i16>, y: PtrMut<i32>, z: PtrMut<f32>, step: usize, first: usize, by: i32) {
    let row = program_id(0);
    let column = arange(0, 1024);
    let v = load(x + row * 600 + column, mask = column <= row * step + first, other = -7) as i32;
    let least = min(v);
    let w = (v - least) * 3 + (v ^ by) * (v + 5) - (v & 6) % by + max(v, 2 * by) * (v - by);
    store(y + row * 1024 + column, w);
    let f = v as f32;
    let g = (f + by as f32) * (least as f32 - 90.0) - (f * f - 2.0) * (f + 1.0) - abs(f) * (f - 3.0) * f;
    store(z + row * 1024 + column, g + max(f));
}

fn reference(x: Ptr<i16>, y: PtrMut<i32>, z: PtrMut<f32>, step: usize, first: usize, by: i32) {
    for row in 0..4 {
        let mut least = 1000;
        let mut most = -1000;
        for j in 0..1024 {
            let v = if j <= row * step + first { load(x + row * 600 + j) as i32 } else { -7 };
            least = min(least, v);
            most = max(most, v);
        }
        for j in 0..1024 {
            let v = if j <= row * step + first { load(x + row * 600 + j) as i32 } else { -7 };
            store(y + row * 1024 + j, (v - least) * 3 + (v ^ by) * (v + 5) - (v & 6) % by + max(v, 2 * by) * (v - by));
            let f = v as f32;
            let g = (f + by as f32) * (least as f32 - 90.0) - (f * f - 2.0) * (f + 1.0) - abs(f) * (f - 3.0) * f;
            store(z + row * 1024 + j, g + most as f32);
        }
    }
}
