//! THE TABLE of the instruction suite: what each row executes, on which inputs, and how close the answer must be.

mod atomic;
mod convert;
mod float;
mod half;
mod integer;
mod matrix;
mod predicate;
mod warp;

use kernel_sim::ptx::Type;

/// A family of rows: its name, and the function that lists them.
pub(crate) type Family = (&'static str, fn(&mut Rows));

/// Every family.
pub(crate) const FAMILIES: [Family; 8] = [
    ("integer", integer::rows),
    ("predicate", predicate::rows),
    ("convert", convert::rows),
    ("float", float::rows),
    ("half", half::rows),
    ("warp", warp::rows),
    ("matrix", matrix::rows),
    ("atomic", atomic::rows),
];

/// One kernel of the suite. Each thread has one case.
pub(crate) struct Row {
    /// The instruction, mostly.
    pub(crate) name: String,
    /// The registers `a`, `b`, `c`, `e`, `f` and on: each thread has its own values.
    pub(crate) inputs: Vec<Input>,
    /// The registers `d`, `d1`, `d2` and on, which are compared.
    pub(crate) outputs: Vec<Type>,
    /// The statements that compute the outputs from the inputs, in PTX.
    pub(crate) body: String,
    /// How close an answer must be.
    pub(crate) compare: Compare,
    /// How many warps of 32 cases.
    pub(crate) warps: u32,
}

/// The values of an input.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Input {
    pub(crate) ty: Type,
    pub(crate) domain: Domain,
}

/// Which values of a type are taken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Domain {
    /// Any, and what is special more often.
    Any,
    /// Any but 0.
    NonZero,
    /// Integers below this.
    Below(u64),
    /// Floats of about the size of 1.
    Moderate,
}

/// How close an answer must be to the recorded one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Compare {
    /// The same bits, NaNs included.
    Bits,
    /// Floats within this relative or this absolute distance; NaNs and infinities the same bits.
    Close { relative: f64, absolute: f64 },
}

/// The rows while they are listed.
#[derive(Default)]
pub(crate) struct Rows(pub(crate) Vec<Row>);

impl Rows {
    /// A row that is named for its first instruction. `inputs` lists types, `!` for [`Domain::NonZero`], `~` for [`Domain::Moderate`], and
    /// `<9` for [`Domain::Below`].
    pub(crate) fn add(&mut self, inputs: &str, outputs: &str, body: impl Into<String>) -> &mut Row {
        let body = body.into();
        let name = body.split([' ', ';']).next().unwrap_or_default().to_owned();
        self.named(&name, inputs, outputs, body)
    }

    /// A row with a name of its own.
    pub(crate) fn named(&mut self, name: &str, inputs: &str, outputs: &str, body: impl Into<String>) -> &mut Row {
        let index = self.0.len();
        self.0.push(Row {
            name: name.to_owned(),
            inputs: inputs.split_whitespace().map(input).collect(),
            outputs: outputs.split_whitespace().map(ty).collect(),
            body: body.into(),
            compare: Compare::Bits,
            warps: 6,
        });
        &mut self.0[index]
    }
}

impl Row {
    /// Answers may be that far from the recorded ones.
    pub(crate) fn close(&mut self, relative: f64, absolute: f64) -> &mut Row {
        self.compare = Compare::Close { relative, absolute };
        self
    }

    /// More or fewer cases.
    pub(crate) fn warps(&mut self, warps: u32) -> &mut Row {
        self.warps = warps;
        self
    }
}

fn ty(text: &str) -> Type {
    Type::parse(text).unwrap_or_else(|| panic!("`{text}` is no type"))
}

fn input(text: &str) -> Input {
    if let Some((name, bound)) = text.split_once('<') {
        return Input { ty: ty(name), domain: Domain::Below(bound.parse().expect("a bound is a number")) };
    }
    let domains = [('!', Domain::NonZero), ('~', Domain::Moderate)];
    let found = domains.into_iter().find_map(|(sign, domain)| Some((text.strip_suffix(sign)?, domain)));
    let (name, domain) = found.unwrap_or((text, Domain::Any));
    Input { ty: ty(name), domain }
}
