//! The suite as PTX and bytes: one kernel a row, each thread one case.

use std::fmt::Write;

use kernel_sim::ptx::Type;

use crate::inputs::{Random, case, stored_bytes};
use crate::rows::{FAMILIES, Row, Rows};

/// The header of every module.
pub(crate) const HEADER: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";

/// A row, and what is made from it.
pub(crate) struct Entry {
    pub(crate) family: &'static str,
    pub(crate) row: Row,
    /// The kernel's text, without the header of a module.
    pub(crate) kernel: String,
    /// The kernel's name.
    pub(crate) name: String,
    /// Each input, all threads after each other, begins at a multiple of 16.
    pub(crate) inputs: Vec<u8>,
    /// Where its answers begin in the file of them all, and how many bytes they have; each output as the inputs.
    pub(crate) answers: std::ops::Range<usize>,
}

impl Entry {
    /// A module with the row's kernel alone.
    pub(crate) fn module(&self) -> String {
        format!("{HEADER}{}", self.kernel)
    }

    /// How many cases.
    pub(crate) fn cases(&self) -> usize {
        self.row.warps as usize * 32
    }

    /// Where each of these begins among the bytes of a row, and where they end.
    pub(crate) fn offsets(types: impl Iterator<Item = Type>, cases: usize) -> Vec<usize> {
        let ends = types.scan(0, |end, ty| {
            *end += (stored_bytes(ty) * cases).next_multiple_of(16);
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }
}

/// Every row of the table.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut end = 0;
    for (family, list) in FAMILIES {
        let mut rows = Rows::default();
        list(&mut rows);
        for row in rows.0 {
            let number = entries.len();
            let cases = row.warps as usize * 32;
            let offsets = Entry::offsets(row.outputs.iter().copied(), cases);
            let bytes = offsets.last().copied().unwrap_or(0);
            let name = format!("row_{number}");
            let kernel = kernel(&row, &name);
            let inputs = inputs(&row, number);
            entries.push(Entry { family, row, kernel, name, inputs, answers: end..end + bytes });
            end += bytes;
        }
    }
    entries
}

/// FNV-1a of all kernels and inputs: answers belong to exactly these.
pub(crate) fn digest(entries: &[Entry]) -> u64 {
    let bytes = entries.iter().flat_map(|entry| entry.kernel.bytes().chain(entry.inputs.iter().copied()));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn inputs(row: &Row, number: usize) -> Vec<u8> {
    let cases = row.warps as usize * 32;
    let offsets = Entry::offsets(row.inputs.iter().map(|input| input.ty), cases);
    let mut bytes = vec![0; offsets.last().copied().unwrap_or(0)];
    let mut random = Random::new(number as u64);
    for thread in 0..cases {
        for (index, (input, value)) in row.inputs.iter().zip(case(&mut random, &row.inputs)).enumerate() {
            let size = stored_bytes(input.ty);
            let start = offsets[index] + thread * size;
            bytes[start..start + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// The names of a row's inputs: `d` belongs to the outputs.
pub(crate) fn input_names() -> impl Iterator<Item = String> {
    ('a'..='z').filter(|&name| name != 'd').map(String::from)
}

/// The names of a row's outputs.
pub(crate) fn output_names() -> impl Iterator<Item = String> {
    std::iter::once("d".to_owned()).chain((1..).map(|number| format!("d{number}")))
}

fn kernel(row: &Row, name: &str) -> String {
    let cases = row.warps as usize * 32;
    let mut text = format!("// {}\n.visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n", row.name);
    text += "\t.reg .b64 %in, %out, %at;\n\t.reg .b32 %block, %thread, %byte;\n";
    text += "\tld.param.u64 %in, [in];\n\tld.param.u64 %out, [out];\n";
    text += "\tmov.u32 %block, %ctaid.x;\n\tmov.u32 %thread, %tid.x;\n\tmad.lo.u32 %thread, %block, 32, %thread;\n";
    let offsets = Entry::offsets(row.inputs.iter().map(|input| input.ty), cases);
    for ((register, input), offset) in input_names().zip(&row.inputs).zip(offsets) {
        let bytes = stored_bytes(input.ty);
        declare(&mut text, &register, input.ty);
        _ = writeln!(text, "\tmad.wide.u32 %at, %thread, {bytes}, %in;");
        if input.ty == Type::Pred {
            _ = writeln!(text, "\tld.global.u8 %byte, [%at+{offset}];\n\tsetp.ne.u32 {register}, %byte, 0;");
        } else {
            _ = writeln!(text, "\tld.global.b{} {register}, [%at+{offset}];", bytes * 8);
        }
    }
    for (register, &ty) in output_names().zip(&row.outputs) {
        declare(&mut text, &register, ty);
    }
    _ = writeln!(text, "\t{}", row.body.split_inclusive("; ").map(str::trim).collect::<Vec<_>>().join("\n\t"));
    let offsets = Entry::offsets(row.outputs.iter().copied(), cases);
    for ((register, &ty), offset) in output_names().zip(&row.outputs).zip(offsets) {
        let bytes = stored_bytes(ty);
        _ = writeln!(text, "\tmad.wide.u32 %at, %thread, {bytes}, %out;");
        if ty == Type::Pred {
            _ = writeln!(text, "\tselp.u32 %byte, 1, 0, {register};\n\tst.global.u8 [%at+{offset}], %byte;");
        } else {
            _ = writeln!(text, "\tst.global.b{} [%at+{offset}], {register};", bytes * 8);
        }
    }
    text + "\tret;\n}\n"
}

fn declare(text: &mut String, register: &str, ty: Type) {
    _ = match ty {
        Type::Pred => writeln!(text, "\t.reg .pred {register};"),
        _ => writeln!(text, "\t.reg .b{} {register};", stored_bytes(ty) * 8),
    };
}
