//! A case, and the themes that cases belong to.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::lab::{Arg, Lab, Source};
use crate::number::Number;

/// The outcome of a check. The error says what is wrong.
pub(crate) type Check = Result<(), String>;

/// One row of a theme: a name, and what is computed and held to a reference.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) run: Box<dyn Fn(&mut Lab) -> Check + Send + Sync>,
    /// Does it run only on GPUs, and where all cases are asked for? A usual run has no time for it.
    pub(crate) is_further: bool,
}

impl Case {
    pub(crate) fn new(name: impl Into<String>, run: impl Fn(&mut Lab) -> Check + Send + Sync + 'static) -> Case {
        Case { name: name.into(), run: Box::new(run), is_further: false }
    }
}

/// The distribution that the elements of an input are drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// Any bits, with the corners of the type among them.
    Any,
    /// Numbers of an interval.
    Within(f64, f64),
    /// Any bits, but often one of a few numbers, so that equal ones meet.
    Few,
    /// Integers from the first to before the second, also as floats.
    Ints(i128, i128),
    /// NaN in half of the elements, else numbers of moderate size.
    Nans,
}

impl Draw {
    pub(crate) fn array(self, lab: &mut Lab, dtype: Dtype, len: usize) -> Array {
        match self {
            Draw::Any => lab.any(dtype, len),
            Draw::Within(low, high) => lab.within(dtype, len, low, high),
            Draw::Ints(low, high) => lab.ints(dtype, len, low, high),
            Draw::Few => {
                let few = Array::new(dtype, [0.0, -0.0, 1.0, -1.0, 2.0, 100.0, -100.0].map(Number::Float)).bits;
                let mut array = lab.any(dtype, len);
                array.bits.iter_mut().for_each(|bits| *bits = if lab.below(3) > 0 { few[lab.below(few.len())] } else { *bits });
                array
            }
            Draw::Nans => {
                let mut array = lab.within(dtype, len, -10.0, 10.0);
                let nan = Array::new(dtype, [Number::Float(f64::NAN)]).bits[0];
                array.bits.iter_mut().for_each(|bits| *bits = if lab.below(2) == 0 { nan } else { *bits });
                array
            }
        }
    }
}

/// A case that holds a kernel to being refused with that message, and a help.
pub(crate) fn refused(name: impl Into<String>, source: Source, message: &'static str) -> Case {
    Case::new(name, move |_| match source.lower() {
        Ok(_) => Err(format!("accepted, not refused with \"{message}\": {}", source.text)),
        Err(errors) if errors.contains(message) && errors.contains("help: ") => Ok(()),
        Err(errors) => Err(format!("refused otherwise than with \"{message}\" and a help:\n{errors}in {}", source.text)),
    })
}

/// A kernel that computes each element of its output from the elements of its inputs at the same index.
pub(crate) struct Elementwise {
    /// The types of `x`, `y`, `z`, and what they are drawn from.
    pub(crate) inputs: Vec<(Dtype, Draw)>,
    pub(crate) out: Dtype,
    /// An expression of the language in `x`, `y`, `z`.
    pub(crate) expression: String,
    pub(crate) tolerance: Tolerance,
}

const BLOCK: usize = 128;

impl Elementwise {
    /// The case of that name, whose reference computes an element from those of the inputs.
    pub(crate) fn case(self, name: impl Into<String>, want: impl Fn(&[Number]) -> Number + Send + Sync + 'static) -> Case {
        Case::new(name, move |lab| self.run(lab, &want))
    }

    pub(crate) fn source(&self) -> Source {
        let names = ["x", "y", "z"];
        let parameters: String = self.inputs.iter().zip(names).map(|((dtype, _), name)| format!("{name}: Ptr<{dtype}>, ")).collect();
        let loads: String = names[..self.inputs.len()].iter().map(|name| format!("let {name} = load({name} + at); ")).collect();
        Source::new(format!(
            "fn kernel({parameters}out: PtrMut<{}>) {{ let at = program_id(0) * {BLOCK} + arange(0, {BLOCK}); {loads}store(out + at, {}); }}",
            self.out, self.expression
        ))
    }

    pub(crate) fn run(&self, lab: &mut Lab, want: &dyn Fn(&[Number]) -> Number) -> Check {
        // One whole block, and one that ends somewhere.
        let len = BLOCK + 1 + lab.below(BLOCK);
        let inputs: Vec<Array> = self.inputs.iter().map(|(dtype, draw)| draw.array(lab, *dtype, len)).collect();
        let mut out = lab.any(self.out, len);
        let mut args: Vec<Arg<'_>> = inputs.iter().map(Arg::In).collect();
        args.push(Arg::Out(&mut out));
        lab.launch(&self.source(), [2, 1, 1], &mut args)?;
        (0..len).try_for_each(|index| {
            let numbers: Vec<Number> = inputs.iter().map(|input| input.get(index)).collect();
            out.check_at(index, self.tolerance, want(&numbers)).map_err(|error| format!("{error}, of {numbers:?}"))
        })
    }
}
