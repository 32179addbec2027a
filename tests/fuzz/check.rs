//! Runs a kernel on the CPU and on another device, and compares all that it has written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::atomic::{AtomicUsize, Ordering};

use galatea::Device;

use crate::array::{Array, Tolerance};
use crate::kernel::{Kernel, Sizes, Tensor};
use crate::lab::{Arg, Lab, Source};
use crate::number::Number;

/// Launches of clusters, and kernels that clusters cannot run and one CTA does.
static CLUSTERS: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Says how much clusters had to do with what was run.
pub(crate) fn report() {
    let [ran, refused] = [&CLUSTERS, &REFUSED].map(|count| count.load(Ordering::Relaxed));
    println!("{ran} launches of clusters; {refused} kernels that clusters cannot run used one CTA");
}

/// Holds a device to what the CPU computes, and to what it computes itself when it runs again.
pub(crate) fn check(kernel: &Kernel, device: Device, seed: u64) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| check_launches(kernel, device, seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("a panic without a text").to_string())
    })
}

fn check_launches(kernel: &Kernel, device: Device, seed: u64) -> Result<(), String> {
    let mut source = kernel.source();
    kernel.launches.iter().try_for_each(|sizes| launch_on_both(kernel, &mut source, *sizes, device, seed))
}

fn launch_on_both(kernel: &Kernel, source: &mut Source, sizes: Sizes, device: Device, seed: u64) -> Result<(), String> {
    let mut run = |device| written(kernel, source, sizes, Lab::new(device, seed, "elements"));
    let (want, first, second) = (run(Device::cpu())?, run(device)?, run(device)?);
    for (index, tensor) in kernel.tensors.iter().filter(|tensor| tensor.is_written).enumerate() {
        let of = |error| format!("{}, with {sizes:?}: {error}", tensor.name);
        first[index].check(Tolerance::Exact, |element| want[index].get(element)).map_err(of)?;
        second[index].check_bits(|element| first[index].bits[element]).map_err(|error| format!("two runs: {}", of(error)))?;
    }
    Ok(())
}

/// Runs one launch, and returns the tensors that it writes. Labs of one seed give the same elements on every device. If the compiler refuses a kernel
/// for a cluster, the kernel is launched with one CTA for each program.
fn written(kernel: &Kernel, source: &mut Source, sizes: Sizes, mut lab: Lab) -> Result<Vec<Array>, String> {
    let mut arrays: Vec<Array> = kernel.tensors.iter().map(|tensor| elements(&mut lab, tensor, sizes.programs)).collect();
    let mut args = Vec::new();
    for (tensor, array) in kernel.tensors.iter().zip(&mut arrays) {
        args.push(if tensor.is_written { Arg::Out(array) } else { Arg::In(array) });
    }
    if kernel.is_unchecked {
        args.push(Arg::Addresses((0..kernel.tensors.len()).filter(|&at| kernel.tensors[at].is_own()).collect()));
    }
    for number in [sizes.n, sizes.stride, sizes.first, sizes.last] {
        args.push(Arg::Scalar(galatea::Dtype::I64, Number::Int(number as i128)));
    }
    let mut on_device = source.clone();
    if !lab.has_clusters() {
        on_device.schedule.num_ctas = 1;
    }
    let grid = [sizes.programs, 1, 1];
    let mut launch = |lab: &mut Lab, source: &Source| match kernel.is_aligned {
        true => lab.launch_aligned(source, grid, &mut args),
        false => lab.launch(source, grid, &mut args),
    };
    match launch(&mut lab, &on_device) {
        // The compiler refuses ops that would move elements between CTAs, before anything runs.
        Err(error) if error.contains("between the CTAs of a program") => {
            source.schedule.num_ctas = 1;
            REFUSED.fetch_add(1, Ordering::Relaxed);
            launch(&mut lab, source)?;
        }
        result => {
            result?;
            let is_cluster = on_device.schedule.num_ctas > 1 && !lab.device().is_cpu();
            CLUSTERS.fetch_add(usize::from(is_cluster), Ordering::Relaxed);
        }
    }
    let all = kernel.tensors.iter().zip(arrays);
    Ok(all.filter(|(tensor, _)| tensor.is_written).map(|(_, array)| array).collect())
}

fn elements(lab: &mut Lab, tensor: &Tensor, programs: usize) -> Array {
    let len = tensor.elements(programs);
    if !tensor.is_whole {
        return lab.any(tensor.dtype, len);
    }
    let least = if tensor.dtype.is_float() || tensor.dtype.is_signed_int() { -tensor.largest } else { 0 };
    lab.ints(tensor.dtype, len, least, tensor.largest + 1)
}
