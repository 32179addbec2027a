//! Kernels that a macro writes, wherever an item is allowed.

use galatea::prelude::*;

macro_rules! elementwise {
    ($($name:ident: $ty:ty, |$x:ident| $value:expr;)*) => {$(
        #[kernel(N = 64)]
        fn $name<const N: usize>(x: Ptr<$ty>, y: PtrMut<$ty>) {
            let offsets = program_id(0) * N + arange(0, N);
            let $x = load(x + offsets);
            store(y + offsets, $value);
        }
    )*};
}

elementwise! {
    square: f32, |v| v * v;
    next: i64, |v| v + 1;
}

fn main() -> galatea::Result<()> {
    #[kernel(N = 64)]
    fn negate<const N: usize>(y: PtrMut<i64>) {
        let offsets = program_id(0) * N + arange(0, N);
        store(y + offsets, -load(y + offsets));
    }
    let device = Device::cpu();
    let x = device.tensor(&[3.0f32; 70])?;
    let mut y = device.zeros::<f32>(70)?;
    square::<64>(&x, &mut y).grid(2).launch()?;
    assert_eq!(y.to_vec()?, [9.0; 70]);
    let i = device.tensor(&[4i64; 70])?;
    let mut j = device.zeros::<i64>(70)?;
    next::<64>(&i, &mut j).grid(2).launch()?;
    negate::<64>(&mut j).grid(2).launch()?;
    assert_eq!(j.to_vec()?, [-5; 70]);
    Ok(())
}
