//! `inline_ptx`: emits the user's PTX once for each element or pack of elements.
//!
//! The type of an operand determines its register, as PTX programmers expect: a predicate, 16 bits, 32 bits, 64 bits, `f32` or `f64`. 8-bit
//! integers and 8-bit floats have no registers of their own and are extended to 32 bits. Packed elements fill 32-bit registers, the first
//! element lowest.

use crate::dtype::Dtype;
use crate::ir::assembly::{self, Piece};
use crate::ir::{Op, Value};

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

impl Emitter<'_> {
    pub(crate) fn inline_ptx(&mut self, op: &Op, results: &[Value]) {
        let Op::InlinePtx { inputs, text, pack, isa, .. } = op else { return };
        let pieces = assembly::parse(text).expect("a verified text has valid placeholders");
        let pack = (*pack).max(1) as usize;
        self.ptx_version = self.ptx_version.max((isa / 10, isa % 10));
        let operands: Vec<(Dtype, Lanes)> = inputs.iter().map(|input| (self.func.ty(*input).dtype(), self.lanes(*input))).collect();
        let is_splat = operands.iter().all(|(_, lanes)| matches!(lanes, Lanes::Splat(_)));
        let count = if is_splat { 1 } else { results.iter().chain(inputs).map(|value| self.lane_count(*value)).max().unwrap_or(1) };
        let mut given: Vec<Vec<Reg>> = vec![Vec::new(); results.len()];
        for first in (0..count).step_by(pack) {
            // If the last pack is incomplete, it repeats the last element.
            let elements = |lanes: &Lanes| (first..first + pack).map(|element| lanes.get(element.min(count - 1))).collect::<Vec<_>>();
            let dtypes: Vec<Dtype> = results.iter().map(|result| self.func.ty(*result).dtype()).collect();
            let mut registers: Vec<Vec<Reg>> = dtypes.iter().map(|dtype| self.result_registers(*dtype, pack)).collect();
            for (dtype, lanes) in &operands {
                let elements = elements(lanes);
                registers.push(self.operand_registers(*dtype, &elements));
            }
            self.write_text(&pieces, &registers);
            for ((given, dtype), registers) in given.iter_mut().zip(&dtypes).zip(&registers) {
                let elements = self.elements_from(*dtype, registers, pack);
                given.extend(&elements[..pack.min(count - first)]);
            }
        }
        for (result, given) in results.iter().zip(given) {
            self.define(*result, if is_splat { Lanes::Splat(given[0]) } else { Lanes::Each(given) });
        }
    }

    /// The registers of an operand in the text.
    fn operand_registers(&mut self, dtype: Dtype, elements: &[Reg]) -> Vec<Reg> {
        if assembly::is_packed(dtype, elements.len()) {
            return elements.chunks(32 / dtype.bits() as usize).map(|elements| self.pack(elements)).collect();
        }
        let own = |emitter: &mut Self, x: &Reg| {
            if !is_short(dtype) {
                return *x;
            }
            let short = emitter.reg(Class::B16);
            asm!(emitter, "cvt.u16.u32 {short}, {x}");
            short
        };
        elements.iter().map(|x| own(self, x)).collect()
    }

    /// The registers of a result in the text.
    fn result_registers(&mut self, dtype: Dtype, pack: usize) -> Vec<Reg> {
        let count = assembly::registers(dtype, pack).expect("a verified op's elements can be packed");
        let class = if assembly::is_packed(dtype, pack) {
            Class::B32
        } else if is_short(dtype) {
            Class::B16
        } else {
            Class::of(dtype)
        };
        (0..count).map(|_| self.reg(class)).collect()
    }

    /// The results of the text, in the form that the rest of the kernel uses.
    fn elements_from(&mut self, dtype: Dtype, registers: &[Reg], pack: usize) -> Vec<Reg> {
        if assembly::is_packed(dtype, pack) {
            let count = 32 / dtype.bits() as usize;
            return registers.iter().flat_map(|word| self.elements_of(dtype, &[*word], count)).collect();
        }
        let own = |emitter: &mut Self, x: &Reg| {
            if !is_short(dtype) {
                return emitter.narrow(dtype, *x);
            }
            let (wide, sign) = (emitter.reg(Class::B32), if dtype.is_signed_int() { 's' } else { 'u' });
            asm!(emitter, "cvt.{sign}32.{sign}16 {wide}, {x}");
            wide
        };
        registers.iter().map(|x| own(self, x)).collect()
    }

    /// Emits the text with these registers substituted, in its own scope, so that its declarations do not collide.
    fn write_text(&mut self, pieces: &[Piece], registers: &[Vec<Reg>]) {
        let register = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Register { name, part } => {
                let index: usize = name.parse().expect("a verified text names registers by their numbers");
                registers[index][part.unwrap_or(0)].to_string()
            }
        };
        let text: String = pieces.iter().map(register).collect();
        self.asm.directive(format_args!("{{"));
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.asm.directive(format_args!("{line}"));
        }
        self.asm.directive(format_args!("}}"));
    }
}

/// 16-bit integers, which the rest of the kernel extends to 32 bits.
fn is_short(dtype: Dtype) -> bool {
    dtype.is_int() && dtype.bits() == 16
}
