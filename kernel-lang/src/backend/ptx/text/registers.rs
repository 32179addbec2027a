//! PTX registers, and the text of the function body under construction.

use std::fmt;

use crate::dtype::Dtype;

/// A class of PTX registers: width and use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Class {
    /// Predicates: `bool`.
    Pred,
    /// 16 bits: `f16` and `bf16`, which are only loaded, stored and converted.
    B16,
    /// 32 bits: integers of up to 32 bits, narrower ones sign- or zero-extended; 8-bit floats as `u8`.
    B32,
    /// 64 bits: integers and addresses.
    B64,
    /// `f32`
    F32,
    /// `f64`
    F64,
}

impl Class {
    const ALL: [Class; 6] = [Class::Pred, Class::B16, Class::B32, Class::B64, Class::F32, Class::F64];

    /// The class that holds values of a dtype.
    pub(crate) fn of(dtype: Dtype) -> Class {
        match dtype {
            Dtype::Bool => Class::Pred,
            Dtype::F16 | Dtype::Bf16 => Class::B16,
            Dtype::F32 => Class::F32,
            Dtype::F64 => Class::F64,
            Dtype::I64 | Dtype::U64 => Class::B64,
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::F8E4M3 | Dtype::F8E5M2 => Class::B32,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
        }
    }

    /// The type in `.reg` and `mov`.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }
}

/// The bytes of the longest name: the longest prefix and the digits of the greatest `u32`.
const LONGEST_NAME: usize = 3 + 10;

/// A virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reg {
    pub(crate) class: Class,
    index: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Registers are half of the text, and `u32::fmt` spends most of its time on widths and signs.
        let (mut name, mut first, mut left) = ([0; LONGEST_NAME], LONGEST_NAME, self.index);
        loop {
            first -= 1;
            name[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        let prefix = self.class.prefix().as_bytes();
        first -= prefix.len();
        name[first..first + prefix.len()].copy_from_slice(prefix);
        f.write_str(std::str::from_utf8(&name[first..]).map_err(|_| fmt::Error)?)
    }
}

/// The body of a PTX function under construction.
#[derive(Default)]
pub(crate) struct Assembly {
    text: String,
    used: [u32; Class::ALL.len()],
    labels: u32,
}

impl Assembly {
    /// A fresh register.
    pub(crate) fn reg(&mut self, class: Class) -> Reg {
        let index = &mut self.used[class as usize];
        *index += 1;
        Reg { class, index: *index - 1 }
    }

    /// A fresh label.
    pub(crate) fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels - 1)
    }

    /// Appends an instruction.
    pub(crate) fn line(&mut self, instruction: fmt::Arguments<'_>) {
        use fmt::Write;
        self.text.push('\t');
        let _ = self.text.write_fmt(instruction);
        self.text.push_str(";\n");
    }

    /// Appends a directive, which has no semicolon.
    pub(crate) fn directive(&mut self, directive: fmt::Arguments<'_>) {
        use fmt::Write;
        self.text.push('\t');
        let _ = self.text.write_fmt(directive);
        self.text.push('\n');
    }

    /// Emits a label.
    pub(crate) fn define_label(&mut self, label: &str) {
        self.text.push_str(label);
        self.text.push_str(":\n");
    }

    /// The declarations of all registers, then the instructions.
    pub(crate) fn finish(self) -> String {
        let mut out = String::new();
        for class in Class::ALL {
            let used = self.used[class as usize];
            if used > 0 {
                out.push_str(&format!("\t.reg .{} {}<{used}>;\n", class.suffix(), class.prefix()));
            }
        }
        out.push('\n');
        out.push_str(&self.text);
        out
    }
}

/// Appends an instruction to the emitter's assembly: `asm!(self, "add.s32 {d}, {a}, {b}")`.
macro_rules! asm {
    ($emitter:expr, $($format:tt)*) => { $emitter.asm.line(format_args!($($format)*)) };
}
pub(crate) use asm;
