//! Programs add tiles to one tile: several elements an instruction where nobody uses the old values. The last programs leave some elements alone.
//! x: whole 4096
//! y: zeros 1024
//! z: zeros 1024
//! h: zeros 1024
//! k: zeros 1024
//! n: 4096, 3072, 4090, 3997
//! m: 1024, 520, 1021, 3
//! grid: 4
fn kernel(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<bf16>, h: PtrMut<f16>, k: PtrMut<f32>, n: usize, m: usize) {
    let at = arange(0, 1024);
    let o = program_id(0) * 1024 + at;
    let v = load(x + o, mask = o < n);
    atomic_add(y + at, v, mask = o < n);
    atomic_add(z + at, v as bf16, mask = at < m);
    atomic_add(h + at, v as f16, mask = o < n, sem = "release");
    let old = atomic_add(k + at, v, sem = "relaxed");
    atomic_add(k + at, old * 0.0);
}

fn reference(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<bf16>, h: PtrMut<f16>, k: PtrMut<f32>, n: usize, m: usize) {
    // One program, because the sums of several would race.
    for p in 0..4 * (program_id(0) == 0) as usize {
        for i in 0..1024 {
            let o = p * 1024 + i;
            let mut v = 0f32;
            if o < n {
                v = load(x + o);
            }
            store(y + i, load(y + i) + v);
            if i < m {
                store(z + i, load(z + i) + v as bf16);
            }
            store(h + i, load(h + i) + v as f16);
            store(k + i, load(k + i) + v);
        }
    }
}
