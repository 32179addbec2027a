//! Both halves of a product of 32-bit integers by one instruction.
//!
//! Random numbers use both halves of each product: `umulhi(x, m)` and `x * m`. ptxas does not join `mul.hi` and `mul.lo`. `mul.wide` computes
//! both halves, and ptxas drops a half that is not used.
//!
//! ```text
//! mul.wide.u32 %rd0, x, m
//! mov.b64 {low, high}, %rd0
//! ```

use rustc_hash::FxHashMap;

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Function, Handle, Op, Value};

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, arithmetic_type};

/// The other half of each product of which a region computes both.
pub(crate) fn other_halves(func: &Function, needed: &[bool]) -> FxHashMap<Value, Value> {
    let mut others = FxHashMap::default();
    for region in func.regions_under(func.body) {
        let mut lows: FxHashMap<[Value; 2], Value> = FxHashMap::default();
        let mut highs: Vec<([Value; 2], Value)> = Vec::new();
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            let &Op::Binary { op, lhs, rhs } = &data.op else { continue };
            let result = data.results[0];
            if !needed[result.index()] || !has_wide_products(func.ty(result).dtype()) {
                continue;
            }
            let factors = if lhs <= rhs { [lhs, rhs] } else { [rhs, lhs] };
            match op {
                BinaryOp::Mul => drop(lows.insert(factors, result)),
                BinaryOp::MulHigh => highs.push((factors, result)),
                _ => {}
            }
        }
        for (factors, high) in highs {
            if let Some(low) = lows.remove(&factors) {
                others.extend([(low, high), (high, low)]);
            }
        }
    }
    others
}

fn has_wide_products(dtype: Dtype) -> bool {
    dtype.is_int() && dtype.bits() == 32
}

impl Emitter<'_> {
    /// The low and the high half of a product.
    pub(super) fn halves(&mut self, dtype: Dtype, a: Reg, b: Reg) -> [Reg; 2] {
        let product = self.reg(Class::B64);
        let [low, high] = [0; 2].map(|_| self.reg(Class::B32));
        asm!(self, "mul.wide.{} {product}, {a}, {b}", arithmetic_type(dtype));
        asm!(self, "mov.b64 {{{low}, {high}}}, {product}");
        [low, high]
    }
}
