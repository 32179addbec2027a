//! The op table: every op of the IR, declared once.
//!
//! A row generates the enum's variant, its printer and parser, its operands and its line in the reference. [`super::rules`] has the type
//! rules; [`crate::scalar`] and the CPU backend have the semantics. Elementwise ops come in three families (one operand, two operands,
//! comparison), so that a backend handles a family at once.

use crate::ir::access::AccessKind;
use crate::ir::arena::{Region, Value};
use crate::ir::atomic::{AtomicOp, Scope, Semantics};
use crate::ir::constexpr::ConstExpr;
use crate::ir::fields::{Field, Parts, modifier};

/// The element types that an elementwise op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Integers, and floats of 16 bits and more.
    Number,
    /// Floats of 16 bits and more.
    Float,
    /// Floats of 16 bits.
    Float16,
    /// Integers.
    Int,
    /// Integers and `bool`.
    Bits,
    /// Every element type.
    Any,
}

impl Domain {
    /// Does the domain contain that dtype?
    pub fn contains(self, dtype: crate::dtype::Dtype) -> bool {
        match self {
            Domain::Number => dtype.is_int() || Domain::Float.contains(dtype),
            Domain::Float => dtype.is_float() && !dtype.is_float8(),
            Domain::Float16 => dtype.is_float() && dtype.bits() == 16,
            Domain::Int => dtype.is_int(),
            Domain::Bits => !dtype.is_float(),
            Domain::Any => true,
        }
    }

    /// The domain, as a phrase for error messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Domain::Number => "a number",
            Domain::Float => "a float",
            Domain::Float16 => "`f16` or `bf16`",
            Domain::Int => "an integer",
            Domain::Bits => "an integer or `bool`",
            Domain::Any => "any element type",
        }
    }
}

macro_rules! family {
    ($(#[$fdoc:meta])* $family:ident { $($(#[doc = $doc:literal])* $variant:ident = $name:literal : $domain:ident,)* }) => {
        $(#[$fdoc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $family { $($(#[doc = $doc])* $variant,)* }

        impl $family {
            /// Every member, in the order of the table.
            pub const ALL: &[$family] = &[$($family::$variant),*];

            /// The name in the text form and in the language.
            pub const fn name(self) -> &'static str {
                match self { $($family::$variant => $name,)* }
            }

            /// The element types it takes.
            pub const fn domain(self) -> Domain {
                match self { $($family::$variant => Domain::$domain,)* }
            }

            /// A description of the operation.
            pub const fn doc(self) -> &'static str {
                match self { $($family::$variant => concat!($($doc),*),)* }
            }

            /// The member of that name.
            pub fn from_name(name: &str) -> Option<$family> {
                $family::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

family! {
    /// An elementwise op of one operand; the result has the operand's type.
    UnaryOp {
        /// `-x`; the smallest signed integer stays unchanged.
        Neg = "neg": Number,
        /// Every bit inverted; logical not of a `bool`.
        Not = "not": Bits,
        /// The absolute value; the smallest signed integer stays unchanged.
        Abs = "abs": Number,
        /// e to the power of x.
        Exp = "exp": Float,
        /// 2 to the power of x.
        Exp2 = "exp2": Float,
        /// The natural logarithm.
        Log = "log": Float,
        /// The logarithm to base 2.
        Log2 = "log2": Float,
        /// The square root, correctly rounded.
        Sqrt = "sqrt": Float,
        /// One over the square root.
        Rsqrt = "rsqrt": Float,
        /// The sine of x in radians.
        Sin = "sin": Float,
        /// The cosine of x in radians.
        Cos = "cos": Float,
        /// The tangent of x in radians.
        Tan = "tan": Float,
        /// The hyperbolic tangent.
        Tanh = "tanh": Float,
        /// `1 / (1 + exp(-x))`.
        Sigmoid = "sigmoid": Float,
        /// The error function.
        Erf = "erf": Float,
        /// Rounded down to an integer.
        Floor = "floor": Float,
        /// Rounded up to an integer.
        Ceil = "ceil": Float,
        /// Rounded to the nearest integer, ties away from zero.
        Round = "round": Float,
        /// Rounded to the nearest integer, ties to even.
        Rint = "rint": Float,
        /// Rounded towards zero to an integer.
        Trunc = "trunc": Float,
        /// The device's approximation of `exp2` for `f32`; subnormal results are kept.
        ExpApprox2 = "exp2_approx": Float,
        /// The same in fewer instructions: for `f32`, results below 2^-126 are zero.
        ExpApproxFtz2 = "exp2_approx_ftz": Float,
        /// The device's approximation of `log2` for `f32`.
        LogApprox2 = "log2_approx": Float,
        /// The device's approximation of `1 / x` for `f32`, within 1 ulp; subnormal operands and results may be treated as zero.
        RecipApprox = "recip_approx": Float,
        /// The device's approximation of `1 / sqrt(x)` for `f32`, within 2 ulp.
        RsqrtApprox = "rsqrt_approx": Float,
        /// The device's approximation of the square root for `f32`, within 1 ulp.
        SqrtApprox = "sqrt_approx": Float,
        /// The device's approximation of the sine for `f32`: an absolute error of 2^-20.5 for |x| <= pi, larger beyond.
        SinApprox = "sin_approx": Float,
        /// The device's approximation of the cosine for `f32`, with the error of `sin_approx`.
        CosApprox = "cos_approx": Float,
        /// The device's approximation of the hyperbolic tangent for `f32`: a relative error of 2^-11.
        TanhApprox = "tanh_approx": Float,
        /// The number of 1 bits.
        Popc = "popc": Int,
        /// The number of 0 bits above the highest 1 bit; the width if no bit is 1.
        Clz = "clz": Int,
        /// The bits in reverse order.
        Brev = "brev": Int,
    }
}

family! {
    /// An elementwise op of two operands of one type; the result has that type.
    BinaryOp {
        /// Sum; integers wrap.
        Add = "add": Number,
        /// Difference; integers wrap.
        Sub = "sub": Number,
        /// Product; integers wrap.
        Mul = "mul": Number,
        /// Quotient: correctly rounded, or truncated for integers; an integer divided by zero is 0.
        Div = "div": Number,
        /// Remainder with the sign of the dividend; an integer modulo zero is itself.
        Rem = "rem": Number,
        /// Bitwise and, logical and of `bool`.
        And = "and": Bits,
        /// Bitwise or, logical or of `bool`.
        Or = "or": Bits,
        /// Bitwise exclusive or.
        Xor = "xor": Bits,
        /// Bits shifted left; 0 for shifts by the width or more.
        Shl = "shl": Int,
        /// Bits shifted right, arithmetically if signed; all sign bits for shifts by the width or more.
        Shr = "shr": Int,
        /// The minimum; if one operand is NaN, the other one.
        Min = "min": Number,
        /// The maximum; if one operand is NaN, the other one.
        Max = "max": Number,
        /// The upper half of the product at twice the width.
        MulHigh = "mul_high": Int,
        /// The magnitude of the left operand with the sign bit of the right one, also for NaN and zero.
        CopySign = "copysign": Float,
        /// The device's approximation of the quotient for `f32`, within 2 ulp; subnormal operands and results may be treated as zero.
        DivApprox = "div_approx": Float,
    }
}

impl BinaryOp {
    /// Is the result the same with the operands exchanged?
    pub fn is_commutative(self) -> bool {
        matches!(self, BinaryOp::Add | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Min | BinaryOp::Max)
    }
}

family! {
    /// A comparison; the result is `bool`. Only `ne` is true when an operand is NaN.
    CompareOp {
        /// Equal.
        Eq = "eq": Any,
        /// Not equal.
        Ne = "ne": Any,
        /// Less.
        Lt = "lt": Any,
        /// Less or equal.
        Le = "le": Any,
        /// Greater.
        Gt = "gt": Any,
        /// Greater or equal.
        Ge = "ge": Any,
    }
}

impl CompareOp {
    /// The comparison that holds for `(b, a)` when this one holds for `(a, b)`.
    #[must_use]
    pub fn swapped(self) -> CompareOp {
        match self {
            CompareOp::Eq | CompareOp::Ne => self,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
        }
    }
}

modifier! {
    /// Cache operator of a load or store (PTX ISA, "Cache Operators").
    Cache {
        /// The hardware's default.
        Default = "",
        /// Load: cache at all levels.
        All = "ca",
        /// Cache in the L2 only.
        Global = "cg",
        /// Streaming: probably accessed once.
        Streaming = "cs",
        /// Load: bypass the caches and read memory again.
        Volatile = "cv",
        /// Store: write back at all levels.
        WriteBack = "wb",
        /// Store: write through the L2.
        WriteThrough = "wt",
    }
}

modifier! {
    /// Eviction priority in the caches (PTX ISA, "Cache Eviction Priority Hints").
    Evict {
        /// None is named: the compiler chooses one.
        Unset = "",
        /// The hardware's default.
        Normal = "evict_normal",
        /// Evict early.
        First = "evict_first",
        /// Evict early if the tensors of all accesses with this priority are small together, which the launch decides. Only the compiler chooses it, for loads through
        /// pointers that are parameters.
        FirstIfSmall = "evict_first_if_small",
        /// Evict late.
        Last = "evict_last",
        /// Do not allocate it in the L1.
        NoAllocate = "no_allocate",
    }
}

modifier! {
    /// The threads that read an element that several threads hold.
    Reader {
        /// Each holder: nothing writes the tensor.
        Each = "each",
        /// The owner, and the other holders do not use the value.
        Owner = "owner",
        /// The owner, which broadcasts the value to the other holders.
        Broadcast = "broadcast",
    }
}

modifier! {
    /// How exactly a `dot` multiplies `f32`.
    Precision {
        /// Each product is added to its sum with one rounding.
        Ieee = "ieee",
        /// Operands are rounded to 10 bits of fraction, ties away from zero. Their products are exact.
        Tf32 = "tf32",
        /// Each operand is the sum of two such numbers. Of their four products, the smallest is left out.
        Tf32x3 = "tf32x3",
    }
}

macro_rules! define_ops {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal { $($field:ident: $ty:ty),* $(,)? },)*) => {
        /// One op: its operands, attributes and regions. The function holds its results and source position.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Op {
            /// An elementwise op of one operand, printed under the operation's name.
            Unary {
                /// The operation.
                op: UnaryOp,
                /// The operand.
                x: Value,
            },
            /// An elementwise op of two operands, printed under the operation's name.
            Binary {
                /// The operation.
                op: BinaryOp,
                /// The left operand.
                lhs: Value,
                /// The right operand.
                rhs: Value,
            },
            /// A comparison, printed under the operation's name.
            Compare {
                /// The operation.
                op: CompareOp,
                /// The left operand.
                lhs: Value,
                /// The right operand.
                rhs: Value,
            },
            $($(#[doc = $doc])* #[allow(missing_docs, reason = "the row's doc speaks of its fields")] $variant { $($field: $ty),* },)*
        }

        impl Op {
            /// Names and docs of the ops outside the elementwise families, in the order of the table.
            pub const TABLE: &[(&str, &str)] = &[$(($name, concat!($($doc, "\n"),*))),*];

            /// The name in the text form.
            pub fn name(&self) -> &'static str {
                match self {
                    Op::Unary { op, .. } => op.name(),
                    Op::Binary { op, .. } => op.name(),
                    Op::Compare { op, .. } => op.name(),
                    $(Op::$variant { .. } => $name,)*
                }
            }

            /// Splits the op into parts for the printer.
            pub fn to_parts(&self) -> Parts {
                let mut parts = Parts::default();
                match self {
                    Op::Unary { x, .. } => parts.operands.push(*x),
                    Op::Binary { lhs, rhs, .. } | Op::Compare { lhs, rhs, .. } => parts.operands.extend([*lhs, *rhs]),
                    $(Op::$variant { $($field),* } => { $($field.print(stringify!($field), &mut parts);)* })*
                }
                parts
            }

            /// Builds an op from the parts that the parser read.
            ///
            /// # Errors
            /// An unknown name, and missing, superfluous or mistyped fields.
            pub fn from_parts(name: &str, mut parts: Parts) -> Result<Op, String> {
                let op = if let Some(op) = UnaryOp::from_name(name) {
                    Op::Unary { op, x: Value::parse("x", &mut parts)? }
                } else if let Some(op) = BinaryOp::from_name(name) {
                    Op::Binary { op, lhs: Value::parse("lhs", &mut parts)?, rhs: Value::parse("rhs", &mut parts)? }
                } else if let Some(op) = CompareOp::from_name(name) {
                    Op::Compare { op, lhs: Value::parse("lhs", &mut parts)?, rhs: Value::parse("rhs", &mut parts)? }
                } else {
                    match name {
                        $($name => Op::$variant { $($field: <$ty as Field>::parse(stringify!($field), &mut parts)?),* },)*
                        _ => return Err(format!("there is no op `{name}`")),
                    }
                };
                if !parts.operands.is_empty() || !parts.regions.is_empty() {
                    return Err(format!("`{name}` has too many operands or regions"));
                }
                let left = parts.attributes.first().map(|(name, _)| name).or(parts.named.first().map(|(name, _)| name));
                left.map_or(Ok(op), |left| Err(format!("`{name}` has no attribute `{left}`")))
            }

            /// Calls `visit` with each operand.
            pub fn for_each_operand(&self, visit: &mut dyn FnMut(Value)) {
                match self {
                    Op::Unary { x, .. } => visit(*x),
                    Op::Binary { lhs, rhs, .. } | Op::Compare { lhs, rhs, .. } => {
                        visit(*lhs);
                        visit(*rhs);
                    }
                    $(Op::$variant { $($field),* } => {
                        $(if const { <$ty as Field>::HAS_VALUES } { Field::values($field, visit); })*
                    })*
                }
            }

            /// Replaces each operand.
            pub fn map_operands(&mut self, map: &mut dyn FnMut(Value) -> Value) {
                match self {
                    Op::Unary { x, .. } => *x = map(*x),
                    Op::Binary { lhs, rhs, .. } | Op::Compare { lhs, rhs, .. } => {
                        *lhs = map(*lhs);
                        *rhs = map(*rhs);
                    }
                    $(Op::$variant { $($field),* } => {
                        $(if const { <$ty as Field>::HAS_VALUES } { Field::map_values($field, map); })*
                    })*
                }
            }

            /// Does it contain other ops?
            #[inline]
            pub fn has_regions(&self) -> bool {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => false,
                    $(Op::$variant { .. } => const { false $(|| <$ty as Field>::IS_REGION)* },)*
                }
            }

            /// Calls `visit` with each region.
            pub fn for_each_region(&self, visit: &mut dyn FnMut(Region)) {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => {}
                    $(Op::$variant { $($field),* } => {
                        $(if const { <$ty as Field>::IS_REGION } { Field::regions($field, visit); })*
                    })*
                }
            }

            /// Replaces each region.
            pub fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => {}
                    $(Op::$variant { $($field),* } => {
                        $(if const { <$ty as Field>::IS_REGION } { Field::map_regions($field, map); })*
                    })*
                }
            }

            /// Replaces each constant expression.
            ///
            /// # Errors
            /// The errors of `map`.
            pub fn map_constants(&mut self, map: &mut dyn FnMut(&ConstExpr) -> Result<ConstExpr, String>) -> Result<(), String> {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => {}
                    $(Op::$variant { $($field),* } => { $(Field::map_constants($field, map)?;)* })*
                }
                Ok(())
            }
        }
    };
}

/// The length, in elements, that a tensor of unknown length counts as: more than any memory holds.
pub const UNKNOWN_LENGTH: i64 = 1 << 48;

define_ops! {
    /// A constant: a scalar, or a tile whose elements all have that value.
    Const = "const" { value: ConstExpr },
    /// The index of this program along `axis` (0, 1 or 2) of the grid, as `i64`.
    ProgramId = "program_id" { axis: u32 },
    /// The number of programs along `axis` of the grid, as `i64`.
    NumPrograms = "num_programs" { axis: u32 },
    /// `[start, start + 1, .., end - 1]` as a tile of `i64`.
    Arange = "arange" { start: ConstExpr, end: ConstExpr },
    /// Repeats `x` along every axis that it lacks or has with extent 1: a scalar to a tile, `[64, 1]` to `[64, 32]`.
    Broadcast = "broadcast" { x: Value },
    /// Adds an axis of extent 1 at position `axis`.
    ExpandDims = "expand_dims" { x: Value, axis: u32 },
    /// The same elements in row-major order, in another shape with as many elements.
    Reshape = "reshape" { x: Value },
    /// Permutes the axes: axis `i` of the result is axis `order[i]` of `x`, so `[1, 0]` transposes.
    Permute = "permute" { x: Value, order: Vec<u32> },
    /// Reverses the elements along `axis`.
    Flip = "flip" { x: Value, axis: u32 },
    /// Combines the elements along `axis`, which the results lack; one result per input, all inputs have one shape. The region combines two
    /// adjacent runs: its parameters are, as scalars, the earlier run's result for each input, then the later run's; it yields the result
    /// of both. It must be associative: how runs are split is fixed but unspecified. Earlier and later runs are never exchanged.
    /// The region contains pure scalar ops only, and may use scalars from outside.
    Reduce = "reduce" { inputs: Vec<Value>, axis: u32, combine: Region },
    /// As `reduce`, of every prefix along `axis`, up to and including each element: results have the shape of the inputs. With
    /// `reverse` the order is from the last element to the first, so that the earlier run is the one at the higher indices.
    Scan = "scan" { inputs: Vec<Value>, axis: u32, reverse: bool, combine: Region },
    /// Elements of `src` by their index along `axis`; along the other axes each keeps its own index. The result has the shape of `index`,
    /// a tile of `i64` with the extents of `src` except along `axis`. An index out of range gives 0.
    Gather = "gather" { src: Value, index: Value, axis: u32 },
    /// The sum of `acc` and the matrix product of `a` and `b`: of `[m, k]` and `[k, n]`, as a tile `[m, n]` of the type of `acc`. With a further axis in front of
    /// them, as many products. [`super::product::sums`] says which types there are. The order of the additions is unspecified.
    Dot = "dot" { a: Value, b: Value, acc: Value, precision: Precision },
    /// Counts the integers equal to 0, 1, .., `bins - 1` where the mask holds, as a tile of `i32`.
    Histogram = "histogram" { x: Value, mask: Option<Value>, bins: ConstExpr },
    /// Sorts the elements along the last axis, and gives the first `count`, or all of them. Floats have the order of IEEE 754's `totalOrder`.
    /// Only in kernels without layouts.
    Sort = "sort" { x: Value, descending: bool, count: Option<Box<ConstExpr>> },
    /// The element whose index along `axis` differs in bit number `bit`.
    Butterfly = "butterfly" { x: Value, axis: u32, bit: u32 },
    /// The same tile in another layout. Only in kernels that have layouts.
    Convert = "convert" { x: Value },
    /// `a * b + c`, rounded once.
    Fma = "fma" { a: Value, b: Value, c: Value },
    /// `on_true` where `cond` holds, else `on_false`.
    Select = "select" { cond: Value, on_true: Value, on_false: Value },
    /// Converts each element as Rust's `as` does.
    Cast = "cast" { x: Value },
    /// Reinterprets each element's bits as another element type of the same width.
    Bitcast = "bitcast" { x: Value },
    /// Splits an `f32` angle: the first result is `x` minus the nearest multiple of pi/2, in [-pi/4, pi/4] and exact to `f32`;
    /// the second, an `i32`, is the number of that multiple modulo 4.
    ReducePio2 = "reduce_pio2" { x: Value },
    /// PTX that runs once for `pack` elements of each input and result, or for one if `pack` is 0. The placeholders `{0}`, `{1}`, .. of the
    /// `text` are the registers of the results and then of the inputs, see [`crate::ir::assembly`]; all have one shape. Unless `volatile`,
    /// it is pure. `isa` is ten times the PTX ISA version that it needs, or 0. Only in kernels for a GPU: those for the CPU take the
    /// other branch of a `static_if`.
    InlinePtx = "inline_ptx" { inputs: Vec<Value>, text: String, pack: u32, isa: u32, volatile: bool },
    /// Elements at `base + offset` (offsets count elements). Elements whose `mask` is false or that lie outside the tensor read as `other`,
    /// or 0. `align` is 0, or the access width in bytes: along the contiguous axis, each run of that many bytes has one mask, and an unmasked
    /// run starts at a multiple of `align`. With `partial`, the mask may also hold for only the first elements of a run. The whole run is then
    /// inside the tensor, which no program writes. `in_bounds` states that no unmasked element is outside the tensor. A `shifted` access belongs to
    /// a tile that begins at the last multiple of 16 bytes at or before its row, so it may also be partial at the start of the row: its mask keeps at least
    /// one end of each run of which it keeps an element. `reader` says which threads read, only in kernels with layouts: see
    /// `passes::choose_readers`.
    Load = "load" {
        base: Value, offset: Value, mask: Option<Value>, other: Option<Value>,
        cache: Cache, evict: Evict, volatile: bool, in_bounds: bool, align: u32, partial: bool, shifted: bool, reader: Reader,
    },
    /// Stores `value` at `base + offset`. Elements whose `mask` is false or that lie outside the tensor are not stored. Attributes as in
    /// `load`, but elements of a partial run that the mask excludes may be outside the tensor.
    Store = "store" {
        base: Value, offset: Value, value: Value, mask: Option<Value>,
        cache: Cache, evict: Evict, in_bounds: bool, align: u32, partial: bool, shifted: bool,
    },
    /// Updates each element at `base + offset` atomically by `op`, and gives its old value. Two updates of one element happen one after the
    /// other. Elements whose `mask` is false or that lie outside the tensor are not accessed and give 0. `values` are the operands of `op`;
    /// a `store` has no result. `align` is as in `load`, and not 0 only if
    /// [`AtomicOp::has_vectors`] holds.
    Atomic = "atomic" {
        base: Value, offset: Value, values: Vec<Value>, op: AtomicOp, mask: Option<Value>,
        sem: Semantics, scope: Scope, in_bounds: bool, align: u32,
    },
    /// A ring buffer of `slots` tiles in shared memory. The result has the type of one tile and only names the buffer. Each thread has slots
    /// of its own for the elements that it holds in the result's layout. If the slots are `common`, all threads of the CTA have the same slots: each thread copies the
    /// elements that it holds in that layout, and reads elements that other threads have copied. The buffer is freed after the last op that names it.
    /// This op and the next four are only in kernels for a GPU.
    AsyncBuffer = "async_buffer" { slots: u32, common: bool },
    /// If the scalar `on` is true, starts an asynchronous copy of the elements at `base + offset` to slot number `slot` of an async buffer;
    /// elements whose `mask` is false become 0. Every element is in bounds or masked. The other attributes are as in `load`, but a `partial` copy may be
    /// partial at both ends of its row, and leaves whole runs in the buffer. Unless `reader` is `each`, only the owner of an element copies it.
    AsyncCopy = "async_copy" {
        buffer: Value, slot: Value, on: Value, base: Value, offset: Value, mask: Option<Value>,
        cache: Cache, evict: Evict, align: u32, partial: bool, reader: Reader,
    },
    /// Groups the copies since the last commit.
    AsyncCommitGroup = "async_commit_group" {},
    /// Waits until all groups but the last `pending` have completed.
    AsyncWait = "async_wait" { pending: u32 },
    /// Reads the elements in slot number `slot` of an async buffer; their copies have completed. If these were `partial`, `mask` is theirs, and the elements
    /// that it excludes read as 0. The `reader` is that of a load at this position from the tensor of the copies. Of `common` slots, it reads the part of the tile that
    /// begins at the index `first` and has the extents of the result, in any layout. Other slots have no `first`.
    LocalLoad = "local_load" { buffer: Value, slot: Value, mask: Option<Value>, reader: Reader, first: Option<Vec<u32>> },
    /// All `loads`, which are results of `load`, are issued before an op behind this one begins. Only in kernels that have layouts.
    IssueLoads = "issue_loads" { loads: Vec<Value> },
    /// Does `mask` hold for an element of any thread of the warp? The scalar may differ between warps, so it is only the condition of an `if` in whose
    /// regions no thread waits for another. Only in kernels that have layouts.
    AnyInWarp = "any_in_warp" { mask: Value },
    /// The number of this CTA in a launch with one axis, as `i64`. In a persistent kernel, CTAs share the programs of a grid. This op and the following ones are
    /// only in kernels for a GPU.
    Worker = "worker" {},
    /// The number of CTAs of such a launch, as `i64`.
    NumWorkers = "num_workers" {},
    /// This version of the kernel runs only launches for which the launch value `cond` is true.
    RunsIf = "runs_if" { cond: Value },
    /// Runs `producer` in one thread of a warpgroup of its own, and `consumer` in all threads of the schedule, at the same time. The producer has only
    /// scalars.
    Roles = "roles" { producer: Region, consumer: Region },
    /// A queue of `slots` groups of blocks in shared memory, from the producer to the consumer. Each result names one block of every slot. Both sides use the slots in
    /// the same order, over and over.
    Ring = "ring" { slots: u32 },
    /// In the producer: waits until the next slot of a ring is free. The ring is named by one of its results.
    RingAcquire = "ring_acquire" { ring: Value },
    /// In the producer: copies a block of a tensor to the slot that was acquired last, asynchronously. `block` is a result of the ring. `address` is
    /// that of the tensor. `place` has three parts, each with a number for each axis: the index of the first element, the extents of the tensor, and its strides in
    /// elements. A third axis is one along which the block has one element. Elements outside of the extents become 0. Address, extents and strides are launch values, and the
    /// stride of neighbours is the constant 1. `evict` is the priority in the L2; if it is not set and `once` is true, the kernel reads the elements once, and they leave the
    /// L2 first. If `tf32`, elements of `f32` are rounded to the nearest of `tf32`.
    CopyBlock = "copy_block" { block: Value, base: Value, address: Value, place: Vec<Value>, once: Option<Value>, evict: Evict, tf32: bool },
    /// In the consumer: stores a tile in a block of a tensor, asynchronously, through shared memory. `value` has the layout of a product's accumulators, of one that is
    /// swapped if the store is. `address` and `place` are as in `copy_block`; elements outside of the extents are not stored. The kernel accesses the tensor nowhere
    /// else, and a row has a multiple of 16 bytes.
    StoreBlock = "store_block" { base: Value, value: Value, address: Value, place: Vec<Value>, swapped: bool },
    /// In the consumer: waits until all copies to the next slot of a ring have arrived, and gives the blocks of the slot.
    RingWait = "ring_wait" { ring: Value },
    /// In the consumer: the elements of a block of `ring_wait`, as a tile.
    ReadBlock = "read_block" { block: Value },
    /// In the consumer: frees the slot of a result of `ring_wait`.
    RingRelease = "ring_release" { block: Value },
    /// In the consumer: waits until all products in flight but the last `products` have ended, and frees the slot before that of a result of `ring_wait`, if it is
    /// not free.
    RingReleasePrevious = "ring_release_previous" { block: Value, products: u32 },
    /// As `dot`, of blocks in shared memory, by warpgroups. Results and accumulators have the layout of the instruction, which divides rows among warps. If `swapped`, the
    /// instruction computes the transpose from the transposed operands in the other order, and so divides columns: for tiles with few rows. The first operand of the
    /// instruction may be a tile, which is in registers. Blocks of `f32` have been rounded to `tf32`, and elements of a tile are rounded. If `in_flight`, the op does not
    /// wait for its product, and no op but another product in flight and a `warpgroup_wait` may use its result.
    WarpgroupDot = "warpgroup_dot" { a: Value, b: Value, acc: Value, swapped: bool, in_flight: bool },
    /// In the consumer: waits until all products in flight have ended, frees the slot of the ring that is not free, if there is one, and gives the sums.
    WarpgroupWait = "warpgroup_wait" { ring: Value, sums: Vec<Value> },
    /// Waits for all threads of the program: after it, every thread sees what any thread stored before it.
    Barrier = "barrier" {},
    /// The `threads` threads with the same numbers of the CTA, or those of all CTAs of the program, wait for each other at barrier `id`. The compiler places it. Only in
    /// kernels with layouts.
    SyncThreads = "sync_threads" { id: u32, threads: u32 },
    /// Waits until the previous launch has completed and its stores are visible. Only launches that overlap with the previous one wait.
    GdcWait = "gdc_wait" {},
    /// Allows the next launch to begin, if it overlaps, once every program has executed this op or has ended.
    GdcLaunchDependents = "gdc_launch_dependents" {},
    /// Reports the first element, if any, where `outside` holds, as an access of `base` at `offset` of that `kind`: see
    /// `passes::report_accesses`.
    Report = "report" { base: Value, offset: Value, outside: Value, kind: AccessKind },
    /// The length of a pointer's tensor in elements, as `i64`.
    Length = "length" { base: Value },
    /// The address of a pointer, as `i64`.
    Address = "address" { base: Value },
    /// A pointer to an arbitrary address, an `i64` scalar. Its tensor counts as [`UNKNOWN_LENGTH`] elements.
    Pointer = "pointer" { address: Value },
    /// The tensor of `base` as unsigned integers that are two, four or eight times as wide. The element with the lowest index is in the lowest bits.
    /// Elements at the end that fill no integer are not in it. The address of `base` is a multiple of the width. Only in kernels for a GPU.
    View = "view" { base: Value },
    /// Runs `then_region` if the scalar `cond` is true, else `else_region`; the results are the values that the region yields. If that is `rare`, few
    /// launches run the else region: its code is to need few registers, and not to be fast.
    If = "if" { cond: Value, then_region: Region, else_region: Region, rare: bool },
    /// Runs `body` for each scalar from `lower` up to but not including `upper`. The body's parameters are the index and the carried
    /// values; it yields the next carried values; the results are the last ones. Nothing runs if `step` is not positive. `num_stages` is the
    /// number of iterations in flight, all but one of which only load; without it, the compiler chooses. `unroll` iterations are unrolled. A
    /// `remainder` loop was split off by a pass: it runs the iterations that the loop before it leaves. A `guarded` loop is the version of a loop
    /// for rows that are not aligned: it accesses tiles element by element, and the region that contains it has layouts of its own.
    For = "for" {
        lower: Value, upper: Value, step: Value, init: Vec<Value>, body: Region,
        num_stages: Option<Box<ConstExpr>>, unroll: Option<Box<ConstExpr>>, remainder: bool, guarded: bool,
    },
    /// Runs `test`, which ends in `condition`; while that is true, runs `body`, which yields the next values of `test`'s parameters.
    While = "while" { init: Vec<Value>, test: Region, body: Region },
    /// The scalars that the region yields. They depend only on the kernel's parameters and on the grid, so the host computes them at launch: see
    /// [`crate::launch_value`]. In the region and in front of it, only ops for which [`Op::is_known_at_launch`] holds compute them. A scalar that
    /// depends on program ids is a `bool`. Only in kernels for a GPU.
    LaunchValue = "launch_value" { compute: Region },
    /// The tiles that `body` yields. The body has elementwise ops on tiles of one layout. Where `mask` does not hold, all elements of each tile that it takes from
    /// outside are equal, and so are those that it yields. A warp executes the body for `group` elements of each thread at a time. Of a group in which the mask
    /// holds for no element of any of its threads, it computes one element. Only in kernels that have layouts.
    IfAny = "if_any" { mask: Value, group: u32, body: Region },
    /// As `if`, decided by specialisation; the other region is dropped unchecked.
    StaticIf = "static_if" { cond: ConstExpr, then_region: Region, else_region: Region },
    /// In a checked launch: fails with this message if the scalar `cond` is false. If `assumed`, other launches may take `cond` to be true.
    Assert = "assert" { cond: Value, message: String, assumed: bool },
    /// Unrolled by specialisation: repeats `body` for each constant from `start` up to but not including `end`, bound to the name `index`.
    /// The body's parameters are the carried values; it yields the next ones; the results are the last ones.
    StaticFor = "static_for" { index: String, start: Box<ConstExpr>, end: Box<ConstExpr>, step: Box<ConstExpr>, init: Vec<Value>, body: Region },
    /// An error with this message if `cond` is false at specialisation.
    StaticAssert = "static_assert" { cond: ConstExpr, message: String },
    /// Prints a [template](crate::ir::template) with these values at compile time.
    StaticPrint = "static_print" { format: String, values: Vec<ConstExpr> },
    /// Prints a template at run time, once for each element of the `values`, which have one shape. Only in generic kernels:
    /// specialised ones write into a buffer. `site` is the number of the `device_print!` in the source.
    Print = "print" { values: Vec<Value>, format: String, site: u32 },
    /// Ends a region with its results.
    Yield = "yield" { values: Vec<Value> },
    /// Ends the test of a `while`: continues if `cond` is true. `values` go to the body and, at the end, are the results.
    Condition = "condition" { cond: Value, values: Vec<Value> },
    /// Ends the kernel.
    Return = "return" {},
}

// Passes copy ops, and a kernel has hundreds of them. With 160 bytes an op, compilation takes 5 % longer.
const _: () = assert!(size_of::<Op>() <= 80);
