//! The syntax tree of PTX: what the text says, before names are looked up.
//!
//! It follows the chapters "Syntax", "State Spaces, Types, and Variables" and "Directives" of NVIDIA's *PTX ISA*.

use std::fmt;

/// A place in the text of a module: line and column, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in bytes.
    pub column: u32,
}

/// A line of the source that a `.loc` names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SourceLine {
    /// The number that a `.file` gave the file; 0 if there was no `.loc` yet.
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

/// Where a variable lives, or what an access names.
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

/// `.visible`, `.extern` and their like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Linkage {
    /// Seen in the module only.
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
    /// Who may see it.
    pub linkage: Linkage,
    /// Where it lives.
    pub space: Space,
    /// `.align`, if written.
    pub align: Option<u32>,
    /// The element type.
    pub ty: Type,
    /// 1, 2 or 4 elements: `.v2`, `.v4`.
    pub vector: u32,
    /// Its name; parameters of a declaration may be `_`.
    pub name: String,
    /// The extent of each dimension, none for a scalar; the first may be unknown (`name[]`).
    pub extents: Vec<Option<u64>>,
    /// The initial value, nested as it is written; elements that are missing are 0.
    pub init: Option<Init>,
    /// Where it is declared.
    pub position: Position,
}

/// An initial value.
#[derive(Clone, PartialEq, Debug)]
pub enum Init {
    /// The bits of an integer.
    Int(u64),
    /// A float: exact in `f64`.
    Float(f64),
    /// The address of a variable plus an offset; with `generic(..)` a generic address.
    Symbol {
        /// The variable.
        name: String,
        /// Bytes to add.
        offset: i64,
        /// Was it written in `generic(..)`?
        generic: bool,
    },
    /// `0xff00(name)`: the bits of an address that the mask names, moved down to bit 0.
    Masked {
        /// The mask.
        mask: u64,
        /// The address: always [`Init::Symbol`].
        symbol: Box<Init>,
    },
    /// `{ .. }`
    List(Vec<Init>),
}

/// `.entry` or `.func`.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Is it a kernel (`.entry`)?
    pub is_kernel: bool,
    /// Who may see it.
    pub linkage: Linkage,
    /// Its name.
    pub name: String,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Parameters: `.param`, or `.reg` of a `.func` (then [`Space::Generic`] stands for the register).
    pub params: Vec<Variable>,
    /// `.maxntid 128, 1, 1`, `.reqntid`, `.reqnctapercluster`, `.maxnreg` and their like: the name without the dot, and the numbers.
    pub directives: Vec<(String, Vec<u64>)>,
    /// The body; none for a declaration.
    pub body: Option<Vec<Statement>>,
    /// Where it is declared.
    pub position: Position,
}

/// A statement of a body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// `.reg .b32 %a, %r<5>;`
    Registers {
        /// The type of them all.
        ty: Type,
        /// Each name, and its count if there are angle brackets: `%r<5>` names `%r0` to `%r4`.
        names: Vec<(String, Option<u32>)>,
        /// Where.
        position: Position,
    },
    /// `.shared`, `.local`, `.param` and other variables of a body.
    Variable(Variable),
    /// `name:`
    Label(String, Position),
    /// `.loc file line column, function_name label, inlined_at file line column`; the name is ignored.
    Location {
        /// The line that the next instructions come from.
        line: SourceLine,
        /// The line that calls the function which was inlined there.
        inlined_at: Option<SourceLine>,
    },
    /// An instruction.
    Instruction(Instruction),
    /// `{ .. }`: names declared inside are not seen outside.
    Block(Vec<Statement>),
    /// `name: .branchtargets a, b, c;`
    BranchTargets {
        /// The table's name.
        name: String,
        /// The labels.
        targets: Vec<String>,
        /// Where.
        position: Position,
    },
    /// `name: .callprototype ..;`: kept by name only.
    CallPrototype(String, Position),
}

/// One instruction as it is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// `@%p` or `@!%p`: the predicate, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// The word before the first dot: `ld`, `cvta`, `wgmma`.
    pub opcode: String,
    /// The words after it, without their dots: `["global", "L2::128B", "v4", "f32"]`.
    pub modifiers: Vec<String>,
    /// The operands.
    pub operands: Vec<Operand>,
    /// The whole text, for messages.
    pub text: String,
    /// Where it begins.
    pub position: Position,
}

/// An operand as it is written.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// A register, special register (`%tid.x`), label, function or variable; `_` is the sink.
    Name(String),
    /// `!%p`
    Not(String),
    /// `%p|%q`
    Pair(String, String),
    /// An integer: its 64 bits.
    Int(u64),
    /// `0f3F800000`: the bits of an `f32`.
    F32(u32),
    /// `0d3FF0000000000000` or a decimal float: the bits of an `f64`.
    F64(u64),
    /// `name+4`, outside of brackets.
    Sum(String, i64),
    /// `[base+offset]`, `[base+offset, {x, y}]`.
    Address {
        /// What stands first.
        base: AddressBase,
        /// Bytes to add.
        offset: i64,
        /// What stands after a comma, as the coordinates of a tensor.
        coordinates: Vec<Operand>,
    },
    /// `{a, b, c, d}`
    Vector(Vec<Operand>),
    /// `(a, b)`, of a call.
    List(Vec<Operand>),
}

/// What an address starts from.
#[derive(Clone, PartialEq, Debug)]
pub enum AddressBase {
    /// A register or a variable.
    Name(String),
    /// A number alone.
    Absolute(u64),
}

macro_rules! types {
    ($($name:ident $text:literal $bits:literal),* $(,)?) => {
        /// A type of PTX, of a register or of what an instruction does.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "the names are PTX's own")]
        pub enum Type { $($name),* }

        impl Type {
            /// The type that is written so, without the dot.
            pub fn parse(text: &str) -> Option<Type> {
                Some(match text { $($text => Type::$name,)* _ => return None })
            }

            /// Bits of a value; a predicate counts 1.
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
    /// Bytes in memory: a part of a byte counts as one.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Is it `.s8` to `.s64`?
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Is it a floating-point type?
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
