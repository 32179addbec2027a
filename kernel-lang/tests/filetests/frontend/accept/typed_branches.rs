/// Constants of branches take the type that is wanted of the value.
#[device]
fn class(v: Value<i32>) -> Value<i32> {
    if v > 100 {
        return 3;
    }
    if v > 10 { 2 } else { 1 }
}

#[device]
fn half<T: Float>(v: Value<i32>) -> Value<T> {
    if v > 0 { 0.5 } else { -1 }
}

#[kernel(N = 8)]
fn typed_branches<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<bf16>) {
    let v = load(x);
    store(y, class(v));
    store(z, half::<bf16>(v));
    let a: u8 = if v == 0 { 1 } else { 2 };
    let mut b = 0i32;
    b = if v < 0 { -1 } else { { 1 } };
    store(y + 1, b + a as i32);
    // Where nothing is wanted, constants take the type of their kind.
    let c = if v < 0 { 7 } else { 8 };
    store(y + c, 5);
}
