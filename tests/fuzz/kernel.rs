//! A random kernel: its text line by line, the tensors that it takes, and what it is launched with.

use galatea::Dtype;
use kernel_lang::Schedule;

use crate::lab::Source;

/// Elements that each program has to itself in a tensor that is written.
pub(crate) const ROOM: usize = 4096;

/// The largest magnitude in most tensors of whole numbers.
pub(crate) const LARGEST_WHOLE: i128 = 20;

/// The sizes of a launch: the number of programs, and the last arguments of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) programs: usize,
    pub(crate) n: usize,
    pub(crate) stride: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) dtype: Dtype,
    /// Does it hold small whole numbers, of which sums are exact? Else any bits.
    pub(crate) is_whole: bool,
    /// Do programs write, each to its own [`ROOM`]? Else all of them read.
    pub(crate) is_written: bool,
    /// Do all programs change it, by atomics of which the order does not matter, or each other elements?
    pub(crate) is_shared: bool,
    /// The largest magnitude of whole numbers.
    pub(crate) largest: i128,
    /// Elements that are read or shared, or elements of a program's room that are taken.
    pub(crate) len: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) lines: Vec<String>,
    pub(crate) schedule: Schedule,
    /// Is it a kernel without bounds checks, which also has addresses of the tensors that it writes?
    pub(crate) is_unchecked: bool,
    /// Are all tensors at aligned addresses?
    pub(crate) is_aligned: bool,
    pub(crate) launches: Vec<Sizes>,
}

impl Tensor {
    /// A tensor of small whole numbers that all programs read.
    pub(crate) fn input(name: &'static str, dtype: Dtype, len: usize) -> Tensor {
        Tensor { name, dtype, is_whole: true, is_written: false, is_shared: false, largest: LARGEST_WHOLE, len }
    }

    /// A tensor in which each program writes its own part.
    pub(crate) fn output(name: &'static str, dtype: Dtype) -> Tensor {
        Tensor { is_written: true, ..Tensor::input(name, dtype, 0) }
    }

    /// Does each program write its own part?
    pub(crate) fn is_own(&self) -> bool {
        self.is_written && !self.is_shared
    }

    /// Elements for so many programs.
    pub(crate) fn elements(&self, programs: usize) -> usize {
        if self.is_written && !self.is_shared { ROOM * programs } else { self.len }
    }
}

impl Kernel {
    pub(crate) fn source(&self) -> Source {
        let mut parameters: Vec<String> = Vec::new();
        for Tensor { name, dtype, is_written, .. } in &self.tensors {
            parameters.push(format!("{name}: {}<{dtype}>", if *is_written { "PtrMut" } else { "Ptr" }));
        }
        if self.is_unchecked {
            parameters.push("addresses: Ptr<u64>".to_string());
        }
        parameters.extend(["n", "stride", "first", "last"].map(|name| format!("{name}: usize")));
        let attribute = if self.is_unchecked { "#[kernel(unchecked)]\n" } else { "" };
        let mut text = format!("{attribute}fn kernel({}) {{\n    let pid = program_id(0);\n", parameters.join(", "));
        if self.is_unchecked {
            let own = self.tensors.iter().filter(|tensor| tensor.is_own());
            for (number, Tensor { name, dtype, .. }) in own.enumerate() {
                text += &format!("    let {name}_alias = load(addresses + {number}) as PtrMut<{dtype}>;\n");
            }
        }
        let mut depth = 1;
        for line in &self.lines {
            depth -= usize::from(line.starts_with('}'));
            text += &format!("{}{line}\n", "    ".repeat(depth));
            depth += usize::from(line.ends_with('{'));
        }
        let mut source = Source::new(text + "}\n");
        source.schedule = self.schedule;
        source
    }
}
