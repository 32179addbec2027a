//! The roofline model: a device's peak performance, and the achieved fraction of it.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use kernel_lang::dtype::Dtype;
use kernel_lang::target::fmas_per_clock;

use super::Stats;
use crate::Device;

/// The work of a run: the bytes that it must move between memory and chip, each counted once, and its operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations; a fused multiply-add counts as two.
    pub flops: f64,
    /// The type of the operations.
    pub dtype: Dtype,
}

impl Work {
    /// Work that moves that many bytes and has no significant arithmetic.
    pub const fn bytes(bytes: usize) -> Work {
        Work { bytes: bytes as u64, flops: 0.0, dtype: Dtype::F32 }
    }

    /// The same work, with that many operations in that type.
    #[must_use]
    pub const fn and_flops(self, flops: f64, dtype: Dtype) -> Work {
        Work { bytes: self.bytes, flops, dtype }
    }

    /// The arithmetic intensity: operations per byte.
    pub fn intensity(&self) -> f64 {
        self.flops / self.bytes as f64
    }
}

/// The peak performance of a GPU (Williams, Waterman and Patterson, *Roofline*, 2009).
///
/// Both peaks are estimates from the driver's attributes. The memory peak is the memory clock times the bus width, times two for the two
/// edges of the clock. The arithmetic peak is the number of multiprocessors times their maximum clock times the operations of the
/// architecture per clock; a GPU under load does not sustain the maximum clock. Matrix instructions are not counted. A copy reaches about
/// nine tenths of the memory peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    bytes_per_s: f64,
    /// The clocks of all multiprocessors per second.
    clocks_per_s: f64,
    capability: (i32, i32),
}

/// The limit that bounds the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Moving the bytes takes longer.
    Memory,
    /// The arithmetic takes longer.
    Arithmetic,
}

/// The performance of a run relative to the roof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Achieved {
    /// Bytes moved, in GB/s.
    pub gb_per_s: f64,
    /// Operations, in TFLOP/s.
    pub tflops: f64,
    /// The minimum time by the roof divided by the median time: 1 is the roof.
    pub part: f64,
    /// The limit that sets the roof.
    pub bound: Bound,
}

impl Roof {
    /// The roof of a GPU. None for the CPU and for simulated GPUs, whose hardware is unknown, and if the driver does not report the
    /// attributes.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Dtype, Result, bench::{Roof, Work, do_bench}};
    /// # fn main() -> Result<()> {
    /// let device = Device::default()?;
    /// let mut x = device.zeros::<f32>(1 << 16)?;
    /// let stats = do_bench(&device, || x.fill(1.0))?;
    /// if let Some(reached) = Roof::of(&device).and_then(|roof| roof.achieved(&Work::bytes(4 << 16), &stats)) {
    ///     println!("{:.0} % of the {:?} roof", 100.0 * reached.part, reached.bound);
    /// }
    /// assert!(Roof::of(&Device::cpu()).is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(device: &Device) -> Option<Roof> {
        let cuda = device.cuda_info()?;
        let read = |attribute| cuda.context.attribute(attribute).ok();
        let clock_khz = read(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
        let memory_khz = read(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bus_bits = read(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        Roof::from_attributes(device.multiprocessors(), clock_khz, memory_khz, bus_bits, cuda.compute_capability)
    }

    fn from_attributes(multiprocessors: usize, clock_khz: i32, memory_khz: i32, bus_bits: i32, capability: (i32, i32)) -> Option<Roof> {
        let bytes_per_s = 2.0 * 1e3 * f64::from(memory_khz) * f64::from(bus_bits) / 8.0;
        let clocks_per_s = 1e3 * f64::from(clock_khz) * multiprocessors as f64;
        // A driver reports 0 for an unknown attribute.
        (bytes_per_s > 0.0 && clocks_per_s > 0.0).then_some(Roof { bytes_per_s, clocks_per_s, capability })
    }

    /// The peak memory bandwidth, in GB/s.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes_per_s * 1e-9
    }

    /// The peak arithmetic throughput in that type, in TFLOP/s; none if it is unknown.
    pub fn tflops(&self, dtype: Dtype) -> Option<f64> {
        Some(2.0 * f64::from(fmas_per_clock(self.capability, dtype)?) * self.clocks_per_s * 1e-12)
    }

    /// The minimum time of the work in microseconds, and the limit that sets it. None for operations in a type whose peak is unknown.
    pub fn least_us(&self, work: &Work) -> Option<(f64, Bound)> {
        let moving = work.bytes as f64 / self.bytes_per_s * 1e6;
        let computing = if work.flops > 0.0 { work.flops / self.tflops(work.dtype)? * 1e-6 } else { 0.0 };
        Some(if computing > moving { (computing, Bound::Arithmetic) } else { (moving, Bound::Memory) })
    }

    /// The performance relative to the roof, from the median time. None as for [`Roof::least_us`].
    pub fn achieved(&self, work: &Work, stats: &Stats) -> Option<Achieved> {
        let (least_us, bound) = self.least_us(work)?;
        let (gb_per_s, tflops) = (work.bytes as f64 / stats.median_us * 1e-3, stats.tflops(work.flops));
        Some(Achieved { gb_per_s, tflops, part: least_us / stats.median_us, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes that an A100 of 40 GB reports. NVIDIA's data sheet says 1555 GB/s, 19.5 TFLOP/s of `f32`, 9.7 of `f64`, 78 of `f16`.
    fn a100() -> Roof {
        Roof::from_attributes(108, 1_410_000, 1_215_000, 5120, (8, 0)).unwrap()
    }

    #[test]
    fn peaks_are_those_of_the_data_sheet() {
        let roof = a100();
        let near = |value: Option<f64>, sheet: f64| value.is_some_and(|value| (value / sheet - 1.0).abs() < 0.01);
        assert!(near(Some(roof.gb_per_s()), 1555.0) && near(roof.tflops(Dtype::F32), 19.5));
        assert!(near(roof.tflops(Dtype::F64), 9.7) && near(roof.tflops(Dtype::F16), 78.0) && near(roof.tflops(Dtype::Bf16), 39.0));
        assert_eq!(roof.tflops(Dtype::I8), None);
    }

    #[test]
    fn the_lower_roof_binds() {
        let (roof, stats) = (a100(), Stats::of(vec![10.0]));
        let copy = Work::bytes(7_776_000);
        let reached = roof.achieved(&copy, &stats).unwrap();
        assert_eq!(reached.bound, Bound::Memory);
        assert!((reached.part - 0.5).abs() < 1e-3 && (reached.gb_per_s - 777.6).abs() < 1e-6, "{reached:?}");
        let product = copy.and_flops(97.5e6, Dtype::F32);
        let reached = roof.achieved(&product, &stats).unwrap();
        assert_eq!((reached.bound, reached.tflops), (Bound::Arithmetic, 9.75));
        assert!((reached.part - 0.5).abs() < 1e-3 && (product.intensity() - 12.54).abs() < 0.01);
        assert!(roof.achieved(&copy.and_flops(1.0, Dtype::I8), &stats).is_none());
    }

    #[test]
    fn unknown_peaks_have_no_roof() {
        assert!(Roof::of(&Device::cpu()).is_none());
        assert!(Roof::from_attributes(108, 1_410_000, 0, 5120, (8, 0)).is_none());
        let newer = Roof::from_attributes(100, 1_000_000, 1_000_000, 5120, (99, 0)).unwrap();
        assert!(newer.tflops(Dtype::F32).is_none() && newer.least_us(&Work::bytes(1)).is_some());
    }
}
