//! Kernels whose names PTX cannot spell or has taken already.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![names_beyond_ascii, names_that_are_taken];

macro_rules! sums {
    ($($name:ident)*) => {
        $(
            /// Needs shared memory: the sum crosses warps. The sines of large angles need a table.
            #[allow(non_snake_case, reason = "that is what is tested")]
            #[kernel(B = 256)]
            fn $name<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
                let v = load(x + arange(0, B));
                store(y, sum(select(v > 1e30, sin(v), v)));
            }
        )*

        fn sums(lab: &mut Lab, name: &str) -> f32 {
            let x = lab.input(&[1.0f32; 256]);
            let mut y = lab.output::<f32>(1);
            match name {
                $(stringify!($name) => $name::<256>(x.slice(), &mut y.slice()).grid(1).launch().unwrap(),)*
                _ => unreachable!("no kernel is called {name}"),
            }
            y.read()[0]
        }
    };
}

sums!(größe नमस्ते inf nan shared WARP_SZ two_over_pi param_0 add);

fn names_beyond_ascii(lab: &mut Lab) {
    for name in ["größe", "नमस्ते"] {
        check_bits(&[sums(lab, name)], |_| 256.0);
    }
}

fn names_that_are_taken(lab: &mut Lab) {
    for name in ["inf", "nan", "shared", "WARP_SZ", "two_over_pi", "param_0", "add"] {
        check_bits(&[sums(lab, name)], |_| 256.0);
    }
}
