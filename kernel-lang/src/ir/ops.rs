//! THE OP TABLE: every op of the IR, declared once.
//!
//! From a row follow the enum's variant, its text form both ways, its operands and its line in the reference.
//! What an op's types must be stands in [`super::rules`]; what it computes, in [`crate::scalar`] and the CPU backend.
//! Elementwise ops come in three families (one, two operands, comparison) so that a backend handles a family at once.

use crate::ir::access::AccessKind;
use crate::ir::arena::{Region, Value};
use crate::ir::atomic::{AtomicOp, Scope, Semantics};
use crate::ir::constexpr::ConstExpr;
use crate::ir::fields::{Field, Parts, modifier};

/// Which element types an elementwise op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Integers and floats of 16 bits and more.
    Number,
    /// Floats of 16 bits and more.
    Float,
    /// Integers.
    Int,
    /// Integers and `bool`.
    Bits,
    /// Every element type.
    Any,
}

impl Domain {
    /// Does it hold that dtype?
    pub fn contains(self, dtype: crate::dtype::Dtype) -> bool {
        match self {
            Domain::Number => dtype.is_int() || Domain::Float.contains(dtype),
            Domain::Float => dtype.is_float() && !dtype.is_float8(),
            Domain::Int => dtype.is_int(),
            Domain::Bits => !dtype.is_float(),
            Domain::Any => true,
        }
    }

    /// What a message calls its members.
    pub const fn words(self) -> &'static str {
        match self {
            Domain::Number => "a number",
            Domain::Float => "a float",
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

            /// What it computes.
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
        /// `-x`; the smallest integer stays itself.
        Neg = "neg": Number,
        /// Every bit inverted; logical not of a `bool`.
        Not = "not": Bits,
        /// The absolute value; the smallest integer stays itself.
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
        /// Rounded to the nearest integer, halves away from zero.
        Round = "round": Float,
        /// Rounded to the nearest integer, halves to the even one.
        Rint = "rint": Float,
        /// Rounded towards zero to an integer.
        Trunc = "trunc": Float,
        /// The device's own approximation of `exp2` for `f32`; subnormal results are kept.
        ExpApprox2 = "exp2_approx": Float,
        /// The same in fewer instructions: of `f32`, results below 2^-126 are zero.
        ExpApproxFtz2 = "exp2_approx_ftz": Float,
        /// The device's own approximation of `log2` for `f32`.
        LogApprox2 = "log2_approx": Float,
        /// The device's own approximation of `1 / x` for `f32`, within 1 ulp; subnormal operands and results may count as zero.
        RecipApprox = "recip_approx": Float,
        /// The device's own approximation of `1 / sqrt(x)` for `f32`, within 2 ulp.
        RsqrtApprox = "rsqrt_approx": Float,
        /// The device's own approximation of the square root for `f32`, within 1 ulp.
        SqrtApprox = "sqrt_approx": Float,
        /// The device's own approximation of the sine for `f32`: within 2^-20.5 for |x| <= pi, less far from it.
        SinApprox = "sin_approx": Float,
        /// The device's own approximation of the cosine for `f32`, as that of the sine.
        CosApprox = "cos_approx": Float,
        /// The device's own approximation of the hyperbolic tangent for `f32`: a relative error of 2^-11.
        TanhApprox = "tanh_approx": Float,
        /// How many bits are 1.
        Popc = "popc": Int,
        /// How many bits are 0 before the highest 1; all, if none is 1.
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
        /// Quotient: correctly rounded, or truncated for integers; an integer over zero is 0.
        Div = "div": Number,
        /// Remainder with the sign of the dividend; an integer modulo zero is itself.
        Rem = "rem": Number,
        /// Bitwise and, logical and of `bool`.
        And = "and": Bits,
        /// Bitwise or, logical or of `bool`.
        Or = "or": Bits,
        /// Bitwise exclusive or.
        Xor = "xor": Bits,
        /// Bits shifted left; 0 when shifted by the width or more.
        Shl = "shl": Int,
        /// Bits shifted right, arithmetically if signed; all sign bits when shifted by the width or more.
        Shr = "shr": Int,
        /// The smaller; the other one if one is NaN.
        Min = "min": Number,
        /// The larger; the other one if one is NaN.
        Max = "max": Number,
        /// The upper half of the product at twice the width.
        MulHigh = "mul_high": Int,
        /// The magnitude of the left with the sign bit of the right, of NaN and zero too.
        CopySign = "copysign": Float,
        /// The device's own approximation of the quotient for `f32`, within 2 ulp; subnormal operands and results may count as zero.
        DivApprox = "div_approx": Float,
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
    /// The comparison that holds of `(b, a)` when this one holds of `(a, b)`.
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
    /// Where a load or a store is cached (PTX ISA, "Cache Operators").
    Cache {
        /// As the hardware does by itself.
        Default = "",
        /// A load: all levels.
        All = "ca",
        /// The L2 only.
        Global = "cg",
        /// Streaming: likely touched once.
        Streaming = "cs",
        /// A load: fetch again, do not trust the cache.
        Volatile = "cv",
        /// A store: write back at all levels.
        WriteBack = "wb",
        /// A store: write through the L2.
        WriteThrough = "wt",
    }
}

modifier! {
    /// Which data the caches may give up first (PTX ISA, "Cache Eviction Priority Hints").
    Evict {
        /// As the hardware does by itself.
        Normal = "",
        /// Give it up early.
        First = "evict_first",
        /// Keep it long.
        Last = "evict_last",
        /// Do not allocate it in the L1.
        NoAllocate = "no_allocate",
    }
}

macro_rules! define_ops {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal { $($field:ident: $ty:ty),* $(,)? },)*) => {
        /// One op: its operands, attributes and regions. Its results and its place stand in the function.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Op {
            /// An elementwise op of one operand, under its own name.
            Unary {
                /// Which one.
                op: UnaryOp,
                /// The operand.
                x: Value,
            },
            /// An elementwise op of two operands, under its own name.
            Binary {
                /// Which one.
                op: BinaryOp,
                /// The left operand.
                lhs: Value,
                /// The right operand.
                rhs: Value,
            },
            /// A comparison, under its own name.
            Compare {
                /// Which one.
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

            /// Takes the op apart for the printer.
            pub fn to_parts(&self) -> Parts {
                let mut parts = Parts::default();
                match self {
                    Op::Unary { x, .. } => parts.operands.push(*x),
                    Op::Binary { lhs, rhs, .. } | Op::Compare { lhs, rhs, .. } => parts.operands.extend([*lhs, *rhs]),
                    $(Op::$variant { $($field),* } => { $($field.print(stringify!($field), &mut parts);)* })*
                }
                parts
            }

            /// Puts an op together from what the parser read.
            ///
            /// # Errors
            /// An unknown name, and fields that are missing, too many or of the wrong kind.
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
                    Op::Binary { lhs, rhs, .. } | Op::Compare { lhs, rhs, .. } => [*lhs, *rhs].into_iter().for_each(visit),
                    $(Op::$variant { $($field),* } => { $(Field::values($field, visit);)* })*
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
                    $(Op::$variant { $($field),* } => { $(Field::map_values($field, map);)* })*
                }
            }

            /// Calls `visit` with each region.
            pub fn for_each_region(&self, visit: &mut dyn FnMut(Region)) {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => {}
                    $(Op::$variant { $($field),* } => { $(Field::regions($field, visit);)* })*
                }
            }

            /// Replaces each region.
            pub fn map_regions(&mut self, map: &mut dyn FnMut(Region) -> Region) {
                match self {
                    Op::Unary { .. } | Op::Binary { .. } | Op::Compare { .. } => {}
                    $(Op::$variant { $($field),* } => { $(Field::map_regions($field, map);)* })*
                }
            }

            /// Replaces each constant expression.
            ///
            /// # Errors
            /// What `map` says.
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

/// How many elements a tensor has of which only the address is known: more than any memory.
pub const UNKNOWN_LENGTH: i64 = 1 << 48;

define_ops! {
    /// A constant: a scalar, or a tile whose elements all have that value.
    Const = "const" { value: ConstExpr },
    /// The index of this program along `axis` (0, 1 or 2) of the grid, as `i64`.
    ProgramId = "program_id" { axis: u32 },
    /// How many programs the grid has along `axis`, as `i64`.
    NumPrograms = "num_programs" { axis: u32 },
    /// `[start, start + 1, .., end - 1]` as a tile of `i64`.
    Arange = "arange" { start: ConstExpr, end: ConstExpr },
    /// The same value along every axis that `x` lacks or has with extent 1: a scalar to a tile, `[64, 1]` to `[64, 32]`.
    Broadcast = "broadcast" { x: Value },
    /// A new axis of extent 1 at position `axis`.
    ExpandDims = "expand_dims" { x: Value, axis: u32 },
    /// The same elements in row-major order, under another shape with as many.
    Reshape = "reshape" { x: Value },
    /// The axes in another order: axis `i` of the result is axis `order[i]` of `x`, so `[1, 0]` transposes.
    Permute = "permute" { x: Value, order: Vec<u32> },
    /// The elements in the opposite order along `axis`.
    Flip = "flip" { x: Value, axis: u32 },
    /// Combines the elements along `axis`, which the results lack; one result per input, all inputs of one shape. The region combines two
    /// neighbouring runs: its parameters are, as scalars, what the earlier run gave for each input and then what the later one gave; it
    /// yields what both give. It must be associative: how runs are split is fixed but unspecified. Earlier and later are never exchanged.
    /// The region holds pure scalar ops only, and may use scalars from outside.
    Reduce = "reduce" { inputs: Vec<Value>, axis: u32, combine: Region },
    /// As `reduce`, of every run from the first element along `axis` up to and with each: results of the shape of the inputs. With
    /// `reverse` the order is from the last element to the first, so that the earlier run is the one at the higher indices.
    Scan = "scan" { inputs: Vec<Value>, axis: u32, reverse: bool, combine: Region },
    /// Elements of `src` by their index along `axis`; along the other axes each from its own place. The result has the shape of `index`, a tile
    /// of `i64` that has the extents of `src` but along `axis`. An index outside gives 0.
    Gather = "gather" { src: Value, index: Value, axis: u32 },
    /// How many of the integers are 0, 1, .., `bins - 1`, where the mask holds, as a tile of `i32`.
    Histogram = "histogram" { x: Value, mask: Option<Value>, bins: ConstExpr },
    /// The elements along the last axis in order. Floats are in the order of IEEE 754's `totalOrder`. Stands only in kernels without layouts.
    Sort = "sort" { x: Value, descending: bool },
    /// The element whose index along `axis` differs in that bit.
    Butterfly = "butterfly" { x: Value, axis: u32, bit: u32 },
    /// The same tile in another layout. Stands only in kernels that have layouts.
    Convert = "convert" { x: Value },
    /// `a * b + c`, rounded once.
    Fma = "fma" { a: Value, b: Value, c: Value },
    /// `on_true` where `cond` holds, else `on_false`.
    Select = "select" { cond: Value, on_true: Value, on_false: Value },
    /// Each element converted as Rust's `as` does.
    Cast = "cast" { x: Value },
    /// Each element's bits taken as another element type of the same width.
    Bitcast = "bitcast" { x: Value },
    /// Splits an `f32` angle: the first result is `x` minus the nearest multiple of pi/2, in [-pi/4, pi/4] and exact to `f32`;
    /// the second, an `i32`, is that multiple modulo 4.
    ReducePio2 = "reduce_pio2" { x: Value },
    /// PTX, once for `pack` elements of each input and result: one, if it is 0. The places `{0}`, `{1}`, .. of the `text` are the registers of
    /// the results and then of the inputs, see [`crate::ir::assembly`]; all have one shape. Unless it is `volatile`, it does nothing but compute
    /// its results from the inputs. It needs PTX ISA `isa`, ten times the version, if that is not 0. Stands only in kernels for a GPU: those for
    /// the CPU took the other branch of a `static_if`.
    InlinePtx = "inline_ptx" { inputs: Vec<Value>, text: String, pack: u32, isa: u32, volatile: bool },
    /// Elements at `base + offset` (offsets count elements). Lanes whose `mask` is false and lanes outside the tensor read `other`, or 0.
    /// `align` is 0, or the bytes that may move at once: each run of so many along the axis that memory runs along is masked as one, and if
    /// any lane is unmasked, starts at an address that they divide. `in_bounds` says that no lane outside is unmasked.
    Load = "load" {
        base: Value, offset: Value, mask: Option<Value>, other: Option<Value>,
        cache: Cache, evict: Evict, volatile: bool, in_bounds: bool, align: u32,
    },
    /// Stores `value` at `base + offset`. Lanes whose `mask` is false and lanes outside the tensor store nothing. Attributes as in `load`.
    Store = "store" {
        base: Value, offset: Value, value: Value, mask: Option<Value>,
        cache: Cache, evict: Evict, in_bounds: bool, align: u32,
    },
    /// Changes each element at `base + offset` in one step, as `op` says, and gives what it was before. Two lanes at one element are two
    /// steps, one after the other. Lanes whose `mask` is false and lanes outside the tensor do nothing and give 0. `values` are what `op`
    /// takes; a `store` has no result.
    Atomic = "atomic" {
        base: Value, offset: Value, values: Vec<Value>, op: AtomicOp, mask: Option<Value>,
        sem: Semantics, scope: Scope, in_bounds: bool,
    },
    /// Places for `slots` tiles like the result, which only names them: each thread has places of its own for the elements that it holds in the
    /// result's layout. Free again behind the last op that names the ring. This and the next four stand only in kernels for a GPU.
    Ring = "ring" { slots: u32 },
    /// If the scalar `on` holds, begins to copy the elements at `base + offset` to their places in slot number `slot` of a ring; lanes whose
    /// `mask` is false become 0. Every lane is in bounds or masked off. The other attributes as in `load`.
    Fetch = "fetch" {
        ring: Value, slot: Value, on: Value, base: Value, offset: Value, mask: Option<Value>,
        cache: Cache, evict: Evict, align: u32,
    },
    /// Makes what was fetched since the last one a group.
    FetchGroup = "fetch_group" {},
    /// Waits until all groups but the last `pending` have arrived.
    FetchWait = "fetch_wait" { pending: u32 },
    /// The elements in slot number `slot` of a ring, which have arrived.
    Fetched = "fetched" { ring: Value, slot: Value },
    /// Waits until all threads of the program are here: what they stored before, all of them see behind it.
    Barrier = "barrier" {},
    /// Waits until the launch before this one is over, and what it stored is seen. Only a launch that overlaps with it does not know so already.
    GdcWait = "gdc_wait" {},
    /// Lets the launch behind this one begin, if it is to overlap, once every program has said so or is over.
    GdcLaunchDependents = "gdc_launch_dependents" {},
    /// Notes the first lane, if any, where `outside` holds, as an access of `base` at `offset` of that `kind`: see `passes::report_accesses`.
    Report = "report" { base: Value, offset: Value, outside: Value, kind: AccessKind },
    /// The length of a pointer's tensor in elements, as `i64`.
    Length = "length" { base: Value },
    /// The address that a pointer holds, as `i64`.
    Address = "address" { base: Value },
    /// A pointer to what lies at an address, an `i64` scalar, whatever it is. Its tensor counts as [`UNKNOWN_LENGTH`] elements.
    Pointer = "pointer" { address: Value },
    /// Runs `then_region` if the scalar `cond` holds, else `else_region`; the results are what the region yields.
    If = "if" { cond: Value, then_region: Region, else_region: Region },
    /// Runs `body` for each scalar from `lower` up to but not including `upper`. The body's parameters are the index and the carried
    /// values; it yields the next carried values; the results are the last ones. Nothing runs if `step` is not positive. `num_stages` says how
    /// many turns are under way at once, all but one of which only load; without it, as many as pay. `unroll` turns stand behind one another. A
    /// `remainder` is what a pass left of a loop: the turns that the loop in front of it does not do.
    For = "for" {
        lower: Value, upper: Value, step: Value, init: Vec<Value>, body: Region,
        num_stages: Option<ConstExpr>, unroll: Option<ConstExpr>, remainder: bool,
    },
    /// Runs `test`, which ends in `condition`, and while that holds, `body`, which yields the next values of `test`'s parameters.
    While = "while" { init: Vec<Value>, test: Region, body: Region },
    /// As `if`, decided when the kernel is specialised; the other region is dropped unseen.
    StaticIf = "static_if" { cond: ConstExpr, then_region: Region, else_region: Region },
    /// In a checked launch: a mistake, with this message, where the scalar `cond` is false. If it is `assumed`, other launches may take it to be true.
    Assert = "assert" { cond: Value, message: String, assumed: bool },
    /// Repeats `body` for each constant from `start` up to but not including `end`, which it knows by the name `index`, when the kernel is
    /// specialised. The body's parameters are the carried values; it yields the next; the results are the last ones.
    StaticFor = "static_for" { index: String, start: ConstExpr, end: ConstExpr, step: ConstExpr, init: Vec<Value>, body: Region },
    /// A mistake, with this message, if `cond` is false when the kernel is specialised.
    StaticAssert = "static_assert" { cond: ConstExpr, message: String },
    /// Tells whoever compiles the kernel a [template](crate::ir::template) with these values.
    StaticPrint = "static_print" { format: String, values: Vec<ConstExpr> },
    /// Tells whoever runs the kernel a template, once for each element of the `values`, which have one shape. Stands only in generic
    /// kernels: specialised ones write into a buffer. `site` is the number of the `device_print!` in the source.
    Print = "print" { values: Vec<Value>, format: String, site: u32 },
    /// Ends a region: its results.
    Yield = "yield" { values: Vec<Value> },
    /// Ends the test of a `while`: goes on if `cond`, with `values` for the body and, at the end, as results.
    Condition = "condition" { cond: Value, values: Vec<Value> },
    /// Ends the kernel.
    Return = "return" {},
}

impl Op {
    /// Does it end a region?
    pub fn is_terminator(&self) -> bool {
        matches!(self, Op::Yield { .. } | Op::Condition { .. } | Op::Return {})
    }

    /// Does specialisation replace it, so that nothing of it is left?
    pub fn is_static(&self) -> bool {
        matches!(self, Op::StaticIf { .. } | Op::StaticFor { .. } | Op::StaticAssert { .. } | Op::StaticPrint { .. } | Op::Print { .. })
    }

    /// Does it do more than compute its results: store, or hold regions, end a region, or read what may change?
    pub fn has_effects(&self) -> bool {
        matches!(
            self,
            Op::Store { .. }
                | Op::Atomic { .. }
                | Op::Barrier { .. }
                | Op::GdcWait { .. }
                | Op::GdcLaunchDependents { .. }
                | Op::Ring { .. }
                | Op::Fetch { .. }
                | Op::FetchGroup { .. }
                | Op::FetchWait { .. }
                | Op::Fetched { .. }
                | Op::Report { .. }
                | Op::Assert { .. }
                | Op::Load { volatile: true, .. }
                | Op::InlinePtx { volatile: true, .. }
                | Op::If { .. }
                | Op::For { .. }
                | Op::While { .. }
        ) || self.is_static()
            || self.is_terminator()
    }

    /// Is it a function of its operands alone, so that equal ops have equal results?
    pub fn is_pure(&self) -> bool {
        !self.has_effects() && !matches!(self, Op::Load { .. })
    }

    /// Does an element of the result depend on elements at other places of the operand?
    pub fn looks_across(&self) -> bool {
        matches!(
            self,
            Op::ExpandDims { .. }
                | Op::Reshape { .. }
                | Op::Permute { .. }
                | Op::Flip { .. }
                | Op::Reduce { .. }
                | Op::Scan { .. }
                | Op::Gather { .. }
                | Op::Histogram { .. }
                | Op::Sort { .. }
                | Op::Butterfly { .. }
        )
    }
}
