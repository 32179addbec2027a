//! Tiles under other shapes: what moves, and to where.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, refused};
use crate::lab::{Arg, Source};
use crate::number::Number;
use crate::themes::{INTS, NUMBERS};
use crate::tiles::Shape;

/// `v` of a shape, an expression of it, the shape of that, and for each of its elements which one of `v` it is.
fn moved(
    name: impl Into<String>,
    dtype: Dtype,
    (from, to): (&[usize], &[usize]),
    expression: &str,
    source_of: impl Fn(usize) -> usize + Send + Sync + 'static,
) -> Case {
    let (from, to) = (Shape::new(from), Shape::new(to));
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{ let v = load(x + ({})); store(y + ({}), {expression}); }}",
        from.offsets(),
        to.offsets()
    ));
    let (len, result) = (from.numel(), to.numel());
    Case::new(name, move |lab| {
        let (x, mut y) = (lab.any(dtype, len), lab.any(dtype, result));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check_bits(|i| x.bits[source_of(i)])
    })
}

/// As [`moved`], of two inputs: `source_of` says which one and which element.
fn moved_pair(
    name: impl Into<String>,
    dtype: Dtype,
    (from, to): (&[usize], &[usize]),
    expression: &str,
    source_of: impl Fn(usize) -> (bool, usize) + Send + Sync + 'static,
) -> Case {
    let (from, to) = (Shape::new(from), Shape::new(to));
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{dtype}>, z: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{
            let at = {};
            let (a, b) = (load(x + at), load(z + at));
            store(y + ({}), {expression});
        }}",
        from.offsets(),
        to.offsets()
    ));
    let (len, result) = (from.numel(), to.numel());
    Case::new(name, move |lab| {
        let (x, z, mut y) = (lab.any(dtype, len), lab.any(dtype, len), lab.any(dtype, result));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::In(&z), Arg::Out(&mut y)])?;
        y.check_bits(|i| {
            let (is_second, at) = source_of(i);
            if is_second { z.bits[at] } else { x.bits[at] }
        })
    })
}

/// A row to a matrix, of every type.
pub(crate) fn broadcast() -> Vec<Case> {
    NUMBERS.map(|dtype| moved(dtype.name(), dtype, (&[1, 32], &[16, 32]), "broadcast_to(v, [16, 32])", |i| i % 32)).into()
}

/// A new axis at each position, from the end too.
pub(crate) fn expand_dims() -> Vec<Case> {
    let mut cases = Vec::new();
    for axis in -3i32..=2 {
        let at = if axis < 0 { axis + 3 } else { axis } as usize;
        let mut to = vec![4, 8];
        to.insert(at, 1);
        cases.push(moved(format!("axis{axis}"), Dtype::F32, (&[4, 8], &to), &format!("expand_dims(v, {axis})"), |i| i));
    }
    for axis in [-4, 3] {
        let text = format!("fn kernel(y: PtrMut<f32>) {{ let v = expand_dims(zeros::<f32>([4, 8]), {axis}); }}");
        cases.push(refused(format!("error-axis{axis}"), Source::new(text), "axis"));
    }
    cases
}

/// `None` and `..` in brackets; what is no axis is refused.
pub(crate) fn slice() -> Vec<Case> {
    let mut cases = vec![
        moved("row", Dtype::I32, (&[8], &[1, 8]), "v[(None, ..)]", |i| i),
        moved("column", Dtype::I32, (&[8], &[8, 1]), "v[(.., None)]", |i| i),
        moved("both", Dtype::I32, (&[8], &[1, 8, 1]), "v[(None, .., None)]", |i| i),
        moved("matrix", Dtype::I32, (&[4, 8], &[4, 1, 8]), "v[(.., None, ..)]", |i| i),
        moved("scalar", Dtype::I32, (&[8], &[1, 1]), "sum(v)[(None, None)] * 0 + sum(select(arange(0, 8) == 3, v, 0))", |_| 3),
    ];
    for (name, index, message) in [
        ("element", "v[3]", "not indexed with `[]`"),
        ("range", "v[0..4]", "`..`, for an axis of the tile, or `None`"),
        ("stepped", "v[(0..8).step_by(2)]", "not indexed with `[]`"),
    ] {
        let text = format!("fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {{ let v = load(x + arange(0, 8)); store(y, {index}); }}");
        cases.push(refused(format!("invalid-{name}"), Source::new(text), message));
    }
    cases
}

/// A vector of every integer type as a column and as a row, meeting a matrix.
pub(crate) fn index1d() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, axes) in [("column", "(.., None)"), ("row", "(None, ..)")] {
        for dtype in INTS.into_iter().filter(|dtype| dtype.bits() > 8).take(6) {
            let is_row = name == "row";
            let expression = format!("broadcast_to(v[{axes}], [16, 16])");
            cases.push(moved(
                format!("{name}-{dtype}"),
                dtype,
                (&[16], &[16, 16]),
                &expression,
                move |i| {
                    if is_row { i % 16 } else { i / 16 }
                },
            ));
        }
    }
    cases
}

/// The same elements under another shape; other numbers of elements are refused.
pub(crate) fn reshape() -> Vec<Case> {
    let rows: [(&[usize], &[usize]); 5] =
        [(&[4, 64], &[8, 32]), (&[256], &[2, 4, 32]), (&[2, 128], &[256]), (&[8, 2, 16], &[16, 1, 16]), (&[96], &[3, 32])];
    let mut cases: Vec<Case> = rows
        .into_iter()
        .map(|(from, to)| {
            let (from, to) = (Shape::new(from), Shape::new(to));
            let expression = format!("reshape(v, {})", to.written());
            moved(format!("{}-{}", from.name(), to.name()), Dtype::F32, (&from.0, &to.0), &expression, |i| i)
        })
        .collect();
    let text = "fn kernel(y: PtrMut<f32>) { let v = reshape(zeros::<f32>([4, 64]), [8, 16]); }";
    cases.push(refused("error-count", Source::new(text), "elements"));
    cases
}

/// Where an element of a permuted tile comes from.
fn permuted(from: &Shape, order: &[usize], index: usize) -> usize {
    let to = Shape(order.iter().map(|axis| from.0[*axis]).collect());
    let mut coordinates = vec![0; order.len()];
    to.coordinates(index).into_iter().zip(order).for_each(|(at, axis)| coordinates[*axis] = at);
    from.index(&coordinates)
}

fn permutation(dtype: Dtype, extents: &[usize], order: &[usize], expression: Option<&str>) -> Case {
    let (from, order) = (Shape::new(extents), order.to_vec());
    let to = Shape(order.iter().map(|axis| from.0[*axis]).collect());
    let name: String = order.iter().map(usize::to_string).collect();
    let written = expression.map_or_else(|| format!("permute(v, {order:?})"), str::to_string);
    moved(format!("{dtype}-{}-{name}", from.name()), dtype, (extents, &to.0), &written, move |i| permuted(&from, &order, i))
}

/// Every order of some axes.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    (0..rank).fold(vec![Vec::new()], |orders, axis| {
        orders.iter().flat_map(|order| (0..=order.len()).map(move |at| [&order[..at], &[axis], &order[at..]].concat())).collect()
    })
}

/// Matrices of two widths of elements, transposed by `trans` and by naming the axes.
pub(crate) fn trans_2d() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I32, Dtype::I8] {
        for extents in [[2, 32], [64, 32]] {
            cases.push(permutation(dtype, &extents, &[1, 0], Some("trans(v)")));
            cases.push(permutation(dtype, &extents, &[0, 1], None));
        }
    }
    cases
}

/// Every order of four axes.
pub(crate) fn trans_4d() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I32, Dtype::I8] {
        for extents in [[2, 2, 8, 64], [4, 4, 4, 16]] {
            cases.extend(orders(4).iter().map(|order| permutation(dtype, &extents, order, None)));
        }
    }
    cases
}

/// Square and long matrices of every type.
pub(crate) fn transpose() -> Vec<Case> {
    NUMBERS.map(|dtype| permutation(dtype, &[32, 64], &[1, 0], Some("v.trans()"))).into()
}

/// Every order of three axes.
pub(crate) fn permute() -> Vec<Case> {
    orders(3).iter().map(|order| permutation(Dtype::F16, &[4, 8, 16], order, None)).collect()
}

/// Every order of three axes whose extents are no powers of two; and what else moves such tiles.
pub(crate) fn odd_extents() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for extents in [[3, 5, 6], [7, 1, 33], [2, 48, 5]] {
        for dtype in [Dtype::U8, Dtype::F32, Dtype::I64] {
            cases.extend(orders(3).iter().map(|order| permutation(dtype, &extents, order, None)));
        }
    }
    for (rows, columns) in [(3usize, 5usize), (12, 33), (5, 96), (1, 7)] {
        let name = |what: &str| format!("{what}-{rows}x{columns}");
        let (shape, wide) = ([rows, columns], [rows, columns, 2]);
        cases.push(moved(name("broadcast-row"), Dtype::I16, (&[1, columns], &shape), &format!("broadcast_to(v, {shape:?})"), move |i| {
            i % columns
        }));
        cases.push(moved(name("broadcast-column"), Dtype::I16, (&[rows, 1], &shape), &format!("broadcast_to(v, {shape:?})"), move |i| {
            i / columns
        }));
        cases.push(moved_pair(name("join"), Dtype::F16, (&shape, &wide), "join(a, b)", |i| (i % 2 == 1, i / 2)));
        cases.push(moved(name("split"), Dtype::F64, (&wide, &shape), "{ let (_, odd) = split(v); odd }", |i| 2 * i + 1));
    }
    cases
}

/// Equal elements of every type, in no axis, one of extent 1, and a long one; named and like another tile.
pub(crate) fn full() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in NUMBERS {
        for (name, len, value) in [
            ("scalar", 1usize, format!("(3 as {dtype})")),
            ("1", 1, format!("full([1], 3 as {dtype})")),
            ("128", 128, format!("full_like(zeros::<{dtype}>([128]), 3)")),
        ] {
            let at = if name == "scalar" { "0".to_string() } else { format!("arange(0, {len})") };
            let source = Source::new(format!("fn kernel(y: PtrMut<{dtype}>) {{ store(y + {at}, {value}); }}"));
            cases.push(Case::new(format!("{dtype}-{name}"), move |lab| {
                let mut y = lab.any(dtype, len);
                lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y)])?;
                y.check(Tolerance::Exact, |_| Number::Int(3))
            }));
        }
    }
    cases
}

/// From any start to any end.
pub(crate) fn arange() -> Vec<Case> {
    [(0, 128), (7, 71), (-8, 8), (3, 100)]
        .map(|(start, end)| {
            let extent = (end - start) as usize;
            let source = Source::new(format!("fn kernel(y: PtrMut<i64>) {{ store(y + arange(0, {extent}), arange({start}, {end})); }}"));
            Case::new(format!("{start}-{end}"), move |lab| {
                let mut y = lab.any(Dtype::I64, extent);
                lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y)])?;
                y.check(Tolerance::Exact, |i| Number::Int(start + i as i128))
            })
        })
        .into()
}

/// Two tiles along a new last axis, in turn, and apart again; of scalars too.
pub(crate) fn join_and_split() -> Vec<Case> {
    let parts = "{ let (even, odd) = split(v); even * 1 + odd * 0 }";
    let other = "{ let (even, odd) = split(v); odd }";
    vec![
        moved_pair("join", Dtype::I32, (&[128], &[128, 2]), "join(a, b)", |i| (i % 2 == 1, i / 2)),
        moved_pair("join-matrix", Dtype::F16, (&[8, 16], &[8, 16, 2]), "join(a, b)", |i| (i % 2 == 1, i / 2)),
        moved_pair("join-scalars", Dtype::I32, (&[], &[2]), "join(a, b)", |i| (i == 1, 0)),
        moved_pair("interleave", Dtype::I32, (&[128], &[256]), "interleave(a, b)", |i| (i % 2 == 1, i / 2)),
        moved_pair("interleave-matrix", Dtype::I8, (&[8, 16], &[8, 32]), "interleave(a, b)", |i| (i % 2 == 1, i / 2)),
        moved_pair("interleave-scalars", Dtype::I32, (&[], &[2]), "interleave(a, b)", |i| (i == 1, 0)),
        moved("split-first", Dtype::I32, (&[128, 2], &[128]), parts, |i| 2 * i),
        moved("split-second", Dtype::F16, (&[8, 16, 2], &[8, 16]), other, |i| 2 * i + 1),
        moved("split-to-scalar", Dtype::I32, (&[2], &[]), other, |_| 1),
        moved("unsplat", Dtype::F32, (&[1], &[]), "sum(v)", |_| 0),
    ]
}

/// One tile behind another, along each axis.
pub(crate) fn cat() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F16, Dtype::F32, Dtype::F64] {
        for extent in [16, 64, 128, 256] {
            cases.push(moved_pair(format!("{dtype}-{extent}"), dtype, (&[extent], &[2 * extent]), "cat(a, b)", move |i| {
                (i >= extent, i % extent)
            }));
        }
    }
    cases
}

pub(crate) fn cat_nd() -> Vec<Case> {
    let mut cases = Vec::new();
    let rows: [(&[usize], &[usize]); 4] = [(&[16], &[0]), (&[4, 8], &[0, 1]), (&[2, 4, 8], &[0, 1, 2]), (&[2, 2, 4, 4], &[0, 1, 2, 3])];
    for (extents, axes) in rows {
        for &axis in axes {
            let from = Shape::new(extents);
            let mut to = from.clone();
            to.0[axis] *= 2;
            let wanted = to.clone();
            cases.push(moved_pair(
                format!("{}-axis{axis}", from.name()),
                Dtype::F32,
                (extents, &wanted.0),
                &format!("cat(a, b, axis = {axis})"),
                move |i| {
                    let mut coordinates = to.coordinates(i);
                    let is_second = coordinates[axis] >= from.0[axis];
                    coordinates[axis] %= from.0[axis];
                    (is_second, from.index(&coordinates))
                },
            ));
        }
    }
    cases
}

/// Axes of extent 1, taken away and put back, counted from the end too.
pub(crate) fn squeeze_unsqueeze() -> Vec<Case> {
    vec![
        moved("first", Dtype::F32, (&[1, 32], &[32]), "squeeze(v, 0)", |i| i),
        moved("last", Dtype::F32, (&[32, 1], &[32]), "squeeze(v, -1)", |i| i),
        moved("middle", Dtype::F32, (&[4, 1, 8], &[4, 8]), "squeeze(v, 1)", |i| i),
        moved("and-back", Dtype::F32, (&[4, 1, 8], &[4, 1, 8]), "expand_dims(squeeze(v, -2), 1)", |i| i),
        moved("unsqueeze-first", Dtype::F32, (&[32], &[1, 32]), "expand_dims(v, 0)", |i| i),
        moved("unsqueeze-last", Dtype::F32, (&[32], &[32, 1]), "expand_dims(v, -1)", |i| i),
        refused("error-extent", Source::new("fn kernel(y: PtrMut<f32>) { let v = squeeze(zeros::<f32>([4, 8]), 0); }"), "extent"),
    ]
}

/// Shapes out of constants: of the kernel, of the tile, of arithmetic.
pub(crate) fn constexpr_shape() -> Vec<Case> {
    let row = |name: &str, body: &str| {
        let source = Source::new(format!("fn kernel(y: PtrMut<i64>) {{ {body} }}"));
        Case::new(name, move |lab| {
            let mut y = lab.any(Dtype::I64, 256);
            lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y)])?;
            y.check(Tolerance::Exact, |i| Number::Int(i as i128))
        })
    };
    vec![
        row("shape", "let v = reshape(arange(0, 128 + 128), [4 * 4, 16]); store(y + v, v);"),
        row("scalar-shape", "let v = reshape(arange(0, 256), [256]); store(y + v, v);"),
        row("shapes-as-parameters", "let v = arange(0, 256); let w = reshape(v, [extent(v, 0) / 8, 8]); store(y + w, w);"),
        row("numel", "let v = reshape(arange(0, 256), [2, 128]); let w = reshape(v, [numel(v)]); store(y + w, w);"),
        row("rank", "let v = arange(0, 256); static_assert!(rank(v) == 1); store(y + v, v);"),
    ]
}

/// Every type of element, its name and its width.
pub(crate) fn dtype_tensor() -> Vec<Case> {
    let mut types = NUMBERS.to_vec();
    types.push(Dtype::Bool);
    types.into_iter().map(|dtype| moved(dtype.name(), dtype, (&[100], &[100]), "v", |i| i)).collect()
}

/// The whole of a vector from the end, and of the last axis of a block.
pub(crate) fn ravel() -> Vec<Case> {
    let flat = moved("matrix", Dtype::I32, (&[8, 32], &[256]), "reshape(v, [numel(v)])", |i| i);
    let cube = moved("block", Dtype::F32, (&[4, 8, 8], &[256]), "reshape(v, [256])", |i| i);
    vec![flat, cube]
}

/// Elements back to front along each axis, or along the last where none is named.
pub(crate) fn flip() -> Vec<Case> {
    let mut cases = Vec::new();
    for extents in [[8, 16, 4], [16, 8, 2], [1, 32, 8], [4, 4, 16], [3, 5, 6]] {
        for axis in [0i32, 1, 2, -1] {
            for dtype in [Dtype::I8, Dtype::F16, Dtype::I32, Dtype::F32, Dtype::F64] {
                let shape = Shape::new(&extents);
                let at = if axis < 0 { 2 } else { axis as usize };
                let name = format!("{dtype}-{}-axis{axis}", shape.name());
                cases.push(moved(name, dtype, (&extents, &extents), &format!("flip(v, axis = {axis})"), move |i| {
                    let mut coordinates = shape.coordinates(i);
                    coordinates[at] = shape.0[at] - 1 - coordinates[at];
                    shape.index(&coordinates)
                }));
            }
        }
    }
    cases
}

/// Pairs turned round in place, infinity among them, which no sum of bits may touch.
pub(crate) fn flip_inf() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
            let at = arange(0, 16);
            store(y + at, reshape(flip(reshape(load(x + at), [8, 2]), axis = 1), [16]));
        }",
    );
    vec![Case::new("pairs", move |lab| {
        let x = Array::new(Dtype::F32, (0..16).map(|i| Number::Float(if i == 15 { f64::INFINITY } else { f64::from(i) })));
        let mut y = lab.any(Dtype::F32, 16);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check_bits(|i| x.bits[i ^ 1])
    })]
}

/// A tile picked from by indices along an axis.
pub(crate) fn gather() -> Vec<Case> {
    let rows: [(&[usize], &[usize], usize); 8] = [
        (&[5, 12], &[7, 12], 0),
        (&[3, 100], &[3, 37], 1),
        (&[4, 4], &[8, 4], 0),
        (&[128, 64], &[256, 64], 0),
        (&[128, 64], &[128, 128], 1),
        (&[32], &[64], 0),
        (&[64], &[16], 0),
        (&[2, 8, 16], &[2, 32, 16], 1),
    ];
    rows.into_iter()
        .map(|(from, to, axis)| {
            let (from, to) = (Shape::new(from), Shape::new(to));
            let source = Source::new(format!(
                "fn kernel(x: Ptr<f32>, index: Ptr<i32>, y: PtrMut<f32>) {{
                    let at = {};
                    store(y + at, gather(load(x + ({})), load(index + at) as i64, {axis}));
                }}",
                to.offsets(),
                from.offsets()
            ));
            Case::new(format!("{}-{}-axis{axis}", from.name(), to.name()), move |lab| {
                let x = lab.any(Dtype::F32, from.numel());
                let index = lab.ints(Dtype::I32, to.numel(), 0, from.0[axis] as i128);
                let mut y = lab.any(Dtype::F32, to.numel());
                lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::In(&index), Arg::Out(&mut y)])?;
                y.check_bits(|i| {
                    let mut coordinates = to.coordinates(i);
                    coordinates[axis] = index.bits[i] as usize;
                    x.bits[from.index(&coordinates)]
                })
            })
        })
        .collect()
}

/// Counts of each number, of all elements, of some, and with some that have no bin.
pub(crate) fn histogram() -> Vec<Case> {
    let mut cases = Vec::new();
    for (extent, bins) in [(100, 10), (7, 3), (8, 8), (16, 16), (128, 32), (512, 2), (1024, 8), (64, 256), (2048, 64)] {
        for masked in [false, true] {
            cases.push(counted(extent, bins, masked, 0, bins as i128));
        }
    }
    cases.push(counted(256, 16, false, -5, 40));
    cases
}

fn counted(extent: usize, bins: usize, masked: bool, low: i128, high: i128) -> Case {
    let mask = if masked { ", mask = at % 3 != 0" } else { "" };
    let source = Source::new(format!(
        "fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ let at = arange(0, {extent}); store(y + arange(0, {bins}), histogram(load(x + at), {bins}{mask})); }}"
    ));
    let name = if low < 0 { "out-of-range".to_string() } else { format!("{extent}-{bins}{}", if masked { "-masked" } else { "" }) };
    Case::new(name, move |lab| {
        let x: Array = lab.ints(Dtype::I32, extent, low, high);
        let mut y = lab.any(Dtype::I32, bins);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        let counts = |at: &usize| !masked || !at.is_multiple_of(3);
        y.check(
            Tolerance::Exact,
            |bin| Number::Int((0..extent).filter(counts).filter(|at| x.get(*at).int() == bin as i128).count() as i128),
        )
    })
}
