//! Helpers that the examples share: command-line arguments, random input data, and checking and printing of a result.

use std::error::Error;

use galatea::bench::do_bench;
use galatea::prelude::*;

/// The command-line arguments of an example.
pub(crate) struct Args {
    /// Where to run.
    pub(crate) device: Device,
    /// How many elements.
    pub(crate) len: usize,
}

impl Args {
    /// Reads `--device cpu|cuda|cuda:N|sim|sim:TARGET` and `--len N` from the command line. Without `--device`: what `GALATEA_DEVICE` says,
    /// else a GPU if there is one.
    ///
    /// # Errors
    /// An unknown argument, or a device that is not there.
    pub(crate) fn parse(default_len: usize) -> Result<Args, Box<dyn Error>> {
        let (mut device, mut len) = (None, None);
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--device" => device = Some(Device::parse(&value()?)?),
                "--len" => len = Some(value()?.parse().map_err(|_| "`--len` needs a number")?),
                _ => {
                    let known = "`--device cpu|cuda|cuda:N|sim|sim:TARGET` and `--len N`";
                    return Err(format!("unknown argument `{word}`; the arguments are {known}").into());
                }
            }
        }
        let device = match device {
            Some(device) => device,
            None => Device::default()?,
        };
        // A simulated GPU takes about a microsecond an element.
        let default_len = if device.is_sim() { default_len.min(100_003) } else { default_len };
        Ok(Args { device, len: len.unwrap_or(default_len) })
    }
}

/// Numbers between -4 and 4, the same for the same seed (SplitMix64, Steele et al. 2014).
pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 21) as f32 - 4.0
    };
    (0..len).map(|_| next()).collect()
}

/// Compares with the values in `f64`, and prints the first ones and the largest error, relative to the value or to 1 if that is smaller.
///
/// # Errors
/// If an error is larger than `tolerance`, or a value is NaN: which element, and both values.
pub(crate) fn check(what: &str, got: &[f64], want: impl Fn(usize) -> f64, tolerance: f64) -> Result<(), Box<dyn Error>> {
    let mut largest = 0.0f64;
    for (index, got) in got.iter().enumerate() {
        let want = want(index);
        let error = (got - want).abs() / want.abs().max(1.0);
        if error.is_nan() || error > tolerance {
            return Err(format!("{what}: element {index} is {got}, not {want}").into());
        }
        largest = largest.max(error);
    }
    let first: Vec<String> = got.iter().take(4).map(|value| format!("{value:.6}")).collect();
    println!("{what}: [{}, ..]  max error {largest:.2e}, allowed {tolerance:.1e}", first.join(", "));
    Ok(())
}

/// Prints the time and the bandwidth of a launch. On a simulated GPU, whose times mean nothing, prints instead what each line of the
/// kernel did.
///
/// # Errors
/// The error of the launch, or of timing it.
pub(crate) fn measure(device: &Device, bytes: usize, mut launch: impl FnMut() -> galatea::Result<()>) -> galatea::Result<()> {
    #[cfg(feature = "sim")]
    if device.is_sim() {
        device.reset_sim_report();
        launch()?;
        device.sim_report().inspect(|report| print!("{report}"));
        return Ok(());
    }
    let stats = do_bench(device, &mut launch)?;
    println!("{:.1} us a launch, {:.1} GB/s", stats.median_us, stats.gb_per_s(bytes));
    Ok(())
}
