#[device]
mod circles {
    pub struct Pair<T> {
        a: Value<T>,
        b: Value<T>,
    }

    impl<T: Float> Pair<T> {
        pub fn around(self) -> Value<T> {
            outside(self)
        }

        pub fn given(self) -> Self {
            self.a
        }

        pub fn other(self) -> Other {
            self
        }

        pub fn narrow(self) -> Pair<f16> {
            self
        }

        pub fn new(x: Value<T>) -> Self {
            Self { a: x, b: missing }
        }

        pub fn changed(self) -> Self {
            self.a = self.b;
            self
        }
    }

    pub struct Other {
        c: f32,
    }

    fn outside<T: Float>(pair: Pair<T>) -> Value<T> {
        pair.around()
    }
}

#[device]
fn unknown(pair: circles::Pear<f32>) -> f32 {
    1.0
}

#[kernel]
fn k(y: PtrMut<f32>) {
    let pair = circles::Pair { a: 1.0f32, b: 2.0f32 };
    store(y, pair.around());
    let given = pair.given();
    let other = pair.other();
    let narrow = pair.narrow();
    let new = circles::Pair::new(1.0f32);
    store(y, pair.changed().a);
    store(y, unknown(pair));
}
