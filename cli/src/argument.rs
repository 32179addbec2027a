//! Kernel arguments on the command line: `f32:1024=random`, `u64=5`.

use std::fmt::Write;
use std::str::FromStr;

use half::{bf16, f16};

/// A kernel argument.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Argument {
    /// `TYPE=VALUE`: the bytes of one scalar.
    Scalar(Vec<u8>),
    /// `TYPE:COUNT[=FILL]`: a buffer, passed by its address.
    Buffer { element: Element, count: usize, fill: Fill },
}

/// The contents of a buffer before the launch.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fill {
    Zeros,
    Ones,
    /// 0, 1, 2, ..
    Iota,
    /// Floats between -4 and 4, or any integers; the same in every run.
    Random,
    /// Integers from 0 to below this number, or floats of such values; the same in every run.
    Below(u64),
    /// Uninitialised: reading it is a fault.
    Nothing,
    /// The contents of a file.
    File(String),
}

macro_rules! elements {
    ($($name:ident $text:literal $ty:ty),* $(,)?) => {
        /// The element type of a value.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Element { $($name),* }

        const NAMES: &[&str] = &[$($text),*];

        impl Element {
            fn named(name: &str) -> Option<Element> {
                match name { $($text => Some(Element::$name),)* _ => None }
            }

            pub(crate) fn bytes(self) -> usize {
                match self { $(Element::$name => size_of::<$ty>()),* }
            }

            fn parse(self, text: &str) -> Option<Vec<u8>> {
                match self { $(Element::$name => text.parse::<$ty>().ok().map(|value| value.to_le_bytes().to_vec())),* }
            }

            /// The value nearest to a number.
            fn nearest(self, value: f64) -> Vec<u8> {
                match self { $(Element::$name => elements!(@ value $name $ty).to_le_bytes().to_vec()),* }
            }

            /// The values as text, separated by spaces.
            pub(crate) fn show(self, bytes: &[u8]) -> String {
                let mut text = String::new();
                for value in bytes.chunks_exact(self.bytes()) {
                    let _ = match self { $(Element::$name => match value.try_into() {
                        Ok(bytes) => write!(text, "{} ", <$ty>::from_le_bytes(bytes)),
                        Err(_) => Ok(()),
                    }),* };
                }
                text.trim_end().to_owned()
            }
        }
    };
    (@ $value:ident F16 $ty:ty) => { f16::from_f64($value) };
    (@ $value:ident Bf16 $ty:ty) => { bf16::from_f64($value) };
    (@ $value:ident $name:ident $ty:ty) => { $value as $ty };
}

elements! {
    F16 "f16" f16, Bf16 "bf16" bf16, F32 "f32" f32, F64 "f64" f64,
    I8 "i8" i8, I16 "i16" i16, I32 "i32" i32, I64 "i64" i64,
    U8 "u8" u8, U16 "u16" u16, U32 "u32" u32, U64 "u64" u64,
}

impl Element {
    fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }
}

impl Fill {
    /// The bytes before the launch; none if the buffer is uninitialised.
    pub(crate) fn bytes(&self, element: Element, count: usize) -> Result<Option<Vec<u8>>, String> {
        let each = |value: &mut dyn FnMut(usize) -> Vec<u8>| Ok(Some((0..count).flat_map(value).collect()));
        match self {
            Fill::Nothing => Ok(None),
            Fill::Zeros => Ok(Some(vec![0; count * element.bytes()])),
            Fill::Ones => each(&mut |_| element.nearest(1.0)),
            Fill::Iota => each(&mut |index| element.nearest(index as f64)),
            Fill::Random => {
                let mut next = random(SEED);
                each(&mut |_| {
                    let bits = next();
                    if element.is_float() {
                        element.nearest((bits >> 40) as f64 / f64::from(1 << 21) - 4.0)
                    } else {
                        bits.to_le_bytes()[8 - element.bytes()..].to_vec()
                    }
                })
            }
            Fill::Below(end) => {
                let mut next = random(SEED);
                each(&mut |_| element.nearest(((next() >> 11) % end.max(&1)) as f64))
            }
            Fill::File(path) => {
                let bytes = std::fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))?;
                let wanted = count * element.bytes();
                if bytes.len() == wanted {
                    Ok(Some(bytes))
                } else {
                    Err(format!("`{path}` has {} bytes, and {wanted} are wanted", bytes.len()))
                }
            }
        }
    }
}

/// The random bits of fills, which are the same in every run.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Random bits, the same for the same seed, which is not 0: xorshift64 (Marsaglia, *Xorshift RNGs*, 2003).
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Argument, String> {
        let (left, right) = text.split_once('=').map_or((text, None), |(left, right)| (left, Some(right)));
        let (name, count) = left.split_once(':').map_or((left, None), |(name, count)| (name, Some(count)));
        let element = Element::named(name).ok_or_else(|| format!("`{name}` is no type; there are {}", NAMES.join(", ")))?;
        let Some(count) = count else {
            let value = right.ok_or("a number is `TYPE=VALUE`, memory is `TYPE:COUNT`")?;
            let bytes = element.parse(value).ok_or_else(|| format!("`{value}` is no `{name}`"))?;
            return Ok(Argument::Scalar(bytes));
        };
        let count = count.parse().map_err(|_| format!("`{count}` is no number of elements"))?;
        let fill = match right {
            None | Some("zeros") => Fill::Zeros,
            Some("ones") => Fill::Ones,
            Some("iota") => Fill::Iota,
            Some("random") => Fill::Random,
            Some("nothing") => Fill::Nothing,
            Some(other) => match (other.strip_prefix('@'), other.strip_prefix("below:").map(str::parse)) {
                (Some(path), _) => Fill::File(path.to_owned()),
                (_, Some(Ok(end))) => Fill::Below(end),
                _ => return Err(format!("`{other}` is no content; there are zeros, ones, iota, random, below:N, nothing and @FILE")),
            },
        };
        Ok(Argument::Buffer { element, count, fill })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        assert_eq!("u64=5".parse(), Ok(Argument::Scalar(5u64.to_le_bytes().to_vec())));
        assert_eq!("f16:8=iota".parse(), Ok(Argument::Buffer { element: Element::F16, count: 8, fill: Fill::Iota }));
        assert_eq!("i8:3".parse(), Ok(Argument::Buffer { element: Element::I8, count: 3, fill: Fill::Zeros }));
        let file = Fill::File("x.bin".to_owned());
        assert_eq!("f32:1=@x.bin".parse(), Ok(Argument::Buffer { element: Element::F32, count: 1, fill: file }));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in
            [("f31:4", "no type"), ("f32", "TYPE=VALUE"), ("u8=300", "no `u8`"), ("f32:x", "no number"), ("f32:4=two", "@FILE")]
        {
            let error = text.parse::<Argument>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn contents_are_made_and_shown() {
        let bytes = Fill::Iota.bytes(Element::Bf16, 4).unwrap().unwrap();
        assert_eq!(Element::Bf16.show(&bytes), "0 1 2 3");
        let random = Fill::Random.bytes(Element::F32, 100).unwrap().unwrap();
        assert!(random.chunks(4).all(|value| f32::from_le_bytes(value.try_into().unwrap()).abs() <= 4.0));
        assert_eq!(Fill::Nothing.bytes(Element::F32, 4), Ok(None));
        let below = "i32:100=below:7".parse().unwrap();
        let Argument::Buffer { element, count, fill } = below else { panic!("it is a buffer") };
        let below: Vec<i32> =
            fill.bytes(element, count).unwrap().unwrap().chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
        assert!((0..7).all(|number| below.contains(&number)) && below.iter().all(|number| (0..7).contains(number)));
    }
}
