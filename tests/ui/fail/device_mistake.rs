use galatea::prelude::*;

mod helpers {
    use galatea::prelude::*;

    #[device]
    pub fn outer<T: Number>(x: Value<T>) -> Value<T> {
        inner(x)
    }

    #[device]
    fn inner<T: Number>(x: Value<T>) -> Value<T> {
        x + 1.5
    }
}

#[kernel]
fn k(x: Ptr<i32>, y: PtrMut<i32>) {
    store(y, helpers::outer(load(x)));
}

fn main() {
    let device = Device::cpu();
    let x = device.tensor(&[1i32]).unwrap();
    let mut y = device.empty_like(&x).unwrap();
    k(&x, &mut y).grid(1).launch().unwrap();
}
