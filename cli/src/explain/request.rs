//! The values on the command line: generics, the schedule, tensors and scalar arguments of a kernel.

use std::collections::BTreeMap;

use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{Elem, Function, Type};
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, Schedule, steps};

use crate::argument::{Argument, Element, Fill};

/// A kernel with everything that a launch of it needs.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) options: Options,
    /// The arguments, in the order of the kernel's parameters.
    pub(super) arguments: Vec<Given>,
}

/// An argument of the launch.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Tensor { element: Element, count: usize, fill: Fill },
    Scalar { bytes: Vec<u8>, integer: Option<i64> },
}

const SCHEDULE: [&str; 4] = ["num_warps", "num_ctas", "num_stages", "maxnreg"];

impl Request {
    /// Reads `NAME=VALUE` for each generic, parameter and part of the schedule, and the facts of `--assume`.
    /// `choices` are the values that the kernel's attributes list.
    pub(super) fn of(
        func: &Function,
        choices: &[(String, Vec<String>)],
        target: Target,
        values: &[String],
        facts: &[String],
    ) -> Result<Request, String> {
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        for value in values {
            let (name, value) = value.split_once('=').ok_or_else(|| format!("`{value}` is no `NAME=VALUE`"))?;
            check_name(func, name)?;
            if given.insert(name, value).is_some() {
                return Err(format!("`{name}` is given twice\nhelp: remove one of them"));
            }
        }
        for (name, values) in choices.iter().filter(|(name, _)| !given.contains_key(name.as_str())).collect::<Vec<_>>() {
            let [value] = values.as_slice() else {
                return Err(format!(
                    "the attributes list several values of `{name}`\nhelp: add `{name}={}`, or one of {}",
                    values[0],
                    values[1..].join(", ")
                ));
            };
            given.insert(name, value);
        }
        let bindings = bindings(func, &given)?;
        let mut options = Options { schedule: schedule(&given)?, ..Options::new(bindings, target) };
        let shapes = shapes(func, &given)?;
        let params = func.params.iter().map(|param| argument(func, &options.bindings, param, &given, &shapes));
        let arguments: Vec<Given> = params.collect::<Result<_, _>>()?;
        options.bindings = with_facts(func, options.bindings, &arguments, facts)?;
        Ok(Request { options, arguments })
    }

    /// The value of an integer argument.
    pub(super) fn known(&self, name: &str) -> Option<i64> {
        integer(&self.arguments, name)
    }
}

fn integer(arguments: &[Given], name: &str) -> Option<i64> {
    arguments.iter().find(|given| given.name == name).and_then(|given| match given.value {
        Value::Scalar { integer, .. } => integer,
        Value::Tensor { .. } => None,
    })
}

fn check_name(func: &Function, name: &str) -> Result<(), String> {
    let generics = func.types.iter().map(|ty| &*ty.name).chain(func.consts.iter().map(|constant| &*constant.name));
    let names: Vec<&str> = generics.chain(func.params.iter().map(|param| &*param.name)).chain(SCHEDULE).collect();
    if names.contains(&name) {
        return Ok(());
    }
    let help = match did_you_mean(name, names.iter().copied()) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => format!("there are {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    Err(format!("`{}` has no parameter `{name}`\nhelp: {help}", func.name))
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no value of `{name}`"))
}

fn schedule(given: &BTreeMap<&str, &str>) -> Result<Schedule, String> {
    let part = |name: &str| given.get(name).map(|text| number::<u32>(name, text)).transpose();
    Ok(Schedule {
        num_warps: part("num_warps")?.unwrap_or(Schedule::DEFAULT.num_warps),
        num_ctas: part("num_ctas")?.unwrap_or(Schedule::DEFAULT.num_ctas),
        num_stages: part("num_stages")?.unwrap_or(Schedule::DEFAULT.num_stages),
        maxnreg: part("maxnreg")?,
    })
}

fn bindings(func: &Function, given: &BTreeMap<&str, &str>) -> Result<Bindings, String> {
    let mut bindings = Bindings::new();
    for ty in &func.types {
        let choices = || ty.choices.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", ");
        let text = given.get(&*ty.name).ok_or_else(|| missing(&ty.name, &format!("`{}=TYPE`, of {}", ty.name, choices())))?;
        let dtype: Dtype = text
            .parse()
            .ok()
            .filter(|dtype| ty.choices.contains(dtype))
            .ok_or_else(|| format!("`{text}` is no value of `{}`\nhelp: there are {}", ty.name, choices()))?;
        bindings = bindings.ty(&ty.name, dtype);
    }
    for constant in &func.consts {
        let name = &*constant.name;
        let text = given.get(name).ok_or_else(|| missing(name, &format!("`{name}=NUMBER`")))?;
        let value = match constant.dtype {
            Dtype::Bool => i128::from(number::<bool>(name, text)?),
            Dtype::F32 => number::<f32>(name, text)?.to_bits().into(),
            Dtype::F64 => number::<f64>(name, text)?.to_bits().into(),
            _ => number(name, text)?,
        };
        bindings = bindings.constant(name, value);
    }
    Ok(bindings)
}

fn missing(name: &str, help: &str) -> String {
    format!("`{name}` has no value\nhelp: add {help}")
}

/// The extents and strides of views, from their shapes: `x=64x4096`.
fn shapes(func: &Function, given: &BTreeMap<&str, &str>) -> Result<BTreeMap<String, i64>, String> {
    let mut scalars = BTreeMap::new();
    let tensors = func.params.iter().filter(|param| matches!(func.ty(param.value), Type::Pointer { .. }));
    for (name, text) in tensors.filter_map(|param| Some((&*param.name, *given.get(&*param.name)?))) {
        let extents = extents(name, text)?;
        let axes = (0..).take_while(|axis| func.params.iter().any(|param| *param.name == format!("{name}_extent{axis}"))).count();
        if axes > 0 && axes != extents.len() {
            let example = vec!["64"; axes].join("x");
            return Err(format!("`{name}` is a view with {axes} axes, not {}\nhelp: give its shape: `{name}={example}`", extents.len()));
        }
        let mut stride = 1;
        for (axis, extent) in extents.iter().enumerate().rev() {
            scalars.insert(format!("{name}_extent{axis}"), *extent as i64);
            scalars.insert(format!("{name}_stride{axis}"), stride);
            stride *= *extent as i64;
        }
    }
    Ok(scalars)
}

/// The extents in `COUNT`, `64x4096` or one of both with `=FILL`.
fn extents(name: &str, text: &str) -> Result<Vec<usize>, String> {
    let shape = text.split_once('=').map_or(text, |(shape, _)| shape);
    let extents: Option<Vec<usize>> = shape.split('x').map(|extent| extent.parse().ok()).collect();
    extents.filter(|extents| extents.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent)).is_some()).ok_or_else(|| {
        format!(
            "`{text}` is no size of `{name}`\nhelp: write a number of elements, or the shape of a view: `{name}=4096` or `{name}=64x64`"
        )
    })
}

fn argument(
    func: &Function,
    bindings: &Bindings,
    param: &kernel_lang::ir::Param,
    given: &BTreeMap<&str, &str>,
    shapes: &BTreeMap<String, i64>,
) -> Result<Given, String> {
    let name = &*param.name;
    let text = given.get(name).map(|text| (*text).to_owned()).or_else(|| shapes.get(name).map(ToString::to_string));
    let ty = func.ty(param.value);
    let dtype = match ty.elem() {
        Elem::Dtype(dtype) => *dtype,
        Elem::Param(name) => {
            let found = bindings.types.iter().find(|(known, _)| known == name);
            found.map(|(_, dtype)| *dtype).ok_or_else(|| missing(name, &format!("`{name}=TYPE`")))?
        }
    };
    // Types that the argument parser does not know are numbers of as many bits.
    let stored = match dtype {
        Dtype::Bool | Dtype::F8E4M3 | Dtype::F8E5M2 => Dtype::U8,
        other => other,
    };
    let is_tensor = matches!(ty, Type::Pointer { .. });
    let text = text.ok_or_else(|| match is_tensor {
        true => missing(name, &format!("`{name}=ELEMENTS`, or `{name}=64x64` for a view")),
        false => missing(name, &format!("`{name}=NUMBER`, of type `{dtype}`")),
    })?;
    let value = if is_tensor {
        let count = extents(name, &text)?.iter().product::<usize>();
        let fill = text.split_once('=').map_or(String::new(), |(_, fill)| format!("={fill}"));
        match format!("{stored}:{count}{fill}").parse()? {
            Argument::Buffer { element, count, fill } => Value::Tensor { element, count, fill },
            Argument::Scalar(_) => return Err(format!("`{name}` is a tensor")),
        }
    } else {
        let number = match (dtype, text.as_str()) {
            (Dtype::Bool, "true") => "1",
            (Dtype::Bool, "false") => "0",
            (_, text) => text,
        };
        match format!("{stored}={number}").parse().map_err(|_| format!("`{text}` is no value of `{name}`, of type `{dtype}`"))? {
            Argument::Scalar(bytes) => Value::Scalar { bytes, integer: number.parse().ok() },
            Argument::Buffer { .. } => return Err(format!("`{name}` is a number")),
        }
    };
    Ok(Given { name: name.to_owned(), value })
}

/// The facts that the variant relies on: those of `--assume`, and, as in a launch, that element strides are 1.
fn with_facts(func: &Function, mut bindings: Bindings, arguments: &[Given], facts: &[String]) -> Result<Bindings, String> {
    for (_, stride) in steps(func) {
        let name = func.param_index(stride).map(|index| &*func.params[index].name);
        if let Some(name) = name.filter(|name| integer(arguments, name) == Some(1)) {
            bindings = bindings.constant(name, 1);
        }
    }
    for fact in facts {
        let wrong = || format!("`{fact}` is no fact\nhelp: write `NAME=VALUE` or `NAME%NUMBER=0`");
        let (left, right) = fact.split_once('=').ok_or_else(wrong)?;
        let right: i64 = right.trim_start_matches('=').trim().parse().map_err(|_| wrong())?;
        let (name, of) = match left.split_once('%') {
            Some((name, of)) => (name.trim(), Some(of.trim().parse::<i64>().ok().filter(|of| *of > 0 && right == 0).ok_or_else(wrong)?)),
            None => (left.trim(), None),
        };
        let value = integer(arguments, name).ok_or_else(|| format!("`{name}` is no integer argument\nhelp: facts are about these"))?;
        if of.map_or(value != right, |of| value % of != 0) {
            return Err(format!("`{fact}` is false for `{name}={value}`\nhelp: a launch uses a variant only if its facts hold"));
        }
        bindings = match of {
            Some(of) => bindings.multiple(name, of.into()),
            None => bindings.constant(name, value.into()),
        };
    }
    bindings.consts.dedup();
    Ok(bindings)
}
