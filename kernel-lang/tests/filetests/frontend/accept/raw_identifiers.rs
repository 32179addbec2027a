/// The names of a kernel are Rust's: raw ones too.
#[kernel]
fn r#match(r#in: Ptr<f32>, r#type: PtrMut<f32>) {
    // A comment.
    let r#loop = load(r#in);
    store(r#type, r#loop);
}
