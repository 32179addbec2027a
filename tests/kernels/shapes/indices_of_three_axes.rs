//! Indices of three axes, permuted and reshaped before they address memory: only some of them have one step along the new axes.
//! x: any 4096
//! y: zeros 1024
fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {
    let at = reshape(arange(0, 4), [4, 1, 1]) * 300 + reshape(arange(0, 8), [1, 8, 1]) * 20 + reshape(arange(0, 16), [1, 1, 16]);
    let out = arange(0, 512);
    store(y + out, reshape(load(x + permute(at, [1, 2, 0])), [512]));
    store(y + 512 + out, load(x + reshape(at, [512])));
}

fn reference(x: Ptr<i32>, y: PtrMut<i32>) {
    for i in 0..4 {
        for j in 0..8 {
            for k in 0..16 {
                let v = load(x + i * 300 + j * 20 + k);
                store(y + (j * 16 + k) * 4 + i, v);
                store(y + 512 + (i * 8 + j) * 16 + k, v);
            }
        }
    }
}
