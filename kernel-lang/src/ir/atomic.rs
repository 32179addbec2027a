//! What an atomic does to an element, and what it promises about the accesses around it.

use crate::dtype::Dtype;
use crate::ir::fields::{AttributeValue, Field, Parts, modifier, take_attribute};

macro_rules! atomic_ops {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal: $operands:literal, [$($dtype:ident)*];)*) => {
        /// What an atomic does to an element: its new value, from the old one and the operand.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum AtomicOp { $($(#[doc = $doc])* $variant,)* }

        impl AtomicOp {
            /// Every member.
            pub const ALL: &[AtomicOp] = &[$(AtomicOp::$variant),*];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $(AtomicOp::$variant => $name,)* }
            }

            /// The word of the language.
            pub const fn word(self) -> &'static str {
                match self { $(AtomicOp::$variant => concat!("atomic_", $name),)* }
            }

            /// How many operands it takes beside the address.
            pub const fn operands(self) -> usize {
                match self { $(AtomicOp::$variant => $operands,)* }
            }

            /// The element types that machines do it on.
            pub const fn dtypes(self) -> &'static [Dtype] {
                match self { $(AtomicOp::$variant => &[$(Dtype::$dtype),*],)* }
            }
        }
    };
}

atomic_ops! {
    /// The sum; integers wrap, halves and `f64` round once, and so does `f32`, whose subnormals count as zeros of their sign.
    Add = "add": 1, [I32 I64 U32 U64 F16 Bf16 F32 F64];
    /// The larger; of floats, in the order -NaN, -infinity, .., -0.0, 0.0, .., infinity, NaN. A NaN operand changes nothing.
    Max = "max": 1, [I32 I64 U32 U64 F32 F64];
    /// The smaller, in the same order. A NaN operand changes nothing.
    Min = "min": 1, [I32 I64 U32 U64 F32 F64];
    /// Bitwise and.
    And = "and": 1, [I32 I64 U32 U64];
    /// Bitwise or.
    Or = "or": 1, [I32 I64 U32 U64];
    /// Bitwise exclusive or.
    Xor = "xor": 1, [I32 I64 U32 U64];
    /// The operand.
    Exchange = "xchg": 1, [I32 I64 U32 U64 F32 F64];
    /// The second operand if the element has the bits of the first, else the element as it is.
    CompareAndSwap = "cas": 2, [I16 I32 I64 U16 U32 U64 F16 Bf16 F32 F64];
    /// The element as it is.
    Load = "load": 0, [Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 F8E4M3 F8E5M2];
    /// The operand; the old value is not asked for.
    Store = "store": 1, [Bool I8 I16 I32 I64 U8 U16 U32 U64 F16 Bf16 F32 F64 F8E4M3 F8E5M2];
}

impl AtomicOp {
    /// Does it change memory?
    pub const fn writes(self) -> bool {
        !matches!(self, AtomicOp::Load)
    }

    /// Does it give the old value?
    pub const fn has_result(self) -> bool {
        !matches!(self, AtomicOp::Store)
    }

    /// What a message calls its types.
    pub fn type_words(self) -> String {
        let names: Vec<String> = self.dtypes().iter().map(|dtype| format!("`{dtype}`")).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }

    /// What a load can promise is to acquire, what a store can is to release.
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
    /// What an atomic promises about the accesses of the whole program in front of it and behind it.
    Semantics {
        /// Both of the next two.
        AcquireRelease = "acq_rel",
        /// What was released by the atomic that this one reads from is seen by every access behind it.
        Acquire = "acquire",
        /// Every access in front of it is done before it.
        Release = "release",
        /// Nothing: only this element changes in one step.
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

    /// The same without acquiring.
    #[must_use]
    pub const fn without_acquire(self) -> Semantics {
        if self.releases() { Semantics::Release } else { Semantics::Relaxed }
    }
}

modifier! {
    /// Among whom an atomic happens in one step (PTX ISA, "Scope").
    Scope {
        /// All programs on the GPU.
        Gpu = "gpu",
        /// The threads of this program.
        Program = "cta",
        /// The GPU, others, and the host.
        System = "sys",
    }
}
