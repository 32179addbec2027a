#[device]
fn power<T: Number>(x: Value<T>, exponent: usize) -> Value<T> {
    if exponent == 0 {
        return x * 0 + 1;
    }
    let square = x * x;
    if exponent == 1 {
        return x;
    } else if exponent == 2 {
        return square;
    }
    let cube = square * x;
    cube
}

#[device]
fn sign(x: f32) -> f32 {
    let positive = if x > 0.0 { 1.0 } else { return -1.0; };
    if x > 9.0 {
        return 9.0;
    }
    positive
}

#[device]
fn rounded<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 {
        return x;
    }
    if T != f32 { rint(x) } else { x + 1.0 }
}

#[kernel]
fn k<T: Float>(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<T>, n: usize) {
    let v = load(x + arange(0, 4));
    store(y + arange(0, 4), power(v, 2) + power(v, 0));
    store(y, sign(load(x)));
    let at_run_time = power(load(x + 1), n);
    store(y + 1, at_run_time);
    store(z, rounded(load(z)));
    store(y, rounded(load(y)));
}
