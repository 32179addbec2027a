//! The arguments of a launch: argument words on the stack, and the memory to which they point.
//!
//! | argument | words |
//! |----------|-------|
//! | pointer  | its address, and its length in elements |
//! | view     | the words of a pointer, one for each extent, and one for each stride but the last, which is 1 |
//! | scalar   | its bits, zero-extended |

use std::sync::PoisonError;

use cudarc::driver::SyncOnDrop;
use kernel_lang::dtype::Dtype;

use crate::device::stream::Queue;
use crate::kernel::Kernel;
use crate::launch::deferral::Deferral;
use crate::launch::fact::which_hold;
use crate::launch::scalar::{GenericScalarArg, IntegerType, ScalarArg, ScalarWord, Untyped};
use crate::ops::{OpsError, Real, Traced};
use crate::tensor::cuda_slice;
use crate::tensor::element::{ElementArg, Scalar};
use crate::tensor::pointer::{Deferred, Owner, Pointer, PtrArg, PtrMutArg, ViewArg, ViewMutArg};
use crate::tensor::shape::Shape;
use crate::{Device, Dim, DimValues, Error, Result};

/// The arguments of one launch, in the order of the kernel's parameters.
pub struct Args<'a, const WORDS: usize> {
    kernel: &'static Kernel,
    /// Room for all words: as many as the kernel takes, or more.
    words: [u64; WORDS],
    /// The number of words that the kernel takes.
    count: usize,
    filled: usize,
    /// A pointer takes two words, so half of these slots are enough; an array type cannot express `WORDS / 2`.
    slots: [Option<Slot<'a>>; WORDS],
    pointers: usize,
    /// The number of words that hold extents and strides of views.
    shape_words: usize,
    /// A bit for each of the first 64 pointers, set if not all its rows begin at a multiple of 16 bytes.
    unaligned: u64,
    /// Present if the launch cannot run: [`Launch::launch`](crate::Launch) reports the error, or records the launch. Also present between
    /// [`Args::generic_scalar`] and [`Args::type_word`].
    deferral: Option<Box<Deferral>>,
}

/// A pointer argument.
#[derive(Clone, Copy)]
struct Slot<'a> {
    name: &'static str,
    writes: bool,
    /// The dtype of its elements.
    dtype: Dtype,
    /// The index of its address among the words.
    word: u16,
    owner: Owner<'a>,
}

/// The memory of a pointer argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    /// The name of the parameter.
    pub(crate) name: &'static str,
    /// The dtype of its elements.
    pub(crate) dtype: Dtype,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    /// Whether the kernel takes the memory for writing.
    pub(crate) writes: bool,
}

/// A pointer argument as a recording sees it.
#[derive(Clone, Copy)]
pub(crate) enum Argument<'a> {
    /// A tensor of a recording.
    Traced(&'a Traced),
    /// A tensor with elements, which a recording can share.
    Real(&'a Real),
    /// A tensor with elements and one owner.
    Unshared,
}

/// The alignment that the widest access needs, in bytes.
const ALIGNMENT: u64 = 16;

impl<'a, const WORDS: usize> Args<'a, WORDS> {
    /// No arguments yet.
    #[inline]
    pub fn new(kernel: &'static Kernel) -> Args<'a, WORDS> {
        Args::with_words(kernel, WORDS)
    }

    /// No arguments yet of a kernel that takes `count` words, at most `WORDS`.
    #[inline]
    pub(crate) fn with_words(kernel: &'static Kernel, count: usize) -> Args<'a, WORDS> {
        Args {
            kernel,
            words: [0; WORDS],
            count,
            filled: 0,
            slots: [None; WORDS],
            pointers: 0,
            shape_words: 0,
            unaligned: 0,
            deferral: None,
        }
    }

    /// Adds a tensor to read.
    #[inline]
    pub fn pointer<T: ElementArg>(&mut self, name: &'static str, argument: impl PtrArg<'a, T>) {
        self.push::<T>(name, false, argument.pointer());
    }

    /// Adds a tensor to write.
    #[inline]
    pub fn pointer_mut<T: ElementArg>(&mut self, name: &'static str, argument: impl PtrMutArg<'a, T>) {
        self.push::<T>(name, true, argument.pointer());
    }

    /// Adds a tensor of `rank` axes to read.
    #[inline]
    pub fn view<T: ElementArg>(&mut self, name: &'static str, argument: impl ViewArg<'a, T>, rank: usize) {
        self.push_view::<T>(name, false, argument.shaped(), rank);
    }

    /// Adds a tensor of `rank` axes to write.
    #[inline]
    pub fn view_mut<T: ElementArg>(&mut self, name: &'static str, argument: impl ViewMutArg<'a, T>, rank: usize) {
        self.push_view::<T>(name, true, argument.shaped(), rank);
    }

    /// Adds the pointer, the extents, and all strides but the last, which is 1.
    #[inline]
    fn push_view<T: ElementArg>(&mut self, name: &'static str, writes: bool, (pointer, shape): (Pointer<'a>, Shape), rank: usize) {
        let (dims, strides) = (shape.dims(), shape.strides());
        if let Owner::Deferred(deferred) = pointer.owner {
            self.check_rank(name, deferred, rank);
        } else if dims.len() != rank || strides.last() != Some(&1) {
            let shape = dims.to_vec();
            self.fail(|kernel, _| Error::ViewRank { kernel, argument: name, expected: rank, shape });
        }
        let at = |list: &[usize], axis: usize| list.get(axis).copied().unwrap_or(0) as u64;
        let bytes = pointer.dtype::<T>().bytes() as u64;
        let rows_unaligned = (0..rank.saturating_sub(1)).any(|axis| !(at(strides, axis) * bytes).is_multiple_of(ALIGNMENT));
        self.unaligned |= u64::from(rows_unaligned) << (self.pointers % 64);
        self.push::<T>(name, writes, pointer);
        (0..rank).for_each(|axis| self.word(at(dims, axis)));
        (0..rank.saturating_sub(1)).for_each(|axis| self.word(at(strides, axis)));
        self.shape_words += 2 * rank - 1;
    }

    /// Adds a scalar.
    #[inline]
    pub fn scalar<T: Scalar>(&mut self, argument: impl ScalarArg<T>) {
        self.push_scalar(argument.argument());
    }

    /// Adds a scalar whose type is a type parameter.
    #[inline]
    pub fn generic_scalar<T: ElementArg>(&mut self, argument: impl GenericScalarArg<T>) {
        self.push_scalar(argument.generic_argument());
    }

    /// Always inlined, so that the kind of a typed argument is known there.
    #[inline(always)]
    fn push_scalar(&mut self, argument: ScalarWord) {
        match argument {
            ScalarWord::Known(Ok(word)) => self.word(word),
            ScalarWord::Known(Err(value)) => {
                self.fail(|kernel, position| Error::ScalarTooLarge { kernel, position, value });
                self.word(value);
            }
            ScalarWord::Dim(dim, ty) => self.defer_dim(dim, ty),
            ScalarWord::Untyped(number) => self.defer_number(number),
        }
    }

    /// Adds a constant that the kernel's body names. Its parameter may have a wider integer type.
    #[inline]
    pub fn constant(&mut self, argument: impl Scalar) {
        match argument.extended_word() {
            Ok(word) => self.word(word),
            Err(value) => {
                self.fail(|kernel, position| Error::ScalarTooLarge { kernel, position, value });
                self.word(value);
            }
        }
    }

    #[inline]
    fn push<T: ElementArg>(&mut self, name: &'static str, writes: bool, pointer: Pointer<'a>) {
        if let Owner::Deferred(deferred) = pointer.owner {
            self.defer(name, deferred);
        }
        self.unaligned |= u64::from(!pointer.address.is_multiple_of(ALIGNMENT)) << (self.pointers % 64);
        if let Some(slot) = self.slots.get_mut(self.pointers) {
            *slot = Some(Slot { name, writes, dtype: pointer.dtype::<T>(), word: self.filled as u16, owner: pointer.owner });
            self.pointers += 1;
        }
        self.word(pointer.address);
        self.word(pointer.len);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        if let Some(slot) = self.words.get_mut(self.filled) {
            *slot = word;
        }
        self.filled += 1;
    }

    #[cold]
    pub(super) fn fail(&mut self, error: impl FnOnce(&'static str, usize) -> Error) {
        let (kernel, position) = (self.kernel.name(), 1 + self.filled - self.pointers - self.shape_words);
        self.deferral().error.get_or_insert_with(|| error(kernel, position));
    }

    #[cold]
    pub(super) fn deferral(&mut self) -> &mut Deferral {
        self.deferral.get_or_insert_default()
    }

    /// Adds the word of an expression.
    #[cold]
    fn defer_dim(&mut self, dim: Dim, ty: IntegerType) {
        let word = self.filled;
        self.deferral().dims.push((word, dim, ty));
        self.word(0);
    }

    /// Adds the word of a number whose dtype is not known yet.
    #[cold]
    fn defer_number(&mut self, number: Untyped) {
        let word = self.filled;
        self.deferral().numbers.push((word, number));
        self.word(0);
    }

    /// Notes a grid of expressions.
    #[cold]
    pub(crate) fn defer_grid(&mut self, grid: [Option<Dim>; 3]) {
        self.deferral().grid = grid;
    }

    /// Notes a tensor without memory.
    #[cold]
    fn defer(&mut self, argument: &'static str, deferred: Deferred<'_>) {
        match deferred {
            Deferred::Traced(_) => drop(self.deferral()),
            Deferred::WrongDtype { expected, found } => {
                self.fail(|kernel, _| Error::Ops(OpsError::ArgumentDtype { kernel, argument, expected, found }));
            }
            Deferred::Differentiable(_) => self.fail(|kernel, _| Error::Ops(OpsError::NoBackward { kernel, argument, op: None })),
            Deferred::Failed(error) => {
                let error = error.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(error) = error {
                    self.fail(|_, _| error);
                }
            }
        }
    }

    #[cold]
    fn check_rank(&mut self, argument: &'static str, deferred: Deferred<'_>, expected: usize) {
        if let Deferred::Traced(traced) = deferred
            && traced.ty.dims.len() != expected
        {
            let reason = format!("`{argument}` is {}, and the kernel takes {expected} axes", traced.ty);
            self.fail(|kernel, _| Error::Ops(OpsError::NotRecorded { kernel, reason, help: "reshape the argument" }));
        }
    }

    /// Sets a word that was added as a number without a dtype.
    pub(super) fn set_word(&mut self, index: usize, word: u64) {
        if let Some(slot) = self.words.get_mut(index) {
            *slot = word;
        }
    }

    /// Removes the deferral if no error, expression, number without a dtype or recorded tensor requires it.
    pub(super) fn drop_vacant_deferral(&mut self) {
        let is_recorded = self.is_recorded();
        self.deferral.take_if(|deferral| !is_recorded && deferral.is_vacant());
    }

    fn is_recorded(&self) -> bool {
        self.tensors().any(|(.., argument)| matches!(argument, Argument::Traced(_)))
    }

    /// Takes the deferral, if the launch cannot run.
    pub(crate) fn take_deferral(&mut self) -> Option<Box<Deferral>> {
        self.deferral.take()
    }

    pub(crate) fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    #[inline]
    pub(crate) fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The words that the kernel takes.
    #[inline]
    pub(crate) fn given(&self) -> &[u64] {
        self.words.get(..self.count).unwrap_or(&self.words)
    }

    /// Calls the function with the address of each word that the kernel takes, which is how the driver takes parameters. The driver reads as many low
    /// bytes of a word as the parameter has.
    #[inline]
    pub(crate) fn with_params<R>(&self, run: impl FnOnce(&[&u64]) -> R) -> R {
        let params = self.words.each_ref();
        run(params.get(..self.count).unwrap_or(&params))
    }

    /// A bit for each fact of the kernel, set if the fact holds.
    #[inline]
    pub(crate) fn facts(&self) -> u64 {
        which_hold(self.kernel.facts(), &self.words)
    }

    /// A bit for each pointer, from the lowest, set if 16-byte accesses cannot begin at every row.
    #[inline]
    pub(crate) fn unaligned(&self) -> u64 {
        self.unaligned
    }

    /// The memory of each pointer argument, in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Region> {
        self.slots().map(|slot| {
            let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
            let (address, len) = (word(slot.word.into()), word(usize::from(slot.word) + 1));
            let Slot { name, writes, dtype, .. } = *slot;
            Region { name, dtype, address, bytes: len as usize * dtype.bytes(), writes }
        })
    }

    /// The index of each pointer's address among the words.
    pub(crate) fn address_words(&self) -> impl Iterator<Item = usize> {
        self.slots().map(|slot| slot.word.into())
    }

    /// The pointer arguments as a recording sees them: their names, whether they are written, and their tensors.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&'static str, bool, Argument<'a>)> {
        self.slots().map(|slot| {
            let argument = match slot.owner {
                Owner::Deferred(Deferred::Traced(traced)) => Argument::Traced(traced),
                Owner::Shared(real) => Argument::Real(real),
                _ => Argument::Unshared,
            };
            (slot.name, slot.writes, argument)
        })
    }

    /// The name and the dtype of a pointer argument.
    pub(super) fn dtype(&self, pointer: usize) -> Option<(&'static str, Dtype)> {
        self.slots.get(pointer)?.map(|slot| (slot.name, slot.dtype))
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<'a>> {
        self.slots[..self.pointers].iter().flatten()
    }

    /// Returns an error if the arguments do not fit the kernel's parameters.
    #[inline]
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.deferral.is_some() {
            return Err(self.refusal());
        }
        if self.filled != self.count || self.count > WORDS {
            return Err(Error::ArgumentCount { kernel: self.kernel.name(), expected: self.count, given: self.filled });
        }
        Ok(())
    }

    /// The error of a launch that cannot run. The `Deferral` stays if the launch can be recorded instead.
    #[cold]
    fn refusal(&mut self) -> Error {
        let is_recorded = self.is_recorded();
        let Deferral { error, dims, grid, .. } = self.deferral();
        // Without a recorded tensor, the expressions have no values.
        let mut expressions = dims.iter().map(|(_, dim, _)| dim).chain(grid.iter().flatten());
        let unknown = || if is_recorded { None } else { expressions.find_map(|dim| dim.value(&DimValues::new()).err()) };
        if let Some(error) = error.take().or_else(unknown) {
            self.deferral = None;
            return error;
        }
        let (kernel, reason) = (self.kernel.name(), "`report` and `launch_with` need tensors with elements".to_owned());
        Error::Ops(OpsError::NotRecorded { kernel, reason, help: "call `launch`, and `report` for tensors that have elements" })
    }

    /// The device and the stream of a launch for which the user names no stream: those of the first tensor that it writes, else of the first tensor
    /// that it reads, else the default device and its stream.
    #[inline]
    pub(crate) fn home(&self) -> Result<(Device, Option<Queue<'a>>)> {
        match self.slots().find(|slot| slot.writes).or_else(|| self.slots().next()) {
            Some(slot) => Ok((slot.owner.device()?, slot.owner.queue())),
            None => {
                let device = Device::default()?;
                Ok((device, device.stream().queue()))
            }
        }
    }

    /// Checks that all pointers are on `device`. If `stream_is_given`, the error names the stream of the launch as the reason for the device.
    #[inline]
    pub(crate) fn check_device(&self, device: Device, stream_is_given: bool) -> Result<()> {
        if self.slots().all(|slot| slot.owner.lives_on(device)) { Ok(()) } else { self.find_mismatch(device, stream_is_given) }
    }

    #[cold]
    fn find_mismatch(&self, device: Device, stream_is_given: bool) -> Result<()> {
        for slot in self.slots() {
            let found = slot.owner.device()?;
            if found != device {
                return Err(self.mismatch(slot, found, device, stream_is_given));
            }
        }
        Ok(())
    }

    fn mismatch(&self, slot: &Slot<'a>, device: Device, expected: Device, stream_is_given: bool) -> Error {
        let agrees = |other: &&Slot<'a>| other.owner.device().is_ok_and(|device| device == expected);
        let other = match self.slots().find(agrees) {
            Some(other) if !stream_is_given => format!("argument `{}` lives", other.name),
            _ => "the stream of the launch lives".to_owned(),
        };
        Error::DeviceMismatch { kernel: self.kernel.name(), argument: slot.name, device, other, expected }
    }

    /// Returns whether `stream` is already ordered after all work on which the launch depends, and all later uses after `stream`. Then the launch
    /// needs no step before or after it, which is the usual case.
    #[inline]
    pub(crate) fn are_in_order(&self, stream: Queue<'_>) -> bool {
        self.slots().all(|slot| slot.owner.is_in_order(slot.writes, stream))
    }

    /// Makes `stream` wait for the work on which the launch depends. On an error, no use of the arguments has been queued.
    pub(crate) fn before<'s>(&'s self, stream: Queue<'s>) -> Result<Guards<'s>> {
        let mut guards = Vec::new();
        for slot in self.slots() {
            // A guard exists only if cudarc tracks its slices. Otherwise nothing is pushed, so the vector allocates nothing.
            if let Some(guard) = slot.owner.before(slot.writes, stream)? {
                guards.push(guard);
            }
        }
        Ok(guards)
    }

    /// Orders later uses after the launch on `stream`, which is now enqueued. If that fails, waits for the launch before it returns the error.
    pub(crate) fn after(&self, guards: Guards<'_>, stream: Queue<'_>) -> Result<()> {
        let ordered =
            cuda_slice::record(guards, stream).and_then(|()| self.slots().try_for_each(|slot| slot.owner.after(slot.writes, stream)));
        ordered.map_err(|error| stream.finish(error))
    }
}

/// Guards that record uses in cudarc's own events when they are dropped, after the uses are enqueued.
pub(crate) type Guards<'s> = Vec<SyncOnDrop<'s>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Any;

    // SAFETY: no test launches it.
    static KERNEL: Kernel = unsafe { Kernel::new("k", "", kernel_lang::Schedule::DEFAULT, &[], &[]) };

    #[test]
    fn words_follow_the_parameters() {
        let device = Device::cpu();
        let (x, mut y) = (device.tensor(&[1.0f32; 10]).unwrap(), device.zeros::<f32>(4).unwrap());
        let (x_address, y_address) = (x.view().address(), y.view().address());
        let mut part = y.slice_mut(1..3).unwrap();
        let mut args = Args::<6>::new(&KERNEL);
        args.pointer::<f32>("x", &x);
        args.scalar(10usize);
        args.pointer_mut::<f32>("y", &mut part);
        args.scalar(-1i32);
        args.check().unwrap();
        assert_eq!(*args.words(), [x_address, 10, 10, y_address + 4, 2, 0xffff_ffff]);
        assert_eq!(args.home().unwrap().0, device);
        args.check_device(device, false).unwrap();
        let (of_x, of_y) = (("x", x_address, 40, false), ("y", y_address + 4, 8, true));
        let regions = [of_x, of_y].map(|(name, address, bytes, writes)| Region { name, dtype: Dtype::F32, address, bytes, writes });
        assert!(args.address_words().eq([0, 3]));
        assert!(args.regions().eq(regions));
        assert_eq!(args.unaligned(), 0b10, "`y` begins behind its first element");
    }

    #[test]
    fn rows_of_a_view_may_be_unaligned() {
        let x = Device::cpu().zeros::<f32>([4, 6]).unwrap();
        let (mut even, mut odd) = (Args::<8>::new(&KERNEL), Args::<8>::new(&KERNEL));
        even.view::<f32>("x", x.view().reshape([3, 8]).unwrap(), 2);
        odd.view::<f32>("x", &x, 2);
        assert_eq!((even.unaligned(), odd.unaligned()), (0, 1));
        let of_dtype = |dtype| {
            let (x, mut args) = (crate::ops::Tensor::zeros(&Device::cpu(), dtype, [4, 12]).unwrap(), Args::<5>::new(&KERNEL));
            args.view::<Any>("x", &x, 2);
            (args.unaligned(), args.regions().next().unwrap().bytes)
        };
        assert_eq!([Dtype::F32, Dtype::Bf16].map(of_dtype), [(0, 192), (1, 96)]);
    }

    #[test]
    fn an_error_names_the_position_of_a_scalar_that_is_too_large() {
        let x = Device::cpu().zeros::<i8>(1).unwrap();
        let mut args = Args::<4>::new(&KERNEL);
        args.pointer::<i8>("x", &x);
        args.scalar(1u8);
        args.scalar(usize::MAX);
        match args.check() {
            Err(Error::ScalarTooLarge { position, value, .. }) => assert_eq!((position, value), (3, u64::MAX)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_view_brings_its_shape() {
        let device = Device::cpu();
        let x = device.tensor(&[1.0f32; 24]).unwrap().reshape([2, 3, 4]).unwrap();
        let address = x.view().address();
        let mut args = Args::<8>::new(&KERNEL);
        args.view::<f32>("x", x.slice(1..2).unwrap(), 3);
        args.scalar(7i64);
        args.check().unwrap();
        assert_eq!(*args.words(), [address + 48, 12, 1, 3, 4, 12, 4, 7]);
        let mut args = Args::<6>::new(&KERNEL);
        args.view::<f32>("x", &x, 2);
        args.scalar(usize::MAX);
        match args.check() {
            Err(Error::ViewRank { argument: "x", expected: 2, shape, .. }) => assert_eq!(shape, [2, 3, 4]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wrong_number_of_words_is_an_error() {
        for words in [0, 2] {
            let mut args = Args::<1>::new(&KERNEL);
            (0..words).for_each(|_| args.scalar(1));
            assert!(matches!(args.check(), Err(Error::ArgumentCount { expected: 1, given, .. }) if given == words));
        }
    }

    #[test]
    fn empty_tensors_have_addresses() {
        let x = Device::cpu().zeros::<f64>(0).unwrap();
        let mut args = Args::<2>::new(&KERNEL);
        args.pointer::<f64>("x", &x);
        assert!(args.words()[0] != 0 && args.words()[1] == 0);
    }
}
