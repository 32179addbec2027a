//! Atomic operations, their memory semantics and scopes.

use crate::dtype::Dtype;
use crate::ir::fields::{AttributeValue, Field, Parts, modifier, take_attribute};

macro_rules! atomic_ops {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal: $operands:literal, [$($dtype:ident)*];)*) => {
        /// The operation of an atomic: computes the new value of an element from its old value and the operands.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum AtomicOp { $($(#[doc = $doc])* $variant,)* }

        impl AtomicOp {
            /// Every member.
            pub const ALL: &[AtomicOp] = &[$(AtomicOp::$variant),*];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $(AtomicOp::$variant => $name,)* }
            }

            /// The name of the builtin.
            pub const fn builtin(self) -> &'static str {
                match self { $(AtomicOp::$variant => concat!("atomic_", $name),)* }
            }

            /// The number of operands besides the address.
            pub const fn operands(self) -> usize {
                match self { $(AtomicOp::$variant => $operands,)* }
            }

            /// The supported element types.
            pub const fn dtypes(self) -> &'static [Dtype] {
                match self { $(AtomicOp::$variant => &[$(Dtype::$dtype),*],)* }
            }
        }
    };
}

atomic_ops! {
    /// The sum; integers wrap, `f16`, `bf16` and `f64` round once. `f32` rounds once and treats subnormals as zeros of their sign.
    Add = "add": 1, [I32 I64 U32 U64 F16 Bf16 F32 F64];
    /// The maximum; floats have the order -NaN, -infinity, .., -0.0, 0.0, .., infinity, NaN. A NaN operand changes nothing.
    Max = "max": 1, [I32 I64 U32 U64 F32 F64];
    /// The minimum, in the same order. A NaN operand changes nothing.
    Min = "min": 1, [I32 I64 U32 U64 F32 F64];
    /// Bitwise and.
    And = "and": 1, [I32 I64 U32 U64];
    /// Bitwise or.
    Or = "or": 1, [I32 I64 U32 U64];
    /// Bitwise exclusive or.
    Xor = "xor": 1, [I32 I64 U32 U64];
    /// The operand replaces the element.
    Exchange = "xchg": 1, [I32 I64 U32 U64 F32 F64];
    /// The second operand replaces the element if the element has the bits of the first operand.
    CompareAndSwap = "cas": 2, [I16 I32 I64 U16 U32 U64 F16 Bf16 F32 F64];
    /// The element is unchanged.
    Load = "load": 0, [Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 F8E4M3 F8E5M2];
    /// The operand replaces the element; the old value is not returned.
    Store = "store": 1, [Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 F8E4M3 F8E5M2];
}

impl AtomicOp {
    /// Does it write memory?
    pub const fn writes(self) -> bool {
        !matches!(self, AtomicOp::Load)
    }

    /// Is there an instruction that updates neighbouring elements at once, each by itself, if their old values are unused?
    pub const fn has_vectors(self, dtype: Dtype) -> bool {
        matches!(self, AtomicOp::Add) && matches!(dtype, Dtype::F16 | Dtype::Bf16 | Dtype::F32)
    }

    /// Does it return the old value?
    pub const fn has_result(self) -> bool {
        !matches!(self, AtomicOp::Store)
    }

    /// The supported types, as a phrase for error messages.
    pub fn describe_types(self) -> String {
        let names: Vec<String> = self.dtypes().iter().map(|dtype| format!("`{dtype}`")).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }

    /// The supported semantics: a load can acquire but not release, a store can release but not acquire.
    pub const fn semantics(self) -> &'static [Semantics] {
        match self {
            AtomicOp::Load => &[Semantics::Acquire, Semantics::Relaxed],
            AtomicOp::Store => &[Semantics::Release, Semantics::Relaxed],
            _ => &[Semantics::AcquireRelease, Semantics::Acquire, Semantics::Release, Semantics::Relaxed],
        }
    }
}

impl Field for AtomicOp {
    fn print(&self, name: &str, parts: &mut Parts) {
        parts.attributes.push((name.to_string(), AttributeValue::Text(self.name().to_string())));
    }
    fn parse(name: &str, parts: &mut Parts) -> Result<AtomicOp, String> {
        let Some(AttributeValue::Text(text)) = take_attribute(name, parts) else {
            return Err(format!("attribute `{name}` is missing or not a text"));
        };
        AtomicOp::ALL.iter().copied().find(|op| op.name() == text).ok_or_else(|| format!("`{name}` cannot be \"{text}\""))
    }
}

modifier! {
    /// The memory ordering of an atomic, relative to the accesses of the whole program before and after it.
    Semantics {
        /// Acquire and release.
        AcquireRelease = "acq_rel",
        /// Every access after it sees what was released by the atomic whose value it reads.
        Acquire = "acquire",
        /// Every access before it is performed before it.
        Release = "release",
        /// No ordering: only the access to this element is atomic.
        Relaxed = "relaxed",
    }
}

impl Semantics {
    /// Does it acquire?
    pub const fn acquires(self) -> bool {
        matches!(self, Semantics::AcquireRelease | Semantics::Acquire)
    }

    /// Does it release?
    pub const fn releases(self) -> bool {
        matches!(self, Semantics::AcquireRelease | Semantics::Release)
    }

    /// The semantics that acquires or releases.
    pub const fn of(acquires: bool, releases: bool) -> Semantics {
        match (acquires, releases) {
            (true, true) => Semantics::AcquireRelease,
            (true, false) => Semantics::Acquire,
            (false, true) => Semantics::Release,
            (false, false) => Semantics::Relaxed,
        }
    }

    /// The same semantics without acquiring.
    #[must_use]
    pub const fn without_acquire(self) -> Semantics {
        if self.releases() { Semantics::Release } else { Semantics::Relaxed }
    }
}

modifier! {
    /// The set of threads among which an atomic is performed in one step (PTX ISA, "Scope").
    Scope {
        /// All programs on the GPU.
        Gpu = "gpu",
        /// The threads of this program.
        Program = "cta",
        /// The GPU, other GPUs, and the host.
        System = "sys",
    }
}
