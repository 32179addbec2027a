//! Reports of `.checked()` launches: the first out-of-bounds access or failed assertion writes its site and its program into a buffer.

use crate::ir::{AccessKind, Value};
use crate::location::{Loc, Name};

use crate::backend::ptx::Emitter;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// An access or an assertion that reports: the meaning of the site number in a [`report`](REPORT_BYTES).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The message of an assertion; `None` for an access.
    pub assertion: Option<Name>,
    /// The pointer's name in the kernel's signature.
    pub parameter: Name,
    /// The kind of access.
    pub kind: AccessKind,
    /// The source file of `loc`, if the kernel has one.
    pub file: Option<Name>,
    /// The span of the access.
    pub loc: Loc,
}

/// The size in bytes of the buffer to which the last parameter of a checked kernel points. The buffer is zero before the launch.
///
/// After a violation the buffer contains: 1 (`u32` at 0), the number of the [`Site`] (`u32` at 4), the program's index along x, y, z (`u32`
/// at 8, 12, 16), and for an access the element's index (`i64` at 24) and the length of the tensor (`u64` at 32).
pub const REPORT_BYTES: usize = 40;

impl Emitter<'_> {
    pub(crate) fn report(&mut self, base: Value, offset: Value, outside: Value, kind: AccessKind, loc: Loc) {
        let Some(buffer) = self.report_buffer else { return };
        let site = self.sites.len();
        let parameter = self.func.param_index(base).map_or("".into(), |index| self.func.params[index].name.clone());
        let file = self.func.files.get(usize::from(loc.file)).cloned();
        self.sites.push(Site { assertion: None, parameter, kind, file, loc });
        let (_, length) = self.pointers[base].expect("a pointer is a parameter, or was made before");
        let indices = self.indices(offset);
        let outside = self.lanes(outside);
        for (register, index) in indices.into_iter().enumerate() {
            let skip = self.asm.label();
            asm!(self, "@!{} bra {skip}", outside.get(register));
            self.be_first(&buffer, site, &skip);
            asm!(self, "st.global.u64 [{buffer}+24], {index}");
            asm!(self, "st.global.u64 [{buffer}+32], {length}");
            self.asm.define_label(&skip);
        }
    }

    /// Every thread has the condition. The first thread in which it is false reports.
    pub(crate) fn assertion(&mut self, cond: Value, message: &str, loc: Loc) {
        let Some(buffer) = self.report_buffer else { return };
        let site = self.sites.len();
        let file = self.func.files.get(usize::from(loc.file)).cloned();
        self.sites.push(Site { assertion: Some(message.into()), parameter: "".into(), kind: AccessKind::Load, file, loc });
        let (skip, holds) = (self.asm.label(), self.scalar(cond));
        asm!(self, "@{holds} bra {skip}");
        self.be_first(&buffer, site, &skip);
        self.asm.define_label(&skip);
    }

    /// Branches to `skip` if another thread has reported before. Otherwise writes the site and the program.
    fn be_first(&mut self, buffer: &Reg, site: usize, skip: &str) {
        let (old, taken) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "atom.global.cas.b32 {old}, [{buffer}], 0, 1");
        asm!(self, "setp.ne.s32 {taken}, {old}, 0");
        asm!(self, "@{taken} bra {skip}");
        asm!(self, "st.global.u32 [{buffer}+4], {site}");
        for (axis, offset) in ['x', 'y', 'z'].into_iter().zip([8, 12, 16]) {
            let id = self.reg(Class::B32);
            asm!(self, "mov.u32 {id}, %{}id.{axis}", self.program());
            asm!(self, "st.global.u32 [{buffer}+{offset}], {id}");
        }
    }

    /// The indices that a thread accesses, in registers.
    fn indices(&mut self, offset: Value) -> Vec<Reg> {
        match self.facts.get(self.func, offset) {
            Some(affine) => self.index_registers(offset, &affine),
            None => {
                let lanes = self.lanes(offset);
                (0..self.lane_count(offset)).map(|register| lanes.get(register)).collect()
            }
        }
    }
}
