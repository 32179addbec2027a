//! Data-dependent exchanges: `gather`, `histogram` and `butterfly`.
//!
//! A gather writes its tile to shared memory in row-major order and reads from there. A histogram counts there. A tile that does not fit
//! into shared memory goes through it in [parts](crate::backend::ptx::exchange::parts).

use crate::analysis::affine::Affine;
use crate::dtype::Dtype;
use crate::ir::Value;
use crate::layout::{Layout, Level};

use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes};

/// The shared-memory addresses of the elements of a tile. Element `register` of the thread has the address `address + constants[register]`
/// and the offset `offset + constants[register]` from the start of shared memory.
struct ElementAddresses {
    address: Reg,
    offset: Reg,
    constants: Vec<i64>,
}

impl Emitter<'_> {
    pub(crate) fn gather(&mut self, src: Value, index: Value, axis: usize, result: Value) {
        let dtype = self.func.ty(src).dtype();
        let bytes = dtype.bytes() as u32;
        let extents = self.func.ty(src).extents();
        let mut strides = row_major(&extents);
        let numel = extents.iter().product::<usize>() as u32;
        let (at_once, range) = (self.at_once(), self.scratch());

        let layout = self.tile_layout(src);
        let owner = self.owner_in_cta(&layout);
        let (elements, addresses) = (self.lanes(src), self.element_addresses(&layout, &strides, bytes));
        let copies = layout.free_bits().register;
        let variables = self.results_of_parts(at_once < numel, dtype, self.lane_count(result));
        let part = self.begin_parts(at_once < numel, at_once * bytes);
        for register in (0..addresses.constants.len()).filter(|register| *register as u32 & copies == 0) {
            let constant = addresses.constants[register];
            let (address, is_inside) = self.in_part(part.as_ref(), addresses.address, addresses.offset, constant);
            let writes = self.both(owner, is_inside);
            let operand = format!("[{address}+{}]", i64::from(range.start) + constant);
            self.store_group("st.shared", &operand, dtype, writes, &[elements.get(register)]);
        }
        self.barrier();

        let scale = strides[axis] * i64::from(bytes);
        strides[axis] = 0;
        let layout = self.tile_layout(result);
        let (indices, addresses) = (self.lanes(index), self.element_addresses(&layout, &strides, bytes));
        let mut regs = Vec::new();
        for (register, constant) in addresses.constants.iter().enumerate() {
            let (inside, narrow, address) = (self.reg(Class::Pred), self.reg(Class::B32), self.reg(Class::B32));
            let index = indices.get(register);
            asm!(self, "setp.lt.u64 {inside}, {index}, {}", extents[axis]);
            asm!(self, "cvt.u32.u64 {narrow}, {index}");
            asm!(self, "mad.lo.s32 {address}, {narrow}, {scale}, {}", addresses.address);
            let offset = part.as_ref().map_or(address, |_| {
                let offset = self.asm.reg(Class::B32);
                asm!(self, "mad.lo.s32 {offset}, {narrow}, {scale}, {}", addresses.offset);
                offset
            });
            let (address, is_inside) = self.in_part(part.as_ref(), address, offset, *constant);
            let reads = self.both(Some(inside), is_inside);
            let operand = format!("[{address}+{}]", i64::from(range.start) + constant);
            let fill = variables.get(register).copied();
            regs.push(self.load_group("ld.shared", &operand, dtype, reads, &[fill])[0]);
        }
        let regs = self.end_parts(part, numel * bytes, variables, regs);
        self.define(result, Lanes::Each(regs));
    }

    pub(crate) fn histogram(&mut self, x: Value, mask: Option<Value>, result: Value) {
        let dtype = self.func.ty(x).dtype();
        let bins = self.func.ty(result).numel() as u32;
        let (at_once, range) = (self.at_once(), self.scratch());
        let variables = self.results_of_parts(at_once < bins, Dtype::I32, self.lane_count(result));
        let part = self.begin_parts(at_once < bins, 4 * at_once);
        let (thread, threads) = (self.thread(), self.schedule.threads());
        let own = self.thread_address(thread, 4);
        let zero = self.reg(Class::B32);
        asm!(self, "mov.b32 {zero}, 0");
        let clears = (at_once < threads).then(|| {
            let clears = self.reg(Class::Pred);
            asm!(self, "setp.lt.u32 {clears}, {thread}, {at_once}");
            clears
        });
        for bin in (0..at_once).step_by(threads as usize) {
            let operand = format!("[{own}+{}]", range.start + 4 * bin);
            self.store_group("st.shared", &operand, Dtype::I32, clears, &[zero]);
        }
        self.barrier();

        let layout = self.tile_layout(x);
        let owner = self.owner_in_cta(&layout);
        let copies = layout.free_bits().register;
        let (elements, mask) = (self.lanes(x), mask.map(|mask| self.lanes(mask)));
        let base = self.shared_address(None);
        for register in (0..self.lane_count(x)).filter(|register| *register as u32 & copies == 0) {
            let wide = self.cast_one(elements.get(register), dtype, Dtype::I64);
            let (inside, narrow, address) = (self.reg(Class::Pred), self.reg(Class::B32), self.reg(Class::B32));
            asm!(self, "setp.lt.u64 {inside}, {wide}, {bins}");
            asm!(self, "cvt.u32.u64 {narrow}, {wide}");
            asm!(self, "mad.lo.s32 {address}, {narrow}, 4, {base}");
            let offset = part.as_ref().map_or(address, |_| {
                let offset = self.asm.reg(Class::B32);
                asm!(self, "shl.b32 {offset}, {narrow}, 2");
                offset
            });
            let (address, is_inside) = self.in_part(part.as_ref(), address, offset, 0);
            let counts = self.both(mask.as_ref().map(|mask| mask.get(register)), owner);
            let counts = self.both(counts, is_inside);
            let guard = self.both(counts, Some(inside)).map_or(String::new(), |counts| format!("@{counts} "));
            asm!(self, "{guard}red.relaxed.cta.shared.add.u32 [{address}+{}], 1", range.start);
        }
        self.barrier();

        let layout = self.tile_layout(result);
        let addresses = self.element_addresses(&layout, &[1], 4);
        let mut regs = Vec::new();
        for (register, constant) in addresses.constants.iter().enumerate() {
            let (address, reads) = self.in_part(part.as_ref(), addresses.address, addresses.offset, *constant);
            let operand = format!("[{address}+{}]", i64::from(range.start) + constant);
            regs.extend(self.load_group("ld.shared", &operand, Dtype::I32, reads, &[variables.get(register).copied()]));
        }
        let regs = self.end_parts(part, 4 * bins, variables, regs);
        self.define(result, Lanes::Each(regs));
    }

    /// `butterfly`: flips one bit of the index along the axis. The bit is a bit of the register, the lane or the warp.
    pub(crate) fn butterfly(&mut self, x: Value, axis: usize, bit: u32, result: Value) {
        let Lanes::Each(regs) = self.lanes(x) else {
            let lanes = self.lanes(x);
            return self.define(result, lanes);
        };
        let dtype = self.func.ty(x).dtype();
        let layout = self.tile_layout(x);
        let holds = |level: &Level, at: usize| layout.basis_along(*level, at, axis) == 1 << bit;
        let bits = Level::ALL.into_iter().flat_map(|level| (0..layout.bits(level)).map(move |at| (level, at)));
        let (level, at) = bits.into_iter().find(|(level, at)| holds(level, *at)).expect("a bitwise layout holds every bit of an index");
        let turned = match level {
            Level::Register => (0..regs.len()).map(|register| regs[register ^ 1 << at]).collect(),
            Level::Lane => {
                let exchange = |reg: &Reg| {
                    let words = self.words_of(dtype, &[*reg]);
                    let words = self.shuffle("bfly", &words, 1 << at);
                    self.elements_of(dtype, &words, 1)[0]
                };
                regs.iter().map(exchange).collect()
            }
            _ => {
                let at_once = self.at_once() as usize;
                regs.chunks(at_once).flat_map(|regs| self.across_warps(dtype, regs, 32 << at)).collect()
            }
        };
        self.define(result, Lanes::Each(turned));
    }

    /// The registers of the thread whose index differs in `bit`.
    fn across_warps(&mut self, dtype: Dtype, regs: &[Reg], bit: u32) -> Vec<Reg> {
        let (thread, threads, bytes) = (self.thread(), self.schedule.threads(), dtype.bytes() as u32);
        let range = self.scratch();
        let operand = |address: Reg, register: usize| format!("[{address}+{}]", range.start + register as u32 * threads * bytes);
        let own = self.thread_address(thread, dtype.bytes());
        for (register, reg) in regs.iter().enumerate() {
            self.store_group("st.shared", &operand(own, register), dtype, None, &[*reg]);
        }
        self.barrier();
        let partner = self.reg(Class::B32);
        asm!(self, "xor.b32 {partner}, {thread}, {bit}");
        let theirs = self.thread_address(partner, dtype.bytes());
        (0..regs.len()).map(|register| self.load_group("ld.shared", &operand(theirs, register), dtype, None, &[None])[0]).collect()
    }

    fn tile_layout(&self, tile: Value) -> Layout {
        self.layout(tile).expect("tiles have layouts").clone()
    }

    /// The shared-memory addresses of a thread's elements, from the strides along each axis.
    fn element_addresses(&mut self, layout: &Layout, strides: &[i64], bytes: u32) -> ElementAddresses {
        let affine = Affine::steps(strides);
        let wide = self.address(None, None, &affine, Some(layout), bytes.into());
        let offset = self.reg(Class::B32);
        asm!(self, "cvt.u32.u64 {offset}, {wide}");
        let address = self.shared_address(Some(offset));
        let constant = |register| Self::register_part(Some(layout), &affine, register) * i64::from(bytes);
        ElementAddresses { address, offset, constants: (0..layout.registers_per_thread() as usize).map(constant).collect() }
    }
}

/// The row-major stride of each axis.
fn row_major(extents: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis] as i64;
    }
    strides
}
