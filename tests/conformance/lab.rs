//! The fixture of a case: a device, random numbers, and kernels given as text.

#[path = "../lab/random.rs"]
mod random;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use galatea::__private as private;
use galatea::Dtype;
use galatea::prelude::*;

use kernel_lang::Schedule;

use crate::array::Array;
use crate::memory::Held;
use crate::number::Number;

/// A device and a source of random numbers: the same for a case on every device.
pub(crate) struct Lab {
    device: Device,
    state: u64,
}

/// A kernel in the language, and how its work is spread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Source {
    /// The name by which reports of the simulator call the kernel.
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) schedule: Schedule,
}

/// An argument of a launch.
pub(crate) enum Arg<'a> {
    /// A tensor that the kernel reads.
    In(&'a Array),
    /// A tensor that the kernel changes.
    Out(&'a mut Array),
    Scalar(Dtype, Number),
    /// The addresses of other arguments, as a tensor of `u64` that the kernel reads.
    #[allow(dead_code, reason = "random kernels are given addresses, cases are not")]
    Addresses(Vec<usize>),
}

/// The names of the arguments in error messages.
pub(crate) const NAMES: [&str; 12] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"];

impl Source {
    /// A kernel of four warps.
    pub(crate) fn new(text: impl Into<String>) -> Source {
        Source { name: "case", text: text.into(), schedule: Schedule::DEFAULT }
    }

    pub(crate) fn warps(mut self, num_warps: u32) -> Source {
        self.schedule.num_warps = num_warps;
        self
    }

    /// A kernel whose programs are clusters.
    pub(crate) fn ctas(mut self, num_ctas: u32) -> Source {
        self.schedule.num_ctas = num_ctas;
        self
    }

    /// The IR, or the messages and what they help with.
    pub(crate) fn lower(&self) -> Result<String, String> {
        let attribute = if self.text.starts_with("#[kernel") { "" } else { "#[kernel]\n" };
        let text = format!("{attribute}{}", self.text);
        kernel_frontend::lower_source(&text, "case.rs")
            .map(|func| func.to_string())
            .map_err(|errors| errors.into_vec().iter().map(|error| format!("error: {error}\n")).collect())
    }

    /// The kernel, which all devices share.
    fn kernel(&self) -> Result<&'static private::Kernel, String> {
        static KERNELS: Mutex<Option<HashMap<Source, &'static private::Kernel>>> = Mutex::new(None);
        let find = |kernels: &mut Option<HashMap<Source, _>>| kernels.get_or_insert_default().get(self).copied();
        if let Some(kernel) = find(&mut KERNELS.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(kernel);
        }
        let ir = self.lower().map_err(|errors| format!("{errors}in\n{}", self.text))?;
        let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        // A kernel is a static of the program; these live as long as the tests.
        // SAFETY: the frontend has made the text of a safe kernel.
        let leak =
            || &*Box::leak(Box::new(unsafe { private::Kernel::new(self.name, Box::leak(ir.into_boxed_str()), self.schedule, &[], &[]) }));
        Ok(*kernels.get_or_insert_default().entry(self.clone()).or_insert_with(leak))
    }
}

impl Lab {
    /// Elements of any bits, every third of moderate size, every eighth a corner of the type.
    pub(crate) fn any(&mut self, dtype: Dtype, len: usize) -> Array {
        const CORNERS: [f64; 13] =
            [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.5, 65504.0, f64::MIN_POSITIVE];
        let numbers = (0..len).map(|_| match self.below(24) {
            0..3 => crate::number::encode(Number::Float(CORNERS[self.below(CORNERS.len())]), dtype),
            3..11 => crate::number::encode(Number::Float(self.between(-100.0, 100.0)), dtype),
            // Shifted down, so that wide types see small numbers too.
            11..14 => self.random() >> self.below(64),
            _ => self.random(),
        });
        let bits = numbers.map(|bits| bits & (u64::MAX >> (64 - dtype.bits()))).collect();
        Array { dtype, bits }
    }

    /// Elements of an interval.
    pub(crate) fn within(&mut self, dtype: Dtype, len: usize, low: f64, high: f64) -> Array {
        Array::new(dtype, (0..len).map(|_| Number::Float(self.between(low, high))))
    }

    /// Integers from `low` to `high - 1`, also as floats.
    pub(crate) fn ints(&mut self, dtype: Dtype, len: usize, low: i128, high: i128) -> Array {
        Array::ints(dtype, (0..len).map(|_| low + self.below((high - low) as usize) as i128))
    }

    /// Runs a kernel. Each tensor lies among noise that must stay, half of them up to 4 elements behind an aligned address. Behind the other
    /// inputs, the memory ends.
    pub(crate) fn launch(&mut self, source: &Source, grid: [usize; 3], args: &mut [Arg<'_>]) -> Result<(), String> {
        self.launch_at(source, grid, args, |lab| lab.below(2) * lab.below(5))
    }

    /// As [`Lab::launch`], with all tensors at aligned addresses.
    pub(crate) fn launch_aligned(&mut self, source: &Source, grid: [usize; 3], args: &mut [Arg<'_>]) -> Result<(), String> {
        self.launch_at(source, grid, args, |_| 0)
    }

    fn launch_at(
        &mut self,
        source: &Source,
        grid: [usize; 3],
        args: &mut [Arg<'_>],
        shift: impl Fn(&mut Lab) -> usize,
    ) -> Result<(), String> {
        let kernel = source.kernel()?;
        let mut held: Vec<Option<Held>> = Vec::new();
        for arg in args.iter() {
            let shift = shift(self);
            let one = match arg {
                Arg::In(array) => Some(Held::new(self, array, shift, shift == 0)?),
                Arg::Out(array) => Some(Held::new(self, array, shift, false)?),
                Arg::Addresses(of) => {
                    let bits = of.iter().map(|at| address(&mut held, *at)).collect::<Result<Vec<u64>, String>>()?;
                    Some(Held::new(self, &Array { dtype: Dtype::U64, bits }, shift, false)?)
                }
                Arg::Scalar(..) => None,
            };
            held.push(one);
        }
        let words = args.iter().map(|arg| if matches!(arg, Arg::Scalar(..)) { 1 } else { 2 }).sum();
        macro_rules! by_count {
            ($($count:literal)*) => {
                match words {
                    $($count => run::<$count>(kernel, grid, args, &mut held),)*
                    _ => return Err(format!("no launch has {words} words")),
                }
            };
        }
        by_count!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20).map_err(|error| format!("{error}\nin {}", source.text))?;
        for (arg, held) in args.iter_mut().zip(held) {
            if let (Arg::Out(array), Some(held)) = (arg, held) {
                array.bits = held.read()?;
            }
        }
        Ok(())
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Can programs be clusters here? On the CPU they are as any other.
    pub(crate) fn has_clusters(&self) -> bool {
        self.device.compute_capability().is_none_or(|(major, _)| major >= 9)
    }
}

/// The address of an argument's first element.
fn address(held: &mut [Option<Held>], at: usize) -> Result<u64, String> {
    match held.get_mut(at).and_then(Option::as_mut) {
        Some(held) => held.address().map_err(|error| error.to_string()),
        None => Err(format!("argument {at} is no tensor in front of its address")),
    }
}

fn run<const WORDS: usize>(
    kernel: &'static private::Kernel,
    grid: [usize; 3],
    args: &[Arg<'_>],
    held: &mut [Option<Held>],
) -> galatea::Result<()> {
    let mut slices = held.iter_mut().map(|held| held.as_mut().map(Held::slice).transpose()).collect::<galatea::Result<Vec<_>>>()?;
    let mut words: private::Args<'_, WORDS> = private::Args::new(kernel);
    for ((arg, slice), name) in args.iter().zip(&mut slices).zip(NAMES) {
        match (arg, slice) {
            (Arg::Out(_), Some(slice)) => slice.written_by(&mut words, name),
            (_, Some(slice)) => slice.read_by(&mut words, name),
            (Arg::Scalar(dtype, number), None) => words.scalar(crate::number::encode(*number, *dtype)),
            (_, None) => {}
        }
    }
    // SAFETY: a case's arguments are those that its text was written with.
    unsafe { private::Launch::<'_, WORDS, 0>::new(words, []) }.grid(grid).launch()
}
