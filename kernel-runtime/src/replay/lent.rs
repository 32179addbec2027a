//! The tensors that a launch of a replay borrows, and the check that they cover all memory that the replay uses.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use kernel_lang::dtype::Dtype;

use super::capture::Use;
use crate::tensor::pointer::{Pointer, PtrArg, PtrMutArg};
use crate::{Device, Element, Error, Result, Tensor, TensorView, TensorViewMut};

/// The tensors for a launch of a [`Replay`](crate::Replay), borrowed for `'t`: `&x` for a tensor that the work reads, and `&mut y` for a tensor that
/// it writes.
///
/// Tensors, views and cudarc slices implement this trait, as do tuples, arrays, slices and vectors of them. A type of your own lends those of its
/// fields that hold tensors:
///
/// ```
/// # use kernel_runtime::{Device, Replay, Lent, Result, Tensor, Tensors};
/// struct Layer {
///     weights: Vec<Tensor<f32>>,
///     output: Tensor<f32>,
/// }
///
/// impl<'t> Tensors<'t> for &'t mut Layer {
///     fn lend(self, lent: &mut Lent<'t>) {
///         (&*self.weights, &mut self.output).lend(lent);
///     }
/// }
/// # fn main() -> Result<()> {
/// # let device = Device::cpu();
/// # let mut layer = Layer { weights: vec![device.tensor(&[1.0, 2.0])?], output: device.zeros(2)? };
/// let mut replay = Replay::capture(device.stream(), || layer.output.view_mut().copy_from(&layer.weights[0].view()))?;
/// replay.launch(&mut layer)?;
/// # assert_eq!(layer.output.to_vec()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub trait Tensors<'t> {
    /// Adds each tensor to `lent`, for the duration of the launch.
    fn lend(self, lent: &mut Lent<'t>);
}

/// The tensors that are lent to a launch of a [`Replay`](crate::Replay), see [`Tensors`].
pub struct Lent<'t> {
    items: Vec<Item<'t>>,
}

/// Memory that is borrowed for `'t`, mutably if it is lent for writing.
pub(super) struct Item<'t> {
    pub(super) pointer: Pointer<'t>,
    dtype: Dtype,
    writes: bool,
}

/// Memory that was lent to an earlier launch, and how the replay uses it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    address: u64,
    len: u64,
    dtype: Dtype,
    writes: bool,
    /// Memory of two devices may have the same address.
    device: Option<Device>,
    /// Whether the replay writes the memory; `None` if the replay does not use it.
    pub(super) written: Option<bool>,
}

/// Compares whether the same memory is lent in the same way.
impl PartialEq for Known {
    fn eq(&self, other: &Known) -> bool {
        let compared = |known: &Known| (known.address, known.len, known.dtype, known.writes, known.device);
        compared(self) == compared(other)
    }
}

impl<'t> Lent<'t> {
    pub(super) fn with(items: Vec<Item<'t>>) -> Lent<'t> {
        Lent { items }
    }

    pub(super) fn items(&self) -> &[Item<'t>] {
        &self.items
    }

    pub(super) fn into_items(self) -> Vec<Item<'t>> {
        self.items
    }

    /// Adds a tensor of ops, to read. For runs of recorded graphs.
    #[doc(hidden)]
    pub fn lend_tensor(&mut self, tensor: &'t crate::ops::Tensor) {
        let (pointer, _) = tensor.argument::<crate::ops::Any>();
        self.items.push(Item { pointer, dtype: tensor.dtype(), writes: false });
    }

    /// Adds all memory of which a tensor is a part, to write. For runs of recorded graphs.
    ///
    /// # Safety
    /// Nobody else reads or writes the memory until the launch is queued, except through tensors that are lent with it.
    #[doc(hidden)]
    pub unsafe fn lend_memory(&mut self, tensor: &'t crate::ops::Tensor) {
        let pointer = tensor.memory_argument();
        self.items.push(Item { pointer, dtype: tensor.dtype(), writes: true });
    }

    fn add<T: Element>(&mut self, pointer: Pointer<'t>, writes: bool) {
        self.items.push(Item { pointer, dtype: T::DTYPE, writes });
    }
}

impl Item<'_> {
    pub(super) fn known(&self) -> Known {
        let Item { pointer: Pointer { address, len, owner }, dtype, writes } = *self;
        Known { address, len, dtype, writes, device: owner.device().ok(), written: None }
    }
}

impl PartialEq<Known> for &Known {
    fn eq(&self, other: &Known) -> bool {
        **self == *other
    }
}

/// An empty vector for other borrows. Collecting in place reuses the allocation of `items`, which has been emptied.
pub(super) fn emptied<'b>(mut items: Vec<Item<'_>>) -> Vec<Item<'b>> {
    items.clear();
    items.into_iter().map(|_| -> Item<'b> { unreachable!("the vector is empty") }).collect()
}

/// Checks that the items cover all uses. Returns each item with its use.
pub(super) fn cover(uses: &[Use], items: &[Item<'_>], device: Device) -> Result<Vec<Known>> {
    let mut known: Vec<Known> = items.iter().map(Item::known).collect();
    for Use { region, kernel } in uses {
        let mut covered = None;
        let mut only_shared = false;
        for (index, item) in items.iter().enumerate() {
            let start = item.pointer.address;
            let end = start + item.pointer.len * item.dtype.bytes() as u64;
            let holds = start <= region.address && region.address + region.bytes as u64 <= end;
            // The dtype must match, because the bytes of a number need not be a valid `bool`.
            if !holds || item.dtype != region.dtype || item.pointer.owner.device()? != device {
                continue;
            }
            if item.writes || !region.writes {
                covered = Some(index);
                break;
            }
            only_shared = true;
        }
        let Some(index) = covered else { return Err(Error::NotLent { kernel: *kernel, argument: region.name, only_shared }) };
        known[index].written = Some(region.writes || known[index].written == Some(true));
    }
    Ok(known)
}

impl<'t, T: Element> Tensors<'t> for &'t Tensor<T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(self.pointer(), false);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t mut Tensor<T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrMutArg::<T>::pointer(self), true);
    }
}

impl<'t, T: Element> Tensors<'t> for TensorView<'t, T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(self.pointer(), false);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t mut TensorViewMut<'_, T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrMutArg::<T>::pointer(self), true);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t CudaSlice<T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrArg::<T>::pointer(self), false);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t mut CudaSlice<T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrMutArg::<T>::pointer(self), true);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t CudaView<'_, T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrArg::<T>::pointer(self), false);
    }
}

impl<'t, T: Element> Tensors<'t> for &'t mut CudaViewMut<'_, T> {
    fn lend(self, lent: &mut Lent<'t>) {
        lent.add::<T>(PtrMutArg::<T>::pointer(self), true);
    }
}

/// Implements [`Tensors`] for collections, which lend each of their parts.
macro_rules! several {
    ($([$($generics:tt)*] $ty:ty;)*) => {$(
        impl<'t, $($generics)*> Tensors<'t> for $ty {
            fn lend(self, lent: &mut Lent<'t>) {
                self.into_iter().for_each(|part| part.lend(lent));
            }
        }
    )*};
}

several! {
    [T: Element] &'t [Tensor<T>];
    [T: Element] &'t mut [Tensor<T>];
    [T: Element] &'t Vec<Tensor<T>>;
    [T: Element] &'t mut Vec<Tensor<T>>;
    [A: Tensors<'t>] Vec<A>;
    [A: Tensors<'t>] Option<A>;
    [A: Tensors<'t>, const N: usize] [A; N];
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<'t, $($name: Tensors<'t>),*> Tensors<'t> for ($($name,)*) {
            #[allow(non_snake_case, unused_variables, reason = "each part is named as its type; the empty tuple has none")]
            fn lend(self, lent: &mut Lent<'t>) {
                let ($($name,)*) = self;
                $($name.lend(lent);)*
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
