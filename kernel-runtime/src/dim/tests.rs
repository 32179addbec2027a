//! Tests of dims: worked cases, and random expressions compared with all values of their dims.

use proptest::prelude::*;

use super::sum::floor;
use super::*;

/// An expression as it is written.
#[derive(Clone, Debug)]
enum Tree {
    Number(i64),
    Name(usize),
    Binary(Operation, Box<Tree>, Box<Tree>),
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Cdiv,
    Min,
    Max,
}

use Operation::{Add as Plus, Cdiv, Div as Over, Max, Min, Mul as Times, Rem as Modulo, Sub as Minus};

/// Three named dims of few values: one may be 0, one is positive, one has one value.
fn dims() -> [Dim; 3] {
    [Dim::new("a", 0..=6), Dim::new("b", 1..=9), Dim::new("c", 3..=3)]
}

/// All values of the dims.
fn points() -> impl Iterator<Item = [i64; 3]> {
    (0..=6).flat_map(|a| (1..=9).map(move |b| [a, b, 3]))
}

fn values(point: [i64; 3]) -> DimValues {
    dims().iter().zip(point).fold(DimValues::new(), |values, (dim, value)| values.with(dim, value).unwrap())
}

impl Tree {
    fn dim(&self) -> Dim {
        match self {
            Tree::Number(number) => Dim::from(*number),
            Tree::Name(name) => dims()[*name].clone(),
            Tree::Binary(operation, a, b) => {
                let (a, b) = (a.dim(), b.dim());
                match operation {
                    Plus => a + b,
                    Minus => a - b,
                    Times => a * b,
                    Over => a / b,
                    Modulo => a % b,
                    Cdiv => a.cdiv(b),
                    Min => a.min(b),
                    Max => a.max(b),
                }
            }
        }
    }

    /// The value by definition. None if a division by 0 has no value.
    fn value(&self, point: [i64; 3]) -> Option<i128> {
        match self {
            Tree::Number(number) => Some((*number).into()),
            Tree::Name(name) => Some(point[*name].into()),
            Tree::Binary(operation, a, b) => {
                let (a, b) = (a.value(point)?, b.value(point)?);
                Some(match operation {
                    Plus => a + b,
                    Minus => a - b,
                    Times => a * b,
                    Over => by_definition(a, b)?,
                    Modulo => a - b * by_definition(a, b)?,
                    Cdiv => -by_definition(-a, b)?,
                    Min => a.min(b),
                    Max => a.max(b),
                })
            }
        }
    }
}

/// The greatest integer that is at most the quotient.
fn by_definition(a: i128, b: i128) -> Option<i128> {
    let (a, b) = if b < 0 { (-a, -b) } else { (a, b) };
    if b == 0 { None } else { Some(if a >= 0 { a / b } else { -((-a + b - 1) / b) }) }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-9i64..=9).prop_map(Tree::Number),
        prop_oneof![Just(64i64), Just(1024)].prop_map(Tree::Number),
        (0usize..3).prop_map(Tree::Name),
        (0usize..3).prop_map(Tree::Name),
    ];
    let operations = prop_oneof![Just(Plus), Just(Minus), Just(Times), Just(Over), Just(Modulo), Just(Cdiv), Just(Min), Just(Max)];
    leaf.prop_recursive(4, 16, 2, move |inner| {
        (operations.clone(), inner.clone(), inner).prop_map(|(operation, a, b)| Tree::Binary(operation, Box::new(a), Box::new(b)))
    })
}

const COMPARISONS: [Relation; 6] = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_are_those_by_definition(tree in trees()) {
        let dim = tree.dim();
        for point in points() {
            match (dim.value(&values(point)), tree.value(point)) {
                (Ok(found), Some(expected)) => prop_assert_eq!(i128::from(found), expected, "{} at {:?}", dim, point),
                // What is divided by 0 may leave the expression, as in `0 * (1 / a)`.
                (Ok(_), None) => {}
                (Err(Error::Dim(DimError::DivisionByZero { .. })), None) => {}
                (found, expected) => prop_assert!(false, "{dim} at {point:?}: {found:?}, {expected:?}"),
            }
        }
    }

    #[test]
    fn bounds_contain_all_values(tree in trees()) {
        let dim = tree.dim();
        if dim.sum().is_ok() {
            let bounds = dim.bounds().unwrap();
            for value in points().filter_map(|point| dim.value(&values(point)).ok()) {
                prop_assert!(bounds.contains(&value), "{dim} is {value}, not in {bounds:?}");
            }
        }
    }

    #[test]
    fn proofs_hold_for_all_values(a in trees(), b in trees()) {
        let (a, b) = (a.dim(), b.dim());
        for comparison in COMPARISONS {
            let proof = a.compare(comparison, &b);
            for values in points().map(values) {
                let (Ok(left), Ok(right)) = (a.value(&values), b.value(&values)) else { continue };
                let holds = comparison.holds(left, right);
                prop_assert!(proof == Proof::Unknown || holds == (proof == Proof::Yes), "{a} {} {b}: {proof:?}, {left}, {right}", comparison.operator());
            }
        }
    }

    #[test]
    fn multiples_are_multiples_for_all_values(tree in trees(), divisor in 1i64..=6) {
        let dim = tree.dim();
        let proof = dim.is_multiple_of(divisor);
        for value in points().filter_map(|point| dim.value(&values(point)).ok()) {
            prop_assert!(proof == Proof::Unknown || (value % divisor == 0) == (proof == Proof::Yes), "{dim} by {divisor}: {proof:?}, {value}");
        }
    }

    #[test]
    fn text_parses_to_the_same_expression(tree in trees()) {
        let dim = tree.dim();
        if dim.sum().is_ok() {
            let text = dim.to_string();
            let parsed = Dim::parse(&text, &dims()).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(parsed.to_string(), text);
            prop_assert_eq!(parsed, dim);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[abcmin0-9()+*/%, -]{0,24}") {
        let _ = Dim::parse(&text, &dims());
    }
}

#[test]
fn minima_have_one_form_after_their_shared_terms() {
    let [n, m] = [Dim::new("n", 0..=4096), Dim::new("m", 1..=64)];
    let first = (&n + &m - 2).min(&n) - &n;
    assert_eq!(first, (&m - 2).min(0));
    assert_eq!(Dim::parse(&(&n + &first).to_string(), &[n.clone(), m.clone()]).unwrap(), &n + &first);
    assert_eq!(Dim::from(-i64::MAX).min(7).known(), Some(-i64::MAX));
}

#[test]
fn bounds_that_saturate_prove_nothing() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Dim::new(name, 0..=i64::MAX));
    let m = Dim::new("m", 0..=5);
    let quotient = -(&a * &b * &c) / (&m - 1);
    assert_eq!(quotient.compare(Relation::Le, 0), Proof::Unknown);
    let values =
        [(&a, 5), (&b, 5), (&c, 5), (&m, 0)].into_iter().fold(DimValues::new(), |values, (dim, value)| values.with(dim, value).unwrap());
    assert_eq!(quotient.value(&values).unwrap(), 125);
    assert_eq!(quotient.min(1).value(&values).unwrap(), 1);
}

#[test]
fn deep_and_wide_expressions_take_little_time() {
    let [n, m] = [Dim::new("n", 0..=1 << 40), Dim::new("m", 0..=1 << 40)];
    let start = std::time::Instant::now();
    let deep = (0..30).fold(n.clone(), |deep, _| (3 * deep).cdiv(7));
    assert_eq!(Dim::parse(&deep.to_string(), std::slice::from_ref(&n)).unwrap(), deep);
    let members: Vec<String> = (1..400).map(|k| format!("{k}*n - {}*m", 2 * k)).collect();
    let wide = Dim::parse(&format!("min({})", members.join(", ")), &[n, m]).unwrap_err().to_string();
    assert!(wide.starts_with("an expression of dims is too complex"), "{wide}");
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn floor_rounds_down_for_all_signs() {
    for (a, b) in (-9i128..=9).flat_map(|a| (-4..=4).map(move |b| (a, b))) {
        assert_eq!(floor(a, b), by_definition(a, b), "{a} / {b}");
    }
}

#[test]
fn expressions_have_one_form() {
    let [n, m] = [Dim::new("n", 0..=4096), Dim::new("m", 1..=64)];
    for (dim, text) in [
        (&n + &n, "2*n"),
        ((&n + 1) * (&n - 1), "n*n - 1"),
        (&n - &n, "0"),
        (5 - &n, "-n + 5"),
        (n.cdiv(1024), "cdiv(n, 1024)"),
        ((&n + 1023) / 1024, "cdiv(n, 1024)"),
        ((64 * &n).cdiv(1024), "cdiv(64*n, 1024)"),
        ((64 * &n) / 64, "n"),
        ((64 * &n + 63) / 64, "n"),
        (&n / 2 / 4, "n / 8"),
        ((&n / 2 + 3) / 4, "(n + 6) / 8"),
        ((3 * &n + 2048) / 1024, "(3*n) / 1024 + 2"),
        (&n / 4097, "0"),
        (&n % 8, "n % 8"),
        (3 * (&n % 8) + &n, "n + 3*(n % 8)"),
        (2 * (&n / 3), "2*(n / 3)"),
        (-(&n / 3), "-(n / 3)"),
        ((&n - 1) % 8, "(n + 7) % 8"),
        (&n * &m / &m, "n"),
        ((&n * &m + &n) / &m, "n + n / m"),
        ((&m - 1) / &m, "0"),
        ((4 * &n * &m) / (2 * &m), "2*n"),
        ((3 * &n * &m) / (2 * &m), "(3*m*n) / (2*m)"),
        (n.cdiv(&m), "(n - 1) / m + 1"),
        (n.min(&m), "min(m, n)"),
        (n.min(5000), "n"),
        (n.max(&m).max(3), "max(m, n, 3)"),
        ((&n + 1).min(&n + 3), "n + 1"),
        ((&n + 1).min(&m + 3), "min(m + 2, n) + 1"),
        (n.min(&m).min(7), "min(m, n, 7)"),
        (Dim::from(7) / 2, "3"),
        (Dim::from(-7) / 2, "-4"),
        (Dim::from(-7) % 2, "1"),
    ] {
        assert_eq!(dim.to_string(), text);
        assert_eq!(Dim::parse(text, &[n.clone(), m.clone()]).unwrap(), dim, "{text}");
    }
    assert_eq!((64 * &n).cdiv(1024), n.cdiv(16), "common factors are divided out for comparisons");
}

#[test]
fn proofs_that_kernels_need_are_found() {
    let [n, m] = [Dim::new("n", 0..=4096), Dim::new("m", 1..=64)];
    let yes = |a: &Dim, comparison, b: &Dim| assert_eq!(a.compare(comparison, b), Proof::Yes, "{a} {} {b}", comparison.operator());
    yes(&(n.cdiv(1024) * 1024), Relation::Ge, &n);
    yes(&(n.cdiv(1024) * 1024), Relation::Lt, &(&n + 1024));
    yes(&(&n / 8 * 8), Relation::Le, &n);
    yes(&(&n - &n / 2), Relation::Ge, &Dim::from(0));
    yes(&(&n % 8), Relation::Lt, &Dim::from(8));
    yes(&(&n % 8), Relation::Le, &n);
    yes(&n.min(&m), Relation::Le, &n);
    yes(&n.max(&m), Relation::Ge, &m);
    yes(&n.max(1), Relation::Gt, &Dim::from(0));
    yes(&n.min(&m), Relation::Le, &n.max(&m));
    yes(&(2 * &n + 1), Relation::Ne, &(4 * &m));
    yes(&(&n * &m), Relation::Ge, &n);
    assert_eq!(n.compare(Relation::Lt, 4096), Proof::Unknown);
    assert_eq!(n.compare(Relation::Gt, 4096), Proof::No);
    assert_eq!((8 * &n + 16).is_multiple_of(8), Proof::Yes);
    assert_eq!((8 * &n + 15).is_multiple_of(8), Proof::No);
    assert_eq!((4 * &n).is_multiple_of(8), Proof::Unknown);
    assert_eq!(n.bounds().unwrap(), 0..=4096);
    assert_eq!((&n - n.cdiv(3) * 2).bounds().unwrap(), -1..=1365);
}

#[test]
fn numbers_take_16_bytes() {
    assert_eq!(size_of::<Dim>(), 16);
    assert_eq!((Dim::from(6) * 7 - 2).known(), Some(40));
}

#[test]
fn mistakes_are_errors_where_values_are_used() {
    let n = Dim::new("n", 0..=8);
    let text = |dim: &Dim| dim.value(&DimValues::new()).unwrap_err().to_string();
    assert_eq!(text(&(&n / 0)), "`n` is divided by 0");
    assert_eq!(text(&((Dim::from(1) / 0) * Dim::from(0) + &n)), "`1` is divided by 0", "a mistake stays");
    assert_eq!(text(&(Dim::from(i64::MAX) + 1)), "an expression of dims exceeds 64 bits");
    assert_eq!(text(&(i64::MAX * &n * 2)), "an expression of dims exceeds 64 bits");
    assert_eq!(
        text(&Dim::new("2n", 0..=8)),
        "`2n` is no name for a dim\nhelp: a name has letters, digits and `_`, and begins with a letter; `min`, `max` and `cdiv` are functions"
    );
    assert_eq!(text(&Dim::new("min", 0..=8)).lines().next(), Some("`min` is no name for a dim"));
    assert_eq!(text(&Dim::new("n", -1..=8)), "dim `n` cannot be in -1..=8\nhelp: the lower bound is at least 0 and at most the upper one");
    assert!(text(&Dim::new("n", RangeInclusive::new(9, 8))).starts_with("dim `n` cannot be in 9..=8"));
    let other = Dim::new("n", 0..=9);
    let conflict = text(&(&n + other));
    assert!(
        conflict.starts_with("dim `n` is 0..=8 in kernel-runtime/src/dim/tests.rs:") && conflict.contains(" and 0..=9 in "),
        "{conflict}"
    );
    assert!(text(&n).starts_with("dim `n` has no value (declared in kernel-runtime/src/dim/tests.rs:"));
    let large = (0..400).fold(n.clone(), |large, number| (large * &n + number).max(number));
    assert_eq!(text(&large), "an expression of dims is too complex: at most 1000 factors, nested 32 deep, are possible");
    assert!(large.is_gt(4).is_err() && large.bounds().is_err() && large.compare(Relation::Gt, 4) == Proof::Unknown);
}

#[test]
fn values_are_checked_against_their_dims() {
    let [n, m] = [Dim::new("n", 0..=8), Dim::new("m", 0..=8)];
    let text = |values: Result<DimValues>| values.unwrap_err().to_string();
    assert!(text(DimValues::new().with(&n, 9)).starts_with("dim `n` is 9, allowed 0..=8 (declared in kernel-runtime/src/dim/tests.rs:"));
    assert_eq!(text(DimValues::new().with(&n, 4).unwrap().with(&n, 5)), "dim `n` is both 4 and 5");
    assert_eq!(text(DimValues::new().with(&(&n + 1), 4)), "`n + 1` cannot be set to a value\nhelp: set the dims that it names");
    assert!(text(DimValues::new().with(&n, 4).unwrap().with(&Dim::new("n", 0..=9), 4)).starts_with("dim `n` is 0..=8"));
    let values = DimValues::new().with(&n, 4).unwrap().with(&n, 4).unwrap().with(&m, 0).unwrap();
    assert_eq!((&n * 3 + &m).value(&values).unwrap(), 12);
    assert_eq!((&n / &m).value(&values).unwrap_err().to_string(), "`n` is divided by 0");
    assert!((&n + Dim::new("m", 0..=9)).value(&values).unwrap_err().to_string().starts_with("dim `m` is 0..=8"));
}

#[test]
fn undecided_comparisons_name_the_line_and_the_split() {
    let [n, m] = [Dim::new("n", 1..=1024), Dim::new("m", 1..=64)];
    let text = |decided: Result<bool>| decided.unwrap_err().to_string();
    let line = line!() + 1;
    let found = text((2 * &n).is_lt(9));
    assert_eq!(
        found,
        format!(
            "`2*n < 9` is not decided for n in 1..=1024 (kernel-runtime/src/dim/tests.rs:{line}:31)\nhelp: narrow `n` to 1..=4 or to 5..=1024"
        )
    );
    assert!(text(n.is_le(&m)).ends_with("\nhelp: narrow the ranges of the dims"));
    assert!(text(n.is_le(&m)).starts_with("`n <= m` is not decided for m in 1..=64, n in 1..=1024 ("));
    assert!(text(n.is_eq(&m)).starts_with("`n == m` is not"));
    assert!(n.is_ge(1).unwrap() && !n.is_lt(1).unwrap() && !n.is_eq(0).unwrap() && n.is_eq(&n).unwrap());
    assert!((Dim::from(3).is_gt(2)).unwrap());
}

#[test]
fn mistakes_in_a_text_name_the_column() {
    let n = Dim::new("n", 0..=8);
    let text = |text: &str| Dim::parse(text, std::slice::from_ref(&n)).unwrap_err().to_string();
    assert_eq!(text("n +"), "expected a number, a name, `(` or `-` at column 4 of `n +`");
    assert_eq!(text("(n"), "expected `)` or an operator at column 3 of `(n`");
    assert_eq!(text("n n"), "expected an operator or the end at column 3 of `n n`");
    assert_eq!(text("cdiv(n)"), "expected `,` and a divisor at column 7 of `cdiv(n)`");
    assert_eq!(text("min n"), "expected `(` at column 5 of `min n`");
    assert_eq!(text("9223372036854775808"), "expected a number of 64 bits at column 1 of `9223372036854775808`");
    assert_eq!(text("n + k"), "`n + k` names `k`, which is not declared");
    assert_eq!(text("n / 0"), "`n` is divided by 0");
    assert_eq!(
        text(&"(".repeat(10_000)).lines().next(),
        Some("an expression of dims is too complex: at most 1000 factors, nested 32 deep, are possible")
    );
    assert_eq!(text(&"-".repeat(10_000)), text(&"(".repeat(10_000)));
    assert_eq!(text(&"n".repeat(70_000)), text(&"(".repeat(10_000)));
    assert_eq!(Dim::parse(&i64::MIN.to_string(), &[]).unwrap().known(), Some(i64::MIN));
}
