//! The floating-point operations and bytes of launches: what a launch notes, and the count when the trace is made.

use std::collections::HashMap;
use std::fmt;

use kernel_lang::analysis::{flops, updates};
use kernel_lang::ir::Function;

use crate::kernel::{Kernel, ParamKind};
use crate::ops;

/// A kernel with its types, constants and arguments.
pub(super) struct Work {
    kernel: &'static Kernel,
    key: Vec<u64>,
    /// The argument words, as the kernel takes them.
    words: Vec<u64>,
    grid: [u32; 3],
}

impl Work {
    pub(super) fn of(kernel: &'static Kernel, key: &[u64], words: &[u64], grid: [u32; 3]) -> Work {
        Work { kernel, key: key.to_vec(), words: words.to_vec(), grid }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work { kernel, key, words, grid } = self;
        f.debug_struct("Work").field("kernel", &kernel.name()).field("key", key).field("words", words).field("grid", grid).finish()
    }
}

/// What a launch computes and moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counted {
    /// None if the number exceeds 64 bits.
    pub(super) flops: Option<u64>,
    /// Whether `flops` is exact, and no lower bound.
    pub(super) is_exact: bool,
    /// The bytes of the tensors that the kernel reads, each as a whole.
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

/// Counts the operations of launches. It keeps the specialised kernels, which launches share.
#[derive(Default)]
pub(super) struct Counter {
    /// By the address of the kernel, which is a static, and the key. None for a kernel that does not compile.
    kernels: HashMap<(usize, Vec<u64>), Option<Function>>,
}

impl Counter {
    /// The operations of all programs, by the rules of [`flops`], and the bytes of the tensors. None if the kernel does not compile.
    pub(super) fn count(&mut self, work: &Work) -> Option<Counted> {
        let Work { kernel, key, words, grid } = work;
        let variant = (std::ptr::from_ref(*kernel).addr(), key.clone());
        let func = self.kernels.entry(variant).or_insert_with(|| kernel.specialized(key).ok()).as_ref()?;
        let uses = updates::uses(func);
        let (mut read_bytes, mut written_bytes) = (0u64, 0u64);
        let mut numbers: Vec<Option<i64>> = Vec::new();
        let mut words = words.iter().copied();
        for param in kernel.params() {
            if param.kind == ParamKind::Scalar {
                let dtype = func.params.get(numbers.len()).map(|param| func.ty(param.value).dtype());
                numbers.push(words.next().zip(dtype).and_then(|(word, dtype)| ops::number(word, dtype)));
            } else {
                // Behind the address: the length, the extents and the strides.
                let at = numbers.len();
                numbers.extend(words.by_ref().take(param.kind.words()).skip(1).map(|word| i64::try_from(word).ok()));
                let len = numbers.get(at).copied().flatten().and_then(|len| u64::try_from(len).ok());
                if let (Some(len), Some(param), Some((reads, writes))) = (len, func.params.get(at), uses.get(at)) {
                    let bytes = len.saturating_mul(func.ty(param.value).dtype().bytes() as u64);
                    read_bytes = read_bytes.saturating_add(if *reads { bytes } else { 0 });
                    written_bytes = written_bytes.saturating_add(if *writes { bytes } else { 0 });
                }
            }
        }
        let counted = flops::count(func, &numbers, &grid.map(i64::from));
        Some(Counted { flops: u64::try_from(counted.count).ok(), is_exact: counted.is_exact, read_bytes, written_bytes })
    }
}
