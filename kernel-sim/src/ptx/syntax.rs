//! The syntax tree of PTX, before name resolution.
//!
//! It follows the chapters "Syntax", "State Spaces, Types, and Variables" and "Directives" of NVIDIA's *PTX ISA*.

use std::fmt;

/// A position in the text of a module: line and column, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in bytes.
    pub column: u32,
}

/// A source line, as given by `.loc`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceLine {
    /// The number of the file in `.file`; 0 before the first `.loc`.
    pub file: u32,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A whole module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// `.target`, such as `sm_90a`.
    pub target: String,
    /// `.file number "name"`.
    pub files: Vec<(u32, String)>,
    /// Variables outside functions.
    pub variables: Vec<Variable>,
    /// Kernels and device functions, declared or defined.
    pub functions: Vec<Function>,
    /// `.alias name, function`: another name of a function.
    pub aliases: Vec<(String, String)>,
}

/// The state space of a variable or of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    /// `.global`
    Global,
    /// `.shared`, `.shared::cta`
    Shared,
    /// `.shared::cluster`
    SharedCluster,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// `.const`
    Const,
    /// No space: a generic address.
    Generic,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared | Space::SharedCluster => "shared",
            Space::Local => "local",
            Space::Param => "parameter",
            Space::Const => "constant",
            Space::Generic => "generic",
        })
    }
}

/// Linkage directives such as `.visible` and `.extern`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linkage {
    /// Visible only in the module.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// A variable of a state space, or a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// The linkage.
    pub linkage: Linkage,
    /// The state space.
    pub space: Space,
    /// `.align`, if present.
    pub align: Option<u32>,
    /// The element type.
    pub ty: Type,
    /// The number of vector elements: 1, 2 (`.v2`) or 4 (`.v4`).
    pub vector: u32,
    /// The name; may be `_` for parameters of a declaration.
    pub name: String,
    /// The extent of each dimension; empty for a scalar. The first extent may be unknown (`name[]`).
    pub extents: Vec<Option<u64>>,
    /// The initial value, nested as in the text. Missing elements are 0.
    pub init: Option<Init>,
    /// The position of the declaration.
    pub position: Position,
}

/// An initial value.
#[derive(Clone, PartialEq, Debug)]
pub enum Init {
    /// The bits of an integer.
    Int(u64),
    /// A float. `f64` represents it exactly.
    Float(f64),
    /// The address of a variable plus an offset; with `generic(..)` a generic address.
    Symbol {
        /// The variable.
        name: String,
        /// The offset in bytes.
        offset: i64,
        /// Whether the address is wrapped in `generic(..)`.
        generic: bool,
    },
    /// `0xff00(name)`: the bits of an address that the mask selects, shifted down to bit 0.
    Masked {
        /// The mask.
        mask: u64,
        /// The address: always an [`Init::Symbol`].
        symbol: Box<Init>,
    },
    /// `{ .. }`
    List(Vec<Init>),
}

/// `.entry` or `.func`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Whether the function is a kernel (`.entry`).
    pub is_kernel: bool,
    /// The linkage.
    pub linkage: Linkage,
    /// The name.
    pub name: String,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// The parameters: `.param`, or `.reg` for a `.func`. [`Space::Generic`] represents `.reg`.
    pub params: Vec<Variable>,
    /// Performance directives such as `.maxntid 128, 1, 1`, `.reqntid`, `.reqnctapercluster` and `.maxnreg`: the name without the dot, and
    /// the numbers.
    pub directives: Vec<(String, Vec<u64>)>,
    /// The body; `None` for a declaration.
    pub body: Option<Vec<Statement>>,
    /// The position of the declaration.
    pub position: Position,
}

/// A statement of a function body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// `.reg .b32 %a, %r<5>;`
    Registers {
        /// The type of the registers.
        ty: Type,
        /// Each name, with a count if the name has angle brackets: `%r<5>` declares `%r0` to `%r4`.
        names: Vec<(String, Option<u32>)>,
        /// The position.
        position: Position,
    },
    /// `.shared`, `.local`, `.param` and other variables in a body.
    Variable(Variable),
    /// `name:`
    Label(String, Position),
    /// `.loc file line column, function_name label, inlined_at file line column`; the name is ignored.
    Location {
        /// The source line of the next instructions.
        line: SourceLine,
        /// The call site, if the line belongs to an inlined function.
        inlined_at: Option<SourceLine>,
    },
    /// An instruction.
    Instruction(Instruction),
    /// `{ .. }`: names declared inside are local to the block.
    Block(Vec<Statement>),
    /// `name: .branchtargets a, b, c;`
    BranchTargets {
        /// The name of the table.
        name: String,
        /// The labels.
        targets: Vec<String>,
        /// The position.
        position: Position,
    },
    /// `name: .callprototype ..;`: only the name is stored.
    CallPrototype(String, Position),
}

/// An instruction, as written in the text.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// `@%p` or `@!%p`: the predicate, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// The opcode, before the first dot: `ld`, `cvta`, `wgmma`.
    pub opcode: String,
    /// The modifiers without their dots: `["global", "L2::128B", "v4", "f32"]`.
    pub modifiers: Vec<String>,
    /// The operands.
    pub operands: Vec<Operand>,
    /// The whole text of the instruction, for messages.
    pub text: String,
    /// The position of the instruction.
    pub position: Position,
}

/// An operand, as written in the text.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// A register, special register (`%tid.x`), label, function or variable; `_` is the sink.
    Name(String),
    /// `!%p`
    Not(String),
    /// `%p|%q`
    Pair(String, String),
    /// An integer, as 64 bits.
    Int(u64),
    /// `0f3F800000`: the bits of an `f32`.
    F32(u32),
    /// `0d3FF0000000000000` or a decimal float: the bits of an `f64`.
    F64(u64),
    /// `name+4`, outside brackets.
    Sum(String, i64),
    /// `[base+offset]`, `[base+offset, {x, y}]`.
    Address {
        /// The base.
        base: AddressBase,
        /// The offset in bytes.
        offset: i64,
        /// The operands after a comma, such as the coordinates of a tensor.
        coordinates: Vec<Operand>,
    },
    /// `{a, b, c, d}`
    Vector(Vec<Operand>),
    /// `(a, b)` in a call.
    List(Vec<Operand>),
}

/// The base of an address.
#[derive(Clone, PartialEq, Debug)]
pub enum AddressBase {
    /// A register or a variable.
    Name(String),
    /// A constant address.
    Absolute(u64),
}

macro_rules! types {
    ($($name:ident $text:literal $bits:literal),* $(,)?) => {
        /// A type of PTX: of a register, or of an instruction.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "the names are PTX's own")]
        pub enum Type { $($name),* }

        impl Type {
            /// The type with this name; the name is given without the dot.
            pub fn parse(text: &str) -> Option<Type> {
                Some(match text { $($text => Type::$name,)* _ => return None })
            }

            /// The number of bits of a value; 1 for a predicate.
            pub fn bits(self) -> u32 {
                match self { $(Type::$name => $bits),* }
            }
        }

        impl fmt::Display for Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Type::$name => concat!(".", $text)),* })
            }
        }
    };
}

types! {
    Pred "pred" 1,
    B8 "b8" 8, B16 "b16" 16, B32 "b32" 32, B64 "b64" 64, B128 "b128" 128,
    U8 "u8" 8, U16 "u16" 16, U32 "u32" 32, U64 "u64" 64,
    S8 "s8" 8, S16 "s16" 16, S32 "s32" 32, S64 "s64" 64,
    U16x2 "u16x2" 32, S16x2 "s16x2" 32,
    F16 "f16" 16, F16x2 "f16x2" 32, Bf16 "bf16" 16, Bf16x2 "bf16x2" 32,
    Tf32 "tf32" 32, F32 "f32" 32, F32x2 "f32x2" 64, F64 "f64" 64,
    E4m3 "e4m3" 8, E5m2 "e5m2" 8, E4m3x2 "e4m3x2" 16, E5m2x2 "e5m2x2" 16,
    U4 "u4" 4, S4 "s4" 4, B1 "b1" 1,
}

impl Type {
    /// The number of bytes in memory, rounded up.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether the type is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Whether the type is a floating-point type.
    pub fn is_float(self) -> bool {
        !matches!(
            self,
            Type::Pred
                | Type::B8
                | Type::B16
                | Type::B32
                | Type::B64
                | Type::B128
                | Type::U8
                | Type::U16
                | Type::U32
                | Type::U64
                | Type::S8
                | Type::S16
                | Type::S32
                | Type::S64
                | Type::U16x2
                | Type::S16x2
                | Type::U4
                | Type::S4
                | Type::B1
        )
    }
}
