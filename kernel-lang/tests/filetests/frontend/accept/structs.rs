/// A struct of values and a pointer, without functions.
#[device]
struct Row<T> {
    data: Ptr<T>,
    start: usize,
    columns: Value<usize>,
}

#[device]
fn row_of<T: Element, const N: usize>(x: Ptr<T>, stride: usize) -> Row<T> {
    Row { data: x, start: program_id(0) * stride, columns: arange(0, N) }
}

#[device]
fn read<T: Element>(row: Row<T>) -> Value<T> {
    let Row { data, start, columns: at } = row;
    load(data + start + at)
}

#[device]
mod moments {
    /// Mean and squared deviations of so many values.
    pub struct Welford<T> {
        pub mean: Value<T>,
        pub m2: Value<T>,
        pub count: Value<T>,
    }

    impl<T: Float> Welford<T> {
        pub fn of(x: Value<T>) -> Self {
            Self { mean: x, m2: x * 0, count: x * 0 + 1 }
        }

        pub fn zero() -> Welford<T> {
            Welford { mean: 0, m2: 0, count: 0 }
        }

        pub fn combine(self, other: Self) -> Self {
            let count = self.count + other.count;
            let share = other.count / count;
            let delta = other.mean - self.mean;
            Welford { mean: self.mean + delta * share, m2: self.m2 + other.m2 + delta * delta * self.count * share, count }
        }

        fn over(self, count: Value<T>) -> Value<T> {
            self.m2 / count
        }

        pub fn var(self) -> Value<T> {
            self.over(self.count)
        }
    }

    /// Uses the struct that uses it: names of one module may go in circles.
    pub fn spread<T: Float>(w: Welford<T>) -> Value<T> {
        sqrt(w.var())
    }
}

/// Nested, with a constant of its own.
#[device]
mod blocks {
    pub struct Block<T, const N: usize> {
        inner: super::moments::Welford<T>,
        at: (Value<usize>, usize),
    }

    impl<T: Float, const N: usize> Block<T, N> {
        pub fn new(x: Value<T>) -> Self {
            Block { inner: super::moments::Welford::of(x), at: (arange(0, N), N) }
        }

        pub fn last(mut self) -> Self {
            self.at = (self.at.0, N - 1);
            self.at.1 -= 1;
            self
        }
    }
}

#[kernel(N = 64)]
fn k<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let tile = read(row_of::<T, N>(x, n)) as f32;
    // A reduction of a struct combines its fields.
    let whole = reduce(moments::Welford::of(tile), 0, |a, b| a.combine(b));
    let again = reduce(moments::Welford::of(tile), 0, moments::Welford::combine);
    store(y, (whole.var() + moments::spread(again)) as T);
    // What a loop assigns to, whole or in part, is carried.
    let mut carried = moments::Welford::<f32>::zero();
    for i in 0..n {
        carried = carried.combine(moments::Welford::of(load(x + i) as f32));
        carried.count += 0.0;
    }
    let moments::Welford { mean, .. } = carried;
    let other = if n > 3 { carried } else { moments::Welford { mean: 0.0, ..carried } };
    store(y + 1, (mean + other.m2) as T);
    let block = blocks::Block::<f32, N>::new(tile).last();
    let doubled = blocks::Block { at: (block.at.0, 0), ..block };
    store(y + doubled.at.0, (block.inner.mean * (block.at.1 as f32)) as T);
}
