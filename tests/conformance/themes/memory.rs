//! Loads and stores: masked, strided, through indices, with options for the caches.

use galatea::Dtype;
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options};

use crate::array::{Array, Tolerance};
use crate::case::{Case, refused};
use crate::lab::{Arg, Source};
use crate::number::Number;
use crate::themes::NUMBERS;

fn count(n: usize) -> Arg<'static> {
    Arg::Scalar(Dtype::I64, Number::Int(n as i128))
}

/// A tile of which the tensor has all elements, or some too few; lanes without one read 0, or `other`.
pub(crate) fn masked_load() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in NUMBERS.into_iter().filter(|dtype| ![Dtype::I16, Dtype::U16].contains(dtype)) {
        for size in [128, 512] {
            for missing in 0..5 {
                for other in [0, 1] {
                    let option = if other == 0 { String::new() } else { format!(", other = {other} as {dtype}") };
                    let source = Source::new(format!(
                        "fn kernel(x: Ptr<{dtype}>, y: PtrMut<{dtype}>, n: usize) {{
                            let at = arange(0, {size});
                            store(y + at, load(x + at, mask = at < n{option}));
                        }}"
                    ));
                    cases.push(Case::new(format!("{dtype}-{size}-{missing}-other{other}"), move |lab| {
                        let n = size - missing;
                        let (x, mut y) = (lab.any(dtype, n), lab.any(dtype, size));
                        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y), count(n)])?;
                        let want = Array::ints(dtype, [other]);
                        y.check_bits(|i| if i < n { x.bits[i] } else { want.bits[0] })
                    }));
                }
            }
        }
    }
    cases
}

/// One element under a mask, and one mask for a whole tile.
pub(crate) fn masked_load_scalar() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, at) in [("scalar", "0"), ("tile", "arange(0, 64)")] {
        for on in [true, false] {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<f32>, y: PtrMut<f32>, on: bool) {{ let at = {at}; store(y + at, load(x + at, mask = on, other = 2.5)); }}"
            ));
            cases.push(Case::new(format!("{name}-{on}"), move |lab| {
                let len = if name == "tile" { 64 } else { 1 };
                let (x, mut y) = (lab.any(Dtype::F32, len), lab.any(Dtype::F32, len));
                let on_word = Arg::Scalar(Dtype::Bool, Number::Int(on.into()));
                lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y), on_word])?;
                let other = Array::new(Dtype::F32, [Number::Float(2.5)]).bits[0];
                y.check_bits(|i| if on { x.bits[i] } else { other })
            }));
        }
    }
    cases
}

/// A scalar load whose mask a comparison gives.
pub(crate) fn load_scalar_with_mask() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<i32>, index: Ptr<i32>, y: PtrMut<i32>, n: i32) {
            let program = program_id(0);
            let at = load(index + program);
            store(y + program, load(x + at, mask = at < n, other = -1), mask = at < n);
        }",
    );
    vec![Case::new("i32", move |lab| {
        let (x, first) = (lab.any(Dtype::I32, 40), lab.any(Dtype::I32, 9));
        let index = lab.ints(Dtype::I32, 9, 0, 40);
        let mut y = first.clone();
        let n = Arg::Scalar(Dtype::I32, Number::Int(25));
        lab.launch(&source, [9, 1, 1], &mut [Arg::In(&x), Arg::In(&index), Arg::Out(&mut y), n])?;
        y.check_bits(|i| if index.bits[i] < 25 { x.bits[index.bits[i] as usize] } else { first.bits[i] })
    })]
}

/// A kernel that moves elements: its body, and from where the reference takes each.
fn moved(
    name: String,
    dtype: Dtype,
    (from, to): (usize, usize),
    body: &str,
    source_of: impl Fn(usize) -> Option<usize> + Send + Sync + 'static,
) -> Case {
    let source = Source::new(format!("fn kernel(x: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{ {body} }}"));
    Case::new(name, move |lab| {
        let (x, first) = (lab.any(dtype, from), lab.any(dtype, to));
        let mut y = first.clone();
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check_bits(|i| source_of(i).map_or(first.bits[i], |at| x.bits[at]))
    })
}

/// A block of a matrix with longer rows.
pub(crate) fn strided_load() -> Vec<Case> {
    let body = "let (row, column) = (arange(0, 16), arange(0, 32));
        let v = load(x + row[(.., None)] * 48 + column[(None, ..)]);
        store(y + row[(.., None)] * 32 + column[(None, ..)], v);";
    NUMBERS.map(|dtype| moved(dtype.name().to_string(), dtype, (16 * 48, 512), body, |i| Some(i / 32 * 48 + i % 32))).into()
}

/// A block into a matrix with longer rows, whose other elements stay.
pub(crate) fn strided_store() -> Vec<Case> {
    let body = "let (row, column) = (arange(0, 16), arange(0, 32));
        let v = load(x + row[(.., None)] * 32 + column[(None, ..)]);
        store(y + row[(.., None)] * 48 + column[(None, ..)], v);";
    let of = |i: usize| (i % 48 < 32).then(|| i / 48 * 32 + i % 48);
    NUMBERS.map(|dtype| moved(dtype.name().to_string(), dtype, (512, 16 * 48), body, of)).into()
}

/// Elements that an index names, read or written.
fn indirect(body: &'static str, is_store: bool) -> Vec<Case> {
    let case = |dtype: Dtype| {
        let source =
            Source::new(format!("fn kernel(index: Ptr<i32>, x: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{ let at = arange(0, 128); {body} }}"));
        Case::new(dtype.name(), move |lab| {
            let mut to: Vec<usize> = (0..128).collect();
            (1..128).rev().for_each(|last| to.swap(last, lab.below(last + 1)));
            let index = Array::ints(Dtype::I32, to.iter().map(|to| *to as i128));
            let (x, mut y) = (lab.any(dtype, 128), lab.any(dtype, 128));
            lab.launch(&source, [1; 3], &mut [Arg::In(&index), Arg::In(&x), Arg::Out(&mut y)])?;
            if is_store {
                (0..128).try_for_each(|i| if y.bits[to[i]] == x.bits[i] { Ok(()) } else { Err(format!("element {}", to[i])) })
            } else {
                y.check_bits(|i| x.bits[to[i]])
            }
        })
    };
    NUMBERS.map(case).into()
}

pub(crate) fn indirect_load() -> Vec<Case> {
    indirect("store(y + at, load(x + load(index + at)));", false)
}

pub(crate) fn indirect_store() -> Vec<Case> {
    indirect("store(y + load(index + at), load(x + at));", true)
}

/// A constant into every element of a tensor of any length.
pub(crate) fn store_constant() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dtype, constant) in [(Dtype::I32, "1"), (Dtype::F32, "1.0"), (Dtype::F16, "1.0"), (Dtype::Bf16, "1.0"), (Dtype::U8, "1")] {
        for (name, value) in [("scalar", constant.to_string()), ("tile", format!("full([128], {constant}{dtype})"))] {
            for masked in [false, true] {
                let mask = if masked { ", mask = at < n" } else { "" };
                let source = Source::new(format!(
                    "fn kernel(y: PtrMut<{dtype}>, n: usize) {{ let at = program_id(0) * 128 + arange(0, 128); store(y + at, {value}{mask}); }}"
                ));
                cases.push(Case::new(format!("{dtype}-{name}{}", if masked { "-masked" } else { "" }), move |lab| {
                    let len = 1 + lab.below(300);
                    let n = if masked { lab.below(len) } else { len };
                    let first = lab.any(dtype, len);
                    let (mut y, one) = (first.clone(), Array::ints(dtype, [1]));
                    lab.launch(&source, [3, 1, 1], &mut [Arg::Out(&mut y), count(n)])?;
                    y.check_bits(|i| if i < n { one.bits[0] } else { first.bits[i] })
                }));
            }
        }
    }
    cases
}

/// A pointer plus an offset plus an offset: scalars and tiles, 32 and 64 bits, of each width of element.
pub(crate) fn addptr() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::U8, Dtype::I16, Dtype::F32, Dtype::F64] {
        for index in ["i32", "i64", "u32"] {
            for order in ["scalar-first", "tile-first"] {
                let sum = if order == "scalar-first" { "x + three + at" } else { "x + at + three" };
                let body = format!(
                    "let (at, three) = (arange(0, 64) as {index}, 3{index});
                    store(y + arange(0, 64), load({sum}));"
                );
                cases.push(moved(format!("{dtype}-{index}-{order}"), dtype, (67, 64), &body, |i| Some(i + 3)));
            }
        }
    }
    cases
}

/// Each element is loaded and stored through the same pointer.
pub(crate) fn load_store_same_ptr() -> Vec<Case> {
    let source =
        Source::new("fn kernel(x: PtrMut<f32>) { let at = program_id(0) * 64 + arange(0, 64); store(x + at, load(x + at) * 2.0); }");
    vec![Case::new("f32", move |lab| {
        let first = lab.within(Dtype::F32, 300, -9.0, 9.0);
        let mut x = first.clone();
        lab.launch(&source, [5, 1, 1], &mut [Arg::Out(&mut x)])?;
        x.check(Tolerance::Exact, |i| Number::Float(first.get(i).float() * 2.0))
    })]
}

/// A copy whose PTX must hold, or must not hold, a text.
fn with_ptx(name: &str, load: &str, store: &str, texts: &'static [(&'static str, bool)]) -> Case {
    let source = Source::new(format!(
        "fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {{ let at = program_id(0) * 512 + arange(0, 512); store(y + at, load(x + at{load}){store}); }}"
    ));
    Case::new(name, move |lab| {
        let (x, mut y) = (lab.any(Dtype::F32, 1024), lab.any(Dtype::F32, 1024));
        lab.launch(&source, [2, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check_bits(|i| x.bits[i])?;
        let func = kernel_lang::ir::parse(&source.lower()?).map_err(|error| error.to_string())?;
        let compiled =
            kernel_lang::compile(&func, &Options::new(Bindings::new(), Target::SM_90A)).map_err(|errors| errors.render(&func.files))?;
        match texts.iter().find(|(text, wanted)| compiled.ptx.contains(text) != *wanted) {
            Some((text, true)) => Err(format!("no `{text}` in\n{}", compiled.ptx)),
            Some((text, false)) => Err(format!("`{text}` in\n{}", compiled.ptx)),
            None => Ok(()),
        }
    })
}

pub(crate) fn load_cache_modifier() -> Vec<Case> {
    vec![
        with_ptx("none", "", "", &[("ld.global.cg", false), ("ld.global.ca", false)]),
        with_ptx("ca", ", cache = \"ca\"", "", &[("ld.global.ca", true)]),
        with_ptx("cg", ", cache = \"cg\"", "", &[("ld.global.cg", true)]),
        with_ptx("cs", ", cache = \"cs\"", "", &[("ld.global.cs", true)]),
        with_ptx("cv", ", cache = \"cv\"", "", &[("ld.global.cv", true)]),
    ]
}

pub(crate) fn store_cache_modifier() -> Vec<Case> {
    vec![
        with_ptx("none", "", "", &[("st.global.cg", false), ("st.global.wt", false)]),
        with_ptx("wb", "", ", cache = \"wb\"", &[("st.global.wb", true)]),
        with_ptx("cg", "", ", cache = \"cg\"", &[("st.global.cg", true)]),
        with_ptx("cs", "", ", cache = \"cs\"", &[("st.global.cs", true)]),
        with_ptx("wt", "", ", cache = \"wt\"", &[("st.global.wt", true)]),
    ]
}

pub(crate) fn store_eviction_policy() -> Vec<Case> {
    vec![
        with_ptx("none", ", evict = \"evict_normal\"", "", &[("evict", false)]),
        with_ptx("evict_first", "", ", evict = \"evict_first\"", &[("evict_first", true)]),
        with_ptx("evict_last", "", ", evict = \"evict_last\"", &[("evict_last", true)]),
    ]
}

/// Neighbours are read and written four at a time.
pub(crate) fn vectorization() -> Vec<Case> {
    vec![
        with_ptx("load", ", evict = \"evict_normal\"", "", &[("ld.global.nc.v4.f32", true)]),
        with_ptx("store", "", "", &[("st.global.v4.f32", true)]),
        with_ptx("masked-load", ", mask = at < 1024, evict = \"evict_normal\"", "", &[("ld.global.nc.v4.f32", true)]),
        with_ptx("masked-store", "", ", mask = at < 1024", &[("st.global.v4.f32", true)]),
    ]
}

/// Tensors that a kernel is not to change cannot be stored to; each type can be read.
pub(crate) fn constant_tensors() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I8, Dtype::F16, Dtype::F32, Dtype::I64] {
        for (name, at) in [("scalar", "0"), ("tile", "arange(0, 32)")] {
            let text = format!("fn kernel(x: Ptr<{dtype}>) {{ let at = {at}; store(x + at, load(x + at)); }}");
            cases.push(refused(format!("store-{dtype}-{name}"), Source::new(text), "store"));
            let len = if name == "tile" { 32 } else { 1 };
            let body = format!("let at = {at}; store(y + at, load(x + at));");
            cases.push(moved(format!("load-{dtype}-{name}"), dtype, (len, len), &body, Some));
        }
    }
    cases
}

/// A stride of 0: every row is the first one.
pub(crate) fn zero_strided_tensors() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<f32>, y: PtrMut<f32>, stride: usize) {
            let (row, column) = (arange(0, 8), arange(0, 32));
            let v = load(x + row[(.., None)] * stride + column[(None, ..)]);
            store(y + row[(.., None)] * 32 + column[(None, ..)], v);
        }",
    );
    vec![Case::new("rows", move |lab| {
        let (x, mut y) = (lab.any(Dtype::F32, 32), lab.any(Dtype::F32, 256));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y), count(0)])?;
        y.check_bits(|i| x.bits[i % 32])
    })]
}

/// An assumption that holds does not change the result.
pub(crate) fn assumptions() -> Vec<Case> {
    [("assume", "assume(n > 0); assume(n % 16 == 0); let m = n;"), ("multiple_of", "let m = multiple_of(n, 16);"), ("none", "let m = n;")]
        .map(|(name, promise)| {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {{
                    {promise}
                    let at = arange(0, 64);
                    let row = program_id(0) * m;
                    store(y + row + at, load(x + row + at, mask = at < m), mask = at < m);
                }}"
            ));
            Case::new(name, move |lab| {
                let n = 16 * (1 + lab.below(4));
                let (x, mut y) = (lab.any(Dtype::F32, 5 * n), lab.any(Dtype::F32, 5 * n));
                lab.launch(&source, [5, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y), count(n)])?;
                y.check_bits(|i| x.bits[i])
            })
        })
        .into()
}
