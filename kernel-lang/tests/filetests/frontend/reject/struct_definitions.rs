#[device]
struct Tuple(Value<f32>, f32);

#[device]
struct Unit;

#[device]
struct Fields<T, N> where T: Float {
    reference: &f32,
    list: Vec<f32>,
    view: View<f32>,
    closure: impl Fn(f32) -> f32,
    itself: Self,
    fine: Value<T>,
}

#[device]
mod functions {
    struct Pair<T> {
        a: Value<T>,
        b: Value<T>,
    }

    impl<T: Float> Pair<T> {
        const N: usize = 4;

        fn by_reference(&self) -> Value<T> {
            self.a
        }

        fn typed(self: Self) -> Value<T> {
            self.a
        }

        fn fine(self) -> Value<T> {
            self.a
        }

        fn without_a_bound<U>(self, u: U) -> Value<T> {
            self.a
        }
    }

    impl<T: Float> Add for Pair<T> {
        fn add(self, other: Self) -> Self {
            self
        }
    }

    fn free(self, pair: Self) -> f32 {
        1.0
    }
}

#[kernel]
fn k(y: PtrMut<f32>) {
    store(y, 1.0);
}
