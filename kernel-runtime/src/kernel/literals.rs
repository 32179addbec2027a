//! Types, constants and scalar arguments of launches as text, and back.

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{ConstParam, Elem, Function};

use super::Kernel;
use super::parts::ir_params;
use crate::launch::scalar::IntegerType;
use crate::ops::recorder::{RecordedArg, RecordedLaunch};
use crate::ops::with_element;
use crate::{Element, Result, bf16, f8e4m3, f8e5m2, f16};

impl Kernel {
    /// The words for types and constants that [`RecordedLaunch::parameters`] writes as these names and values; or what is wrong with them.
    ///
    /// # Errors
    /// [`Error::Compile`](crate::Error::Compile) for a kernel whose IR cannot be read.
    pub fn key_of(&self, parameters: &[(&str, &str)]) -> Result<std::result::Result<Vec<u64>, String>> {
        Ok(key_of(self.parsed()?, parameters))
    }

    /// The dtype of the elements of a parameter, or of a scalar one, for the types of a key. The parameter is a number in [`Kernel::params`].
    pub fn dtype_of(&self, number: usize, key: &[u64]) -> Option<Dtype> {
        let func = self.parsed().ok()?;
        let at: usize = self.params().get(..number)?.iter().map(|param| ir_params(param.name, param.kind).len()).sum();
        match func.ty(func.params.get(at)?.value).elem() {
            Elem::Dtype(dtype) => Some(*dtype),
            Elem::Param(name) => {
                let position = func.types.iter().position(|param| param.name == *name)?;
                Dtype::from_code(*key.get(position)?)
            }
        }
    }

    /// The value of a scalar parameter with this argument word, for the types of a key.
    pub(crate) fn written(&self, number: usize, key: &[u64], word: u64) -> String {
        self.dtype_of(number, key).map_or_else(|| format!("{word:#x}"), |dtype| written(dtype, word))
    }
}

/// The value as Rust's `{:?}` writes it. A NaN is `NaN` if it is the one that a cast gives, and otherwise its bits.
pub(crate) fn written(dtype: Dtype, word: u64) -> String {
    let text = with_element!(dtype, T => format!("{:?}", T::of_bits(word)));
    if word_of(dtype, &text) == Some(word) { text } else { format!("{word:#x}") }
}

/// The argument word that `written` writes as this text, or another text of the same value.
pub fn word_of(dtype: Dtype, text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().filter(|word| dtype.bits() == 64 || word >> dtype.bits() == 0);
    }
    let narrow =
        |number: f32| kernel_lang::scalar::cast(kernel_lang::scalar::Scalar::from_bits(Dtype::F32, number.to_bits().into()), dtype).bits();
    match dtype {
        Dtype::Bool => text.parse::<bool>().ok().map(u64::from),
        Dtype::F32 => text.parse::<f32>().ok().map(|number| if number.is_nan() { f32::NAN } else { number }.to_bits().into()),
        Dtype::F64 => text.parse::<f64>().ok().map(|number| if number.is_nan() { f64::NAN } else { number }.to_bits()),
        // Narrow floats are written as the `f32` of the same value.
        _ if dtype.is_float() => text.parse::<f32>().ok().map(narrow),
        _ => {
            let (number, (least, most)) = (text.parse::<i128>().ok()?, dtype.int_range()?);
            (least..=most).contains(&number).then(|| number as u64 & (u64::MAX >> (64 - dtype.bits())))
        }
    }
}

/// The word of a constant's value, which [`ConstParam::written`] writes as this text.
fn constant_of(param: &ConstParam, text: &str) -> Option<u64> {
    match param.dtype {
        // A constant that is a `bool` is written as a number.
        Dtype::Bool => matches!(text, "0" | "1").then(|| u64::from(text == "1")),
        dtype if dtype.is_signed_int() => {
            let (number, (least, most)) = (text.parse::<i128>().ok()?, dtype.int_range()?);
            (least..=most).contains(&number).then_some(number as u64)
        }
        dtype => word_of(dtype, text),
    }
}

fn written_generics(func: &Function, key: &[u64]) -> Vec<(String, String)> {
    let super::Bindings { types, consts, .. } = super::key_words::bindings(func, key, &[]);
    let types = types.iter().map(|(name, dtype)| (name.to_string(), dtype.to_string()));
    types.chain(consts.iter().map(|(name, value)| (name.to_string(), super::key_words::written_constant(func, name, *value)))).collect()
}

fn key_of(func: &Function, parameters: &[(&str, &str)]) -> std::result::Result<Vec<u64>, String> {
    let names: Vec<&str> = func.types.iter().map(|param| &*param.name).chain(func.consts.iter().map(|param| &*param.name)).collect();
    if !parameters.iter().map(|(name, _)| *name).eq(names.iter().copied()) {
        let expected = if names.is_empty() { "no types and constants".to_owned() } else { format!("`<{}>`", names.join(", ")) };
        return Err(format!("the kernel has {expected}"));
    }
    let (types, constants) = parameters.split_at(func.types.len());
    let mut key = Vec::with_capacity(parameters.len());
    for (param, (name, text)) in func.types.iter().zip(types) {
        let dtype = text.parse::<Dtype>().ok().filter(|dtype| param.choices.contains(dtype));
        key.push(dtype.ok_or_else(|| format!("`{text}` is no dtype that `{name}` can be"))?.code());
    }
    for (param, (name, text)) in func.consts.iter().zip(constants) {
        key.push(constant_of(param, text).ok_or_else(|| format!("`{text}` is no value of `{name}`, whose type is `{}`", param.dtype))?);
    }
    Ok(key)
}

impl RecordedLaunch {
    /// The names of the kernel's types and constants, and their values as text.
    pub fn generics(&self) -> Vec<(String, String)> {
        self.kernel.parsed().map_or_else(|_| Vec::new(), |func| written_generics(func, self.key()))
    }

    /// This launch with the configurations of another one: of the same kernel with the same types, constants, grid and scalars, and with tensors of the same dtypes. `None`
    /// for another launch.
    pub fn configured_as(mut self, other: &RecordedLaunch) -> Option<RecordedLaunch> {
        let is_same = |(own, other): (&RecordedArg, &RecordedArg)| match (own, other) {
            (RecordedArg::Tensor { dtype, writes, .. }, RecordedArg::Tensor { dtype: of, writes: also, .. }) => {
                (dtype, writes) == (of, also)
            }
            (RecordedArg::Word { word, .. }, RecordedArg::Word { word: of, .. }) => word == of,
            (RecordedArg::Dim { dim, ty }, RecordedArg::Dim { dim: of, ty: also }) => (dim, ty) == (of, also),
            _ => false,
        };
        let fits = std::ptr::eq(self.kernel, other.kernel) && self.key == other.key && self.grid == other.grid;
        let fits = fits && self.args.len() == other.args.len() && self.args.iter().zip(&other.args).all(is_same);
        self.tuning.clone_from(&other.tuning);
        fits.then_some(self)
    }
}

impl IntegerType {
    /// Whether a parameter of this type has the dtype in a kernel.
    pub fn takes(self, dtype: Dtype) -> bool {
        self.dtype() == dtype
    }

    /// The type that a parameter of a dtype has, if no other is stated: `usize` for 64 bits with a sign. `None` for a dtype that takes no dims.
    pub fn of_dtype(dtype: Dtype) -> Option<IntegerType> {
        match dtype {
            Dtype::I64 => Some(IntegerType::Usize),
            _ => IntegerType::ALL.into_iter().find(|ty| ty.dtype() == dtype),
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel_lang::ir::TypeParam;

    use super::*;

    #[test]
    fn words_of_scalars_are_read_as_they_are_written() {
        for dtype in Dtype::ALL {
            let mut state = 0x9e37_79b9_7f4a_7c15u64;
            let mask = u64::MAX >> (64 - dtype.bits());
            let edges = [0, 1, mask, mask >> 1, (mask >> 1) + 1];
            let random = (0..2000).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.rotate_left(17)
            });
            for word in edges.into_iter().chain(random).map(|word| word & mask) {
                let text = written(dtype, word);
                assert_eq!(word_of(dtype, &text), Some(word), "{text} as {dtype}");
            }
        }
        assert_eq!(written(Dtype::F32, f32::NAN.to_bits().into()), "NaN");
        assert_eq!(written(Dtype::F32, 0xffc0_0001), "0xffc00001");
        assert_eq!(written(Dtype::Bf16, 0x3dcd), "0.100097656");
        for (dtype, text) in [
            (Dtype::U8, "256"),
            (Dtype::I8, "-129"),
            (Dtype::Bool, "1"),
            (Dtype::I32, "0.5"),
            (Dtype::F32, "x"),
            (Dtype::U8, "0x100"),
            (Dtype::I64, ""),
        ] {
            assert_eq!(word_of(dtype, text), None, "{text} as {dtype}");
        }
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let mut func = Function::new("k");
        func.types.push(TypeParam { name: "T".into(), choices: Dtype::FLOATS.to_vec() });
        for (name, dtype) in [("N", Dtype::I64), ("FAST", Dtype::Bool), ("SCALE", Dtype::F32), ("BITS", Dtype::U64)] {
            func.consts.push(ConstParam { name: name.into(), dtype });
        }
        let key = [Dtype::Bf16.code(), (-3i64).cast_unsigned(), 1, 0.5f32.to_bits().into(), u64::MAX];
        let text = crate::kernel::key_words::parameters(&func, &key, &[]);
        assert_eq!(text, "T = bf16, N = -3, FAST = 1, SCALE = 0.5, BITS = 18446744073709551615");
        let parts =
            |text: &str| text.split(", ").map(|part| part.split_once(" = ").unwrap()).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
        let read = |text: &str| {
            let parts: Vec<(String, String)> = parts(text);
            key_of(&func, &parts.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>())
        };
        assert_eq!(read(&text).unwrap(), key);
        let error = |from: &str, to: &str| read(&text.replace(from, to)).unwrap_err();
        assert_eq!(error("bf16", "i32"), "`i32` is no dtype that `T` can be");
        assert_eq!(error("-3", "9223372036854775808"), "`9223372036854775808` is no value of `N`, whose type is `i64`");
        assert_eq!(error("FAST = 1", "FAST = 2"), "`2` is no value of `FAST`, whose type is `bool`");
        assert_eq!(error("N = -3, ", ""), "the kernel has `<T, N, FAST, SCALE, BITS>`");
    }
}
