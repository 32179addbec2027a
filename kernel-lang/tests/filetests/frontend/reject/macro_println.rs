#[kernel]
fn k(y: PtrMut<f32>) {
    println!("{y}");
}
