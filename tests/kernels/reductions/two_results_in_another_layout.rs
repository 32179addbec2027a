//! A reduction with two results, which meet sums of larger tiles: both results change threads.
//! x: any 4096
//! w: any 16384
//! y: zeros 64
//! z: zeros 64
fn kernel(x: Ptr<i32>, w: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    let i = arange(0, 64);
    let tile = load(x + 2 * (32 * i.col() + arange(0, 32).row()));
    let (least, total) = reduce((tile, tile + 1), 1, |a, b| (min(a.0, b.0), a.1 + b.1));
    let sums = sum(load(w + 2 * (64 * arange(0, 128).col() + i.row())), axis = 0);
    store(y + i, least + sums);
    store(z + i, total - sums);
}

fn reference(x: Ptr<i32>, w: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    for i in 0..64 {
        let (mut least, mut total, mut sums) = (load(x + 64 * i), 0, 0);
        for j in 0..32 {
            least = min(least, load(x + 64 * i + 2 * j));
            total += load(x + 64 * i + 2 * j) + 1;
        }
        for j in 0..128 {
            sums += load(w + 128 * j + 2 * i);
        }
        store(y + i, least + sums);
        store(z + i, total - sums);
    }
}
