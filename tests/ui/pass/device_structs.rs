#![deny(warnings, missing_docs, unreachable_pub, clippy::all)]
//! Device structs and modules leave no warning behind, wherever they are declared and however they are found.

use galatea::prelude::*;

/// A struct by itself, used by nobody here.
#[device]
#[derive(Clone, Debug)]
pub struct Unused<T: Float, const N: usize> {
    /// Of any shape.
    pub value: Value<T>,
    hidden: (Ptr<T>, View<T, 2>),
}

/// A module of structs and functions, with an import, a type of the host and a kernel beside them.
#[device]
pub mod pairs {
    use galatea::prelude::*;

    /// Two of a kind.
    pub struct Pair<T> {
        /// The one.
        pub a: Value<T>,
        /// The other.
        pub b: Value<T>,
    }

    impl<T: Number> Pair<T> {
        /// Both alike.
        pub fn twice(a: Value<T>) -> Self {
            Pair { a, b: a }
        }

        /// Side by side.
        pub fn add(self, other: Self) -> Self {
            Pair { a: self.a + other.a, b: self.b + other.b }
        }

        fn sum(self) -> Value<T> {
            inner(self)
        }
    }

    impl<T: Number> Pair<T> {
        /// A second block.
        pub fn total(self) -> Value<T> {
            self.sum()
        }
    }

    fn inner<T: Number>(pair: self::Pair<T>) -> Value<T> {
        pair.a + super::passed(pair.b)
    }

    /// A kernel beside what it uses.
    #[kernel]
    pub fn quadruple(x: PtrMut<f32>) {
        let pair = Pair::twice(load(x));
        store(x, pair.add(pair).total());
    }

    /// Not the language's matter.
    pub const HOST: usize = 1;
}

pub use pairs::Pair as Both;

#[device]
fn passed<T: Number>(x: Value<T>) -> Value<T> {
    x
}

macro_rules! wrapped {
    ($module:ident, $name:ident, $kernel:ident, $by:literal) => {
        #[device]
        mod $module {
            pub(super) struct $name {
                x: f32,
            }

            impl $name {
                pub(super) fn of(x: f32) -> Self {
                    $name { x }
                }

                pub(super) fn scaled(self) -> f32 {
                    self.x * $by
                }
            }
        }

        #[kernel]
        fn $kernel(x: PtrMut<f32>) {
            store(x, $module::$name::of(load(x)).scaled());
        }
    };
}
wrapped!(tripling, Tripled, triple, 3.0);
wrapped!(halving, Halved, halve, 0.5);

#[kernel]
fn renamed(x: PtrMut<f32>) {
    let Both { a, .. } = Both::<f32>::twice(load(x));
    store(x, a + 1.0);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let mut x = device.tensor(&[1.0f32])?;
    pairs::quadruple(&mut x).grid(pairs::HOST).launch()?;
    triple(&mut x).grid(1).launch()?;
    halve(&mut x).grid(1).launch()?;
    renamed(&mut x).grid(1).launch()?;
    assert_eq!(x.to_vec()?, [7.0]);
    Ok(())
}
