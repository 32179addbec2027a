//! Stores of narrow elements behind reshapes keep the layout of the loads, whose elements are wider: groups are scaled, rows interleaved.
//! x: any 2048
//! w: any 2048
//! y: zeros 2048
//! z: zeros 2048
//! n: 2048, 2047, 100, 0
//! grid: 2
fn kernel(x: Ptr<i32>, w: Ptr<f32>, y: PtrMut<i8>, z: PtrMut<f32>, n: usize) {
    let o = program_id(0) * 1024 + arange(0, 1024);
    let groups = reshape(load(x + o, mask = o < n), [64, 16]);
    store(y + o, reshape(groups - max(groups, axis = 1).col(), [1024]) as i8, mask = o < n);
    let rows = reshape(load(w + o, mask = o < n), [4, 256]);
    store(z + o, reshape(permute(rows, [1, 0]), [1024]), mask = o < n);
}

fn reference(x: Ptr<i32>, w: Ptr<f32>, y: PtrMut<i8>, z: PtrMut<f32>, n: usize) {
    let first = program_id(0) * 1024;
    for group in 0..64 {
        let mut largest = i32::MIN;
        for i in 0..16 {
            let o = first + 16 * group + i;
            largest = max(largest, load(x + o, mask = o < n));
        }
        for i in 0..16 {
            let o = first + 16 * group + i;
            store(y + o, (load(x + o, mask = o < n) - largest) as i8, mask = o < n);
        }
    }
    for i in 0..1024 {
        let from = first + i % 4 * 256 + i / 4;
        store(z + first + i, load(w + from, mask = from < n), mask = first + i < n);
    }
}
