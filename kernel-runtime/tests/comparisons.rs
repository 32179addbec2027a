//! Comparisons of tensors on the CPU: worked cases of every field, and random tensors of every element type beside naive definitions. `tensors.rs`
//! compares tensors of other devices.

use kernel_runtime::prelude::*;
use kernel_runtime::{Comparison, Dtype, compare};
use proptest::prelude::*;

fn comparison<T: Element>(a: &[T], b: &[T]) -> Comparison {
    compare(&Device::cpu().tensor(a).unwrap(), &Device::cpu().tensor(b).unwrap()).unwrap()
}

/// The number of differing elements, the largest absolute and relative errors, and the largest difference in ULP.
fn errors(comparison: &Comparison) -> (usize, f64, f64, u64) {
    assert_eq!(comparison.bit_equal, comparison.differing == 0);
    assert_eq!(comparison.bit_equal, comparison.first_difference.is_none());
    (comparison.differing, comparison.max_absolute_error, comparison.max_relative_error, comparison.max_ulp)
}

#[test]
fn empty_tensors_and_scalars_are_compared() {
    let cpu = Device::cpu();
    let empty = compare(&cpu.zeros::<f32>([0, 3]).unwrap(), &cpu.zeros::<f32>([0, 3]).unwrap()).unwrap();
    assert_eq!((errors(&empty), empty.within(0.0, 0.0)), ((0, 0.0, 0.0, 0), true));
    assert_eq!(empty.to_string(), "all 0 elements of f32 are bit equal\nlargest errors: 0 absolute, 0 relative, 0 ulp");
    let scalar = |value: i32| cpu.tensor_from(&[value], [0usize; 0]).unwrap();
    let scalars = compare(&scalar(5), &scalar(3)).unwrap();
    assert!(scalars.first_difference.unwrap().index.is_empty());
}

#[test]
fn different_shapes_are_an_error() {
    let (a, b) = (Device::cpu().zeros::<f32>([2, 3]).unwrap(), Device::cpu().zeros::<f32>([3, 2]).unwrap());
    let error = compare(&a, &b).unwrap_err();
    assert!(matches!(error, Error::ArgumentShape { .. }));
    assert_eq!(
        error.to_string(),
        "`compare`: argument `b` has the shape [3, 2], but [2, 3] is expected: the shape of `a`\n\
         help: give both tensors one shape with `.reshape(..)`, or compare slices of them"
    );
}

#[test]
fn a_failed_copy_is_an_error() {
    let x = Device::cpu().zeros::<f32>(3).unwrap();
    let mut result = Ok(());
    let captured = Replay::capture(Device::cpu().stream(), || {
        result = compare(&x, &x).map(|_| ());
        Ok(())
    });
    assert!(captured.is_ok() && matches!(result, Err(Error::InCapture { .. })));
}

#[test]
fn zeros_of_different_signs_are_no_error() {
    let zeros = comparison(&[0.0f64, 1.0], &[-0.0, 1.0]);
    assert_eq!((errors(&zeros), zeros.within(0.0, 0.0)), ((1, 0.0, 0.0, 0), true));
    assert_eq!(
        zeros.to_string(),
        "1 of 2 elements of f64 differ\nlargest errors: 0 absolute, 0 relative, 0 ulp\nfirst difference at [0]: 0.0 and -0.0"
    );
    assert_eq!(errors(&comparison(&[f8e4m3::from_bits(0x80)], &[f8e4m3::default()])), (1, 0.0, 0.0, 0));
    assert_eq!(errors(&comparison(&[-f32::from_bits(1)], &[f32::from_bits(2)])), (1, f64::from(f32::from_bits(3)), 1.5, 3));
}

#[test]
fn nan_is_close_to_nothing() {
    let quiet = f32::from_bits(0x7fc0_0001);
    let nan = comparison(&[1.0, f32::NAN, 3.0, quiet, f32::NAN], &[1.0, 2.0, f32::NAN, f32::NAN, f32::NAN]);
    assert_eq!((nan.nan_mismatches, nan.nan_pairs, errors(&nan)), (2, 2, (3, 0.0, 0.0, 0)));
    assert!(!nan.within(f64::INFINITY, f64::INFINITY));
    let text = "3 of 5 elements of f32 differ, 2 are NaN in one tensor only, 2 are NaN in both tensors\n\
                largest errors: 0 absolute, 0 relative, 0 ulp\n\
                first difference at [1]: NaN (0x7fc00000) and 2.0";
    assert_eq!(nan.to_string(), text);
    let same = comparison(&[f16::NAN], &[f16::NAN]);
    assert!(same.bit_equal && !same.within(1.0, 1.0));
    assert_eq!(
        same.to_string(),
        "all 1 elements of f16 are bit equal, 1 is NaN in both tensors\nlargest errors: 0 absolute, 0 relative, 0 ulp"
    );
    let other = comparison(&[f8e5m2::from_bits(0x7d)], &[f8e5m2::from_bits(0xff)]).first_difference.unwrap();
    assert_eq!((&other.a[..], &other.b[..]), ("NaN (0x7d)", "NaN (0xff)"));
}

#[test]
fn an_infinity_is_close_to_itself_only() {
    let infinity = f32::INFINITY;
    let same = comparison(&[infinity, -infinity], &[infinity, -infinity]);
    assert_eq!((errors(&same), same.within(0.0, 0.0)), ((0, 0.0, 0.0, 0), true));
    for (a, b, ulp) in [(infinity, f32::MAX, 1), (f32::MAX, infinity, 1), (infinity, -infinity, 2 * 0x7f80_0000)] {
        let comparison = comparison(&[a], &[b]);
        assert_eq!(errors(&comparison), (1, f64::INFINITY, f64::INFINITY, ulp), "{a} and {b}");
        assert!(!comparison.within(f64::INFINITY, f64::INFINITY));
    }
    assert!(comparison(&[infinity], &[1.0]).to_string().contains("largest errors: inf absolute, inf relative, 1073741824 ulp"));
    // The difference of finite numbers of `f64` can be infinite.
    assert_eq!(comparison(&[f64::MAX], &[-f64::MAX]).max_absolute_error, f64::INFINITY);
}

#[test]
fn an_error_beside_zero_has_no_relative_tolerance() {
    let zero = comparison(&[0.5f32], &[0.0]);
    assert_eq!((zero.max_absolute_error, zero.max_relative_error), (0.5, f64::INFINITY));
    assert!(zero.within(0.5, 0.0) && !zero.within(0.4, 1e9) && !zero.within(0.0, f64::INFINITY));
    assert!(comparison(&[0.0f32], &[0.5]).within(0.0, 1.0));
}

#[test]
fn negative_tolerances_allow_no_error() {
    let (equal, apart) = (comparison(&[1.0f32, -0.0], &[1.0, 0.0]), comparison(&[1.0f32], &[1.5]));
    for (atol, rtol) in [(-1.0, 1.0), (1.0, -0.1), (f64::NAN, 1.0), (1.0, f64::NAN)] {
        assert!(equal.within(atol, rtol) && !apart.within(atol, rtol), "{atol} {rtol}");
    }
    assert!(!comparison(&[f32::NAN], &[f32::NAN]).within(-1.0, 0.0));
}

#[test]
fn integers_are_not_rounded() {
    let close = comparison(&[i64::MAX, i64::MIN], &[i64::MAX - 1, i64::MIN + 1]);
    assert_eq!((errors(&close).0, close.max_ulp), (2, 1));
    assert!(close.within(1.0, 0.0) && !close.within(0.99, 0.0));
    assert_eq!(
        close.to_string(),
        "2 of 2 elements of i64 differ\nlargest errors: 1 absolute, 1.084e-19 relative\n\
         first difference at [0]: 9223372036854775807 and 9223372036854775806"
    );
    // An `f64` has no number between these tolerances.
    let odd = comparison(&[(1i64 << 53) + 1], &[0]);
    assert!(!odd.within(2f64.powi(53), 0.0) && odd.within(2f64.powi(53) + 2.0, 0.0));
    let far = comparison(&[i64::MIN, 0], &[i64::MAX, 0]);
    assert_eq!((far.max_ulp, far.max_absolute_error), (u64::MAX, 2f64.powi(64)));
    assert!(far.within(2f64.powi(64), 0.0) && !far.within(2f64.powi(64).next_down(), 0.0) && far.within(0.0, f64::INFINITY));
    let unsigned = comparison(&[u64::MAX], &[(1 << 63) + 1]);
    assert_eq!(unsigned.max_ulp, (1 << 63) - 2);
    assert!(!unsigned.within(((1u64 << 63) - 1024) as f64, 0.0) && unsigned.within((1u64 << 63) as f64, 0.0));
    assert_eq!(errors(&comparison(&[-128i8], &[127])), (1, 255.0, 255.0 / 127.0, 255));
    assert_eq!(errors(&comparison(&[true, false], &[true, true])), (1, 1.0, 1.0, 1));
}

#[test]
fn long_tensors_are_compared_in_parts() {
    let len = 1_000_003;
    let (a, mut b) = (vec![1.0f32; len], vec![1.0f32; len]);
    b[700_001] = 1.5;
    b[len - 1] = f32::NAN;
    let tensor = |elements: &[f32]| Device::cpu().tensor_from(elements, [1, len]).unwrap();
    let long = compare(&tensor(&a), &tensor(&b)).unwrap();
    assert_eq!((errors(&long), long.nan_mismatches), ((2, 0.5, 1.0 / 3.0, 1 << 22), 1));
    assert_eq!(long.first_difference.unwrap().index, [0, 700_001]);
}

/// An element type with naive definitions of its differences.
trait Naive: Element {
    /// The difference in ULP; `None` beside a NaN.
    fn ulp(self, other: Self) -> Option<u64>;
    /// The absolute and the relative error; `None` beside a NaN.
    fn errors(self, other: Self) -> Option<(f64, f64)>;
    /// Whether the element is within the tolerances.
    fn is_close(self, other: Self, atol: f64, rtol: f64) -> bool;
    fn is_nan(self) -> bool;
}

macro_rules! naive_integers {
    ($($ty:ty),+) => {$(
        impl Naive for $ty {
            fn ulp(self, other: $ty) -> Option<u64> {
                Some(u64::try_from((i128::from(self) - i128::from(other)).abs()).unwrap())
            }

            fn errors(self, other: $ty) -> Option<(f64, f64)> {
                let error = (i128::from(self) - i128::from(other)).abs() as f64;
                Some((error, if error == 0.0 { 0.0 } else { error / i128::from(other).abs() as f64 }))
            }

            fn is_close(self, other: $ty, atol: f64, rtol: f64) -> bool {
                let tolerance = atol + rtol * i128::from(other).abs() as f64;
                self == other || (!tolerance.is_nan() && (i128::from(self) - i128::from(other)).abs() <= tolerance.floor() as i128)
            }

            fn is_nan(self) -> bool {
                false
            }
        }
    )+};
}

naive_integers!(bool, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! naive_floats {
    ($($ty:ty: $bits:ty),+) => {$(
        impl Naive for $ty {
            /// Counts the numbers of each sign.
            fn ulp(self, other: $ty) -> Option<u64> {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let (one, two) = (self.to_bits(), other.to_bits());
                let (from_zero, other_from_zero) = (u64::from(one & !SIGN), u64::from(two & !SIGN));
                let has_one_sign = one & SIGN == two & SIGN;
                let apart = if has_one_sign { from_zero.abs_diff(other_from_zero) } else { from_zero + other_from_zero };
                (!self.is_nan() && !other.is_nan()).then_some(apart)
            }

            fn errors(self, other: $ty) -> Option<(f64, f64)> {
                let (a, b) = (f64::from(self), f64::from(other));
                if a.is_nan() || b.is_nan() {
                    None
                } else if a == b {
                    Some((0.0, 0.0))
                } else if (a - b).is_infinite() {
                    Some((f64::INFINITY, f64::INFINITY))
                } else {
                    Some(((a - b).abs(), (a - b).abs() / b.abs()))
                }
            }

            fn is_close(self, other: $ty, atol: f64, rtol: f64) -> bool {
                let (a, b) = (f64::from(self), f64::from(other));
                a == b || ((a - b).is_finite() && (a - b).abs() <= atol + rtol * b.abs())
            }

            fn is_nan(self) -> bool {
                f64::from(self).is_nan()
            }
        }
    )+};
}

naive_floats!(f8e4m3: u8, f8e5m2: u8, f16: u16, bf16: u16, f32: u32, f64: u64);

/// Compares both tensors, and checks every field against its definition.
fn check<T: Naive>(bits: &[(u64, u64)], tolerances: &[(f64, f64)]) {
    let (a, b): (Vec<T>, Vec<T>) = bits.iter().map(|&(a, b)| (T::of_bits(a), T::of_bits(b))).unzip();
    let pairs = || a.iter().copied().zip(b.iter().copied());
    let found = comparison(&a, &b);
    let differs = |(a, b): (T, T)| a.bits() != b.bits();
    assert_eq!(found.dtype, T::DTYPE);
    let errors: Vec<(f64, f64)> = pairs().filter_map(|(a, b)| a.errors(b)).collect();
    let largest = |errors: &mut dyn Iterator<Item = f64>| errors.fold(0.0, f64::max);
    let (absolute, relative) = (largest(&mut errors.iter().map(|error| error.0)), largest(&mut errors.iter().map(|error| error.1)));
    let ulp = pairs().filter_map(|(a, b)| a.ulp(b)).max().unwrap_or(0);
    assert_eq!(self::errors(&found), (pairs().filter(|&pair| differs(pair)).count(), absolute, relative, ulp));
    assert_eq!(found.nan_mismatches, pairs().filter(|(a, b)| a.is_nan() != b.is_nan()).count());
    assert_eq!(found.nan_pairs, pairs().filter(|(a, b)| a.is_nan() && b.is_nan()).count());
    assert_eq!(found.first_difference.as_ref().map(|first| first.index[0]), pairs().position(differs));
    // The errors themselves are tolerances that are just large enough.
    let finite = |&(absolute, relative): &(f64, f64)| absolute.is_finite() && relative.is_finite();
    let of_errors = errors.iter().filter(|error| finite(error)).flat_map(|&(absolute, relative)| [(absolute, 0.0), (0.0, relative)]);
    for (atol, rtol) in tolerances.iter().copied().chain(of_errors) {
        let expected = pairs().all(|(a, b)| a.is_close(b, atol, rtol));
        assert_eq!(found.within(atol, rtol), expected, "{atol} {rtol}: {a:?} {b:?}");
    }
}

fn check_every_type(bits: &[(u64, u64)], tolerances: &[(f64, f64)]) {
    check::<bool>(bits, tolerances);
    check::<i8>(bits, tolerances);
    check::<i16>(bits, tolerances);
    check::<i32>(bits, tolerances);
    check::<i64>(bits, tolerances);
    check::<u8>(bits, tolerances);
    check::<u16>(bits, tolerances);
    check::<u32>(bits, tolerances);
    check::<u64>(bits, tolerances);
    check::<f16>(bits, tolerances);
    check::<bf16>(bits, tolerances);
    check::<f32>(bits, tolerances);
    check::<f64>(bits, tolerances);
    check::<f8e4m3>(bits, tolerances);
    check::<f8e5m2>(bits, tolerances);
}

/// The bits of an element: any bits, or special values of a float type in the low bits.
fn bits() -> impl Strategy<Value = u64> {
    const SPECIAL: [u64; 18] = [
        0,
        1,
        0x7f,
        0x80,
        0xff,
        0x7c,
        0xfc,
        0x7c00,
        0xfc00,
        0x7f80,
        0x8000,
        0xffff,
        0x7f80_0000,
        0x8000_0000,
        0x7ff0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        u64::MAX,
    ];
    prop_oneof![any::<u64>(), 0u64..200, prop::sample::select(SPECIAL.to_vec())]
}

/// The bits of two elements that are often equal or close.
fn pair() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        bits().prop_map(|a| (a, a)),
        (bits(), -3i64..4).prop_map(|(a, step)| (a, a.wrapping_add_signed(step))),
        (bits(), 0u32..64).prop_map(|(a, bit)| (a, a ^ (1 << bit))),
        (bits(), bits()),
    ]
}

fn tolerance() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0f64..1.0,
        (0u32..5).prop_map(f64::from),
        (-40i32..40).prop_map(|power| 10f64.powi(power)),
        Just(f64::INFINITY)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_field_has_its_definition(
        pairs in prop::collection::vec(pair(), 0..12),
        tolerances in prop::collection::vec((tolerance(), tolerance()), 12),
    ) {
        check_every_type(&pairs, &tolerances);
    }

    #[test]
    fn close_tensors_have_the_tolerances_of_their_definition(
        pairs in prop::collection::vec((any::<u64>(), -3i64..4).prop_map(|(a, step)| (a, a.wrapping_add_signed(step))), 100),
        tolerances in prop::collection::vec((tolerance(), tolerance()), 12),
    ) {
        check_every_type(&pairs, &tolerances);
    }
}

/// All pairs of a type with 256 values. The number of values in between defines the difference in ULP.
#[test]
fn all_pairs_of_small_floats_have_their_definition() {
    fn of<T: Naive + PartialOrd>() {
        let all = (0..256).map(|bits| T::of_bits(bits));
        let mut numbers: Vec<T> = all.clone().filter(|x| !x.is_nan()).collect();
        numbers.sort_by(|a, b| a.partial_cmp(b).unwrap());
        numbers.dedup();
        let rank = |x: T| numbers.iter().position(|number| *number == x);
        for (a, b) in all.clone().flat_map(|a| all.clone().map(move |b| (a, b))) {
            let ulp = rank(a).zip(rank(b)).map_or(0, |(a, b)| a.abs_diff(b));
            assert_eq!(comparison(&[a], &[b]).max_ulp, ulp as u64, "{a:?} and {b:?} of {}", T::DTYPE);
            check::<T>(&[(a.bits(), b.bits())], &[(0.5, 0.0), (0.0, 0.25), (0.5, 0.25)]);
        }
    }
    of::<f8e4m3>();
    of::<f8e5m2>();
    assert_eq!(f8e4m3::DTYPE, Dtype::F8E4M3);
}
