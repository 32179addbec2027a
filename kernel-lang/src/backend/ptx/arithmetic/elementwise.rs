//! Elementwise ops: one or a few instructions per register.

use crate::dtype::Dtype;
use crate::float8::Format;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Handle, Op, UnaryOp, Value};

use crate::backend::ptx::arithmetic::shared_divisor::Dividends;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source, arithmetic_type};

impl Emitter<'_> {
    pub(crate) fn pure(&mut self, op: &Op, result: Value) {
        let dtype = self.func.ty(result).dtype();
        match op {
            Op::Const { value } => {
                let reg = self.constant(value, dtype);
                self.define(result, Lanes::Splat(reg));
            }
            Op::ProgramId { axis } => self.special(&format!("%{}id.{}", self.program(), AXES[*axis as usize]), result),
            Op::NumPrograms { axis } => self.special(&format!("%n{}id.{}", self.program(), AXES[*axis as usize]), result),
            Op::Length { base } | Op::Address { base } => {
                let (address, length) = self.pointers[*base].expect("a pointer is a parameter, or was made before");
                self.define(result, Lanes::Splat(if matches!(op, Op::Length { .. }) { length } else { address }));
            }
            Op::Cast { x } => {
                let lanes = self.cast(*x, self.func.ty(*x).dtype(), dtype);
                self.define(result, lanes);
            }
            _ => self.each(op, result, dtype),
        }
    }

    /// Emits the op for each element, or once if every operand is a splat.
    fn each(&mut self, op: &Op, result: Value, dtype: Dtype) {
        let (mut sources, mut from) = (Vec::with_capacity(3), None);
        let shift = match op {
            Op::Binary { op: BinaryOp::Shl | BinaryOp::Shr, rhs, .. } => self.func.splat(*rhs).and_then(ConstExpr::as_int),
            _ => None,
        };
        op.for_each_operand(&mut |value| {
            from = from.or(Some(self.func.ty(value).dtype()));
            // The number of a shift is a part of the instruction.
            if sources.is_empty() || shift.is_none() {
                sources.push(self.source(value));
            }
        });
        let from = from.expect("an elementwise op has an operand");
        let one = |emitter: &mut Self, register: usize| {
            let first = emitter.at(&sources[0], register);
            let second = sources.get(1).map(|source| emitter.at(source, register));
            let third = sources.get(2).map(|source| emitter.at(source, register));
            match (op, second, third) {
                (Op::Binary { op, .. }, ..) if let Some(amount) = shift => emitter.shift(*op, dtype, first, amount),
                (Op::Unary { op, .. }, ..) => emitter.unary(*op, dtype, first),
                (Op::Binary { op, .. }, Some(second), _) => emitter.binary(*op, dtype, first, second),
                (Op::Compare { op, rhs, .. }, Some(second), _) => match high_word_of_limit(emitter.func, *op, *rhs, from) {
                    Some(limit) => emitter.compare_high_word(*op, from, first, limit),
                    None => emitter.compare(*op, from, first, second),
                },
                (Op::Fma { .. }, Some(second), Some(third)) => emitter.fma(dtype, first, second, third),
                (Op::Select { on_true, on_false, .. }, Some(second), Some(third)) => {
                    let by_bits = dtype == Dtype::F32 && [on_true, on_false].into_iter().any(|arm| is_negative_zero(emitter.func, *arm));
                    emitter.select(dtype, by_bits, first, second, third)
                }
                (Op::Bitcast { .. }, ..) => emitter.bitcast(from, dtype, first),
                _ => unreachable!("`{}` is not elementwise", op.name()),
            }
        };
        if let Some(lanes) = self.halves.remove(&result) {
            return self.define(result, lanes);
        }
        let is_splat = sources.iter().all(|source| matches!(source, Source::Registers(Lanes::Splat(_))));
        let count = if is_splat { 1 } else { self.lane_count(result) };
        let lanes = |mut all: Vec<Reg>| if is_splat { Lanes::Splat(all.remove(0)) } else { Lanes::Each(all) };
        let all: Vec<Reg> = match op {
            Op::Binary { op: BinaryOp::Div, lhs, rhs } if dtype.is_int() || dtype == Dtype::F32 => {
                let pairs: Vec<(Reg, Reg)> =
                    (0..count).map(|register| (self.at(&sources[0], register), self.at(&sources[1], register))).collect();
                if dtype.is_int() {
                    self.quotients(dtype, &pairs)
                } else {
                    self.float_quotients(&pairs, Dividends::of(self.func, *lhs, *rhs), self.rounded_quotients[result.index()])
                }
            }
            Op::Binary { op, .. } if let Some(other) = self.other_halves.get(&result).copied() => {
                let products = (0..count).map(|register| {
                    let [a, b] = [0, 1].map(|operand: usize| self.at(&sources[operand], register));
                    self.halves(dtype, a, b)
                });
                let (own, others) = products.map(|[low, high]| if *op == BinaryOp::Mul { (low, high) } else { (high, low) }).unzip();
                self.halves.insert(other, lanes(others));
                own
            }
            _ => (0..count).map(|register| one(self, register)).collect(),
        };
        self.define(result, lanes(all));
    }

    pub(crate) fn special(&mut self, name: &str, result: Value) {
        let (narrow, wide) = (self.reg(Class::B32), self.reg(Class::B64));
        asm!(self, "mov.u32 {narrow}, {name}");
        asm!(self, "cvt.u64.u32 {wide}, {narrow}");
        self.define(result, Lanes::Splat(wide));
    }

    pub(crate) fn constant(&mut self, value: &ConstExpr, dtype: Dtype) -> Reg {
        let reg = self.reg(Class::of(dtype));
        let float = |value: &ConstExpr| match value {
            ConstExpr::Float(float) => *float,
            ConstExpr::Int(int) => *int as f64,
            other => unreachable!("`{other}` is no float of a verified kernel"),
        };
        match (dtype, value) {
            (Dtype::Bool, ConstExpr::Bool(value)) => asm!(self, "setp.{}.s32 {reg}, 0, 0", if *value { "eq" } else { "ne" }),
            (Dtype::F16, value) => asm!(self, "mov.b16 {reg}, {:#06x}", half::f16::from_f64(float(value)).to_bits()),
            (Dtype::Bf16, value) => asm!(self, "mov.b16 {reg}, {:#06x}", half::bf16::from_f64(float(value)).to_bits()),
            (Dtype::F32, value) => asm!(self, "mov.f32 {reg}, 0f{:08X}", (float(value) as f32).to_bits()),
            (Dtype::F64, value) => asm!(self, "mov.f64 {reg}, 0d{:016X}", float(value).to_bits()),
            (dtype, value) if let Some(format) = Format::of(dtype) => {
                // A verified kernel's constant is representable in its type.
                asm!(self, "mov.b32 {reg}, {:#04x}", format.from_f32(float(value) as f32));
            }
            (_, ConstExpr::Int(int)) => asm!(self, "mov.{} {reg}, {int}", reg.class.suffix()),
            (dtype, value) => unreachable!("`{value}` is no `{dtype}` of a verified kernel"),
        }
        reg
    }

    fn unary(&mut self, op: UnaryOp, dtype: Dtype, x: Reg) -> Reg {
        let ty = arithmetic_type(dtype);
        let d = self.reg(Class::of(dtype));
        match op {
            UnaryOp::Neg if dtype.is_float() => asm!(self, "neg.{ty} {d}, {x}"),
            UnaryOp::Neg => asm!(self, "neg.s{} {d}, {x}", width(dtype)),
            UnaryOp::Not if dtype == Dtype::Bool => asm!(self, "not.pred {d}, {x}"),
            UnaryOp::Not => asm!(self, "not.b{} {d}, {x}", width(dtype)),
            UnaryOp::Abs if dtype.is_float() || dtype.is_signed_int() => asm!(self, "abs.{ty} {d}, {x}"),
            UnaryOp::Abs => return x,
            UnaryOp::Sqrt => asm!(self, "sqrt.rn.{ty} {d}, {x}"),
            UnaryOp::Floor => asm!(self, "cvt.rmi.{ty}.{ty} {d}, {x}"),
            UnaryOp::Ceil => asm!(self, "cvt.rpi.{ty}.{ty} {d}, {x}"),
            UnaryOp::Rint => asm!(self, "cvt.rni.{ty}.{ty} {d}, {x}"),
            UnaryOp::Trunc => asm!(self, "cvt.rzi.{ty}.{ty} {d}, {x}"),
            UnaryOp::ExpApprox2 => asm!(self, "ex2.approx.{ty} {d}, {x}"),
            UnaryOp::ExpApproxFtz2 => asm!(self, "ex2.approx.ftz.{ty} {d}, {x}"),
            UnaryOp::LogApprox2 => asm!(self, "lg2.approx.{ty} {d}, {x}"),
            // `ftz` avoids the scaling of subnormals, which no formula needs.
            UnaryOp::RecipApprox => asm!(self, "rcp.approx.ftz.{ty} {d}, {x}"),
            UnaryOp::RsqrtApprox => asm!(self, "rsqrt.approx.{ty} {d}, {x}"),
            UnaryOp::SqrtApprox => asm!(self, "sqrt.approx.{ty} {d}, {x}"),
            UnaryOp::SinApprox => asm!(self, "sin.approx.{ty} {d}, {x}"),
            UnaryOp::CosApprox => asm!(self, "cos.approx.{ty} {d}, {x}"),
            UnaryOp::TanhApprox => asm!(self, "tanh.approx.{ty} {d}, {x}"),
            UnaryOp::Popc | UnaryOp::Clz => return self.count_bits(op, dtype, x),
            UnaryOp::Brev => {
                asm!(self, "brev.b{} {d}, {x}", width(dtype));
                if dtype.bits() < 32 {
                    // The extension bits of a narrow integer are now in the low bits.
                    let shifted = self.reg(Class::B32);
                    asm!(self, "shr.{ty} {shifted}, {d}, {}", 32 - dtype.bits());
                    return shifted;
                }
            }
            _ => unreachable!("`{}` of `{dtype}` was expanded before", op.name()),
        }
        self.narrow(dtype, d)
    }

    /// `popc` and `clz`, whose results are 32 bits wide.
    fn count_bits(&mut self, op: UnaryOp, dtype: Dtype, x: Reg) -> Reg {
        let unused = width(dtype) - dtype.bits();
        // A negative narrow integer is extended with ones.
        let x = if unused == 0 || !dtype.is_signed_int() {
            x
        } else {
            let own = self.reg(Class::B32);
            asm!(self, "and.b32 {own}, {x}, {}", (1u32 << dtype.bits()) - 1);
            own
        };
        let count = self.reg(Class::B32);
        asm!(self, "{}.b{} {count}, {x}", op.name(), width(dtype));
        let d = self.reg(Class::of(dtype));
        if dtype.bits() == 64 {
            asm!(self, "cvt.u64.u32 {d}, {count}");
        } else if op == UnaryOp::Clz && unused > 0 {
            asm!(self, "sub.s32 {d}, {count}, {unused}");
        } else {
            return count;
        }
        d
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, dtype: Dtype, a: Reg, b: Reg) -> Reg {
        let ty = arithmetic_type(dtype);
        let bits = width(dtype);
        let d = self.reg(Class::of(dtype));
        match op {
            BinaryOp::Add if dtype.is_float() => asm!(self, "add.rn.{ty} {d}, {a}, {b}"),
            BinaryOp::Sub if dtype.is_float() => asm!(self, "sub.rn.{ty} {d}, {a}, {b}"),
            BinaryOp::Mul if dtype.is_float() => asm!(self, "mul.rn.{ty} {d}, {a}, {b}"),
            BinaryOp::Div if dtype.is_float() => asm!(self, "div.rn.{ty} {d}, {a}, {b}"),
            BinaryOp::Add => asm!(self, "add.s{bits} {d}, {a}, {b}"),
            BinaryOp::Sub => asm!(self, "sub.s{bits} {d}, {a}, {b}"),
            BinaryOp::Mul => asm!(self, "mul.lo.s{bits} {d}, {a}, {b}"),
            BinaryOp::Rem if dtype == Dtype::F64 => return self.remainder(a, b),
            BinaryOp::Rem if dtype == Dtype::F32 => {
                let [a, b] = [a, b].map(|x| self.cast_one(x, Dtype::F32, Dtype::F64));
                let wide = self.remainder(a, b);
                return self.cast_one(wide, Dtype::F64, Dtype::F32);
            }
            BinaryOp::Div => return self.quotients(dtype, &[(a, b)])[0],
            BinaryOp::Rem => unreachable!("`rem` of `{dtype}` was expanded before"),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor if dtype == Dtype::Bool => asm!(self, "{}.pred {d}, {a}, {b}", op.name()),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => asm!(self, "{}.b{bits} {d}, {a}, {b}", op.name()),
            BinaryOp::Shl => {
                let amount = self.shift_amount(dtype, b);
                asm!(self, "shl.b{bits} {d}, {a}, {amount}");
            }
            BinaryOp::Shr => {
                let amount = self.shift_amount(dtype, b);
                asm!(self, "shr.{ty} {d}, {a}, {amount}");
            }
            BinaryOp::Min | BinaryOp::Max => asm!(self, "{}.{ty} {d}, {a}, {b}", op.name()),
            BinaryOp::MulHigh if dtype.bits() < 32 => {
                let product = self.reg(Class::B32);
                asm!(self, "mul.lo.s32 {product}, {a}, {b}");
                asm!(self, "shr.{ty} {d}, {product}, {}", dtype.bits());
            }
            BinaryOp::MulHigh => asm!(self, "mul.hi.{ty} {d}, {a}, {b}"),
            // The first operand of the instruction provides the sign.
            BinaryOp::CopySign => asm!(self, "copysign.{ty} {d}, {b}, {a}"),
            BinaryOp::DivApprox => asm!(self, "div.full.{ty} {d}, {a}, {b}"),
        }
        self.narrow(dtype, d)
    }

    /// Shifts by a constant.
    fn shift(&mut self, op: BinaryOp, dtype: Dtype, x: Reg, amount: i128) -> Reg {
        let (d, most) = (self.reg(Class::of(dtype)), i128::from(width(dtype)));
        let amount = if (0..most).contains(&amount) { amount } else { most };
        match op {
            BinaryOp::Shl => asm!(self, "shl.b{} {d}, {x}, {amount}", width(dtype)),
            _ => asm!(self, "shr.{} {d}, {x}, {amount}", arithmetic_type(dtype)),
        }
        self.narrow(dtype, d)
    }

    /// The amount of a shift as 32 bits. The instruction clamps it to the width; a negative amount counts as a large unsigned one.
    fn shift_amount(&mut self, dtype: Dtype, amount: Reg) -> Reg {
        if width(dtype) == 32 {
            return amount;
        }
        let (clamped, narrow) = (self.reg(Class::B64), self.reg(Class::B32));
        asm!(self, "min.u64 {clamped}, {amount}, 64");
        asm!(self, "cvt.u32.u64 {narrow}, {clamped}");
        narrow
    }

    fn compare(&mut self, op: CompareOp, dtype: Dtype, a: Reg, b: Reg) -> Reg {
        let d = self.reg(Class::Pred);
        if dtype == Dtype::Bool {
            let not = |emitter: &mut Self, x: Reg| {
                let n = emitter.reg(Class::Pred);
                asm!(emitter, "not.pred {n}, {x}");
                n
            };
            match op {
                CompareOp::Eq => {
                    let differ = self.reg(Class::Pred);
                    asm!(self, "xor.pred {differ}, {a}, {b}");
                    asm!(self, "not.pred {d}, {differ}");
                }
                CompareOp::Ne => asm!(self, "xor.pred {d}, {a}, {b}"),
                CompareOp::Lt | CompareOp::Le => {
                    let a = not(self, a);
                    asm!(self, "{}.pred {d}, {a}, {b}", if op == CompareOp::Lt { "and" } else { "or" });
                }
                CompareOp::Gt | CompareOp::Ge => {
                    let b = not(self, b);
                    asm!(self, "{}.pred {d}, {a}, {b}", if op == CompareOp::Gt { "and" } else { "or" });
                }
            }
            return d;
        }
        let name = if op == CompareOp::Ne && dtype.is_float() { "neu" } else { op.name() };
        asm!(self, "setp.{name}.{} {d}, {a}, {b}", arithmetic_type(dtype));
        d
    }

    /// Compares the high word of 64 bits with a constant.
    fn compare_high_word(&mut self, op: CompareOp, dtype: Dtype, x: Reg, limit: i128) -> Reg {
        let ([low, high], d) = ([0; 2].map(|_| self.reg(Class::B32)), self.reg(Class::Pred));
        asm!(self, "mov.b64 {{{low}, {high}}}, {x}");
        asm!(self, "setp.{}.{}32 {d}, {high}, {limit}", op.name(), if dtype.is_signed_int() { 's' } else { 'u' });
        d
    }

    pub(crate) fn fma(&mut self, dtype: Dtype, a: Reg, b: Reg, c: Reg) -> Reg {
        let d = self.reg(Class::of(dtype));
        asm!(self, "fma.rn.{} {d}, {a}, {b}, {c}", arithmetic_type(dtype));
        d
    }

    fn select(&mut self, dtype: Dtype, by_bits: bool, cond: Reg, on_true: Reg, on_false: Reg) -> Reg {
        let class = Class::of(dtype);
        let d = self.reg(class);
        if class == Class::Pred {
            let [taken, otherwise, not] = [0; 3].map(|_| self.reg(Class::Pred));
            asm!(self, "and.pred {taken}, {cond}, {on_true}");
            asm!(self, "not.pred {not}, {cond}");
            asm!(self, "and.pred {otherwise}, {not}, {on_false}");
            asm!(self, "or.pred {d}, {taken}, {otherwise}");
        } else {
            let suffix = if by_bits { "b32" } else { class.suffix() };
            asm!(self, "selp.{suffix} {d}, {on_true}, {on_false}, {cond}");
        }
        d
    }

    fn bitcast(&mut self, from: Dtype, to: Dtype, x: Reg) -> Reg {
        let class = Class::of(to);
        if x.class == class {
            return self.narrow(to, x);
        }
        let d = self.reg(class);
        match (x.class, class) {
            (Class::B32, Class::B16) => asm!(self, "cvt.u16.u32 {d}, {x}"),
            (Class::B16, Class::B32) => asm!(self, "cvt.{}32.{}16 {d}, {x}", sign(to), sign(to)),
            _ => asm!(self, "mov.b{} {d}, {x}", from.bits()),
        }
        d
    }

    /// Reduces a narrow integer to its range, in the extended form of 32-bit registers.
    pub(crate) fn narrow(&mut self, dtype: Dtype, x: Reg) -> Reg {
        if x.class != Class::B32 || dtype.bits() == 32 {
            return x;
        }
        let d = self.reg(Class::B32);
        if dtype.is_signed_int() {
            asm!(self, "bfe.s32 {d}, {x}, 0, {}", dtype.bits());
        } else {
            asm!(self, "and.b32 {d}, {x}, {}", (1u32 << dtype.bits()) - 1);
        }
        d
    }
}

pub(in crate::backend::ptx) const AXES: [char; 3] = ['x', 'y', 'z'];

/// The width of the register in arithmetic, in bits.
pub(crate) fn width(dtype: Dtype) -> u32 {
    dtype.bits().max(32)
}

fn sign(dtype: Dtype) -> char {
    if dtype.is_signed_int() { 's' } else { 'u' }
}

/// Whether a value is the constant -0.0. ptxas 13.0 turns `selp.f32` between -0.0 and 1.0 into `FSET`, which yields +0.0; `selp.b32` keeps
/// the sign.
fn is_negative_zero(func: &Function, mut value: Value) -> bool {
    while let Some(Op::Broadcast { x }) = func.def_op(value) {
        value = *x;
    }
    matches!(func.def_op(value), Some(Op::Const { value: ConstExpr::Float(number) }) if *number == 0.0 && number.is_sign_negative())
}

/// The high word of a constant of 64 bits whose low word is zero, if a comparison with the constant is one of high words. The driver's compiler compares both.
fn high_word_of_limit(func: &Function, op: CompareOp, limit: Value, dtype: Dtype) -> Option<i128> {
    let Some(Op::Const { value }) = func.def_op(limit) else { return None };
    let is_wide = dtype.is_int() && dtype.bits() == 64 && matches!(op, CompareOp::Lt | CompareOp::Ge);
    let limit = value.as_int().filter(|limit| is_wide && *limit != 0 && limit % (1 << 32) == 0)?;
    Some(limit >> 32)
}
