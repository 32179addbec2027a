//! A model of the time that a launch of matrix products takes with warpgroups whose operands are copied ahead.
//!
//! Each part of a multiprocessor, the L2 and the memory works at its own rate, and the slowest one is the bound. A multiprocessor executes whole programs, so programs that
//! do not divide evenly leave some of them idle. All of them read each operand from the L2 once for each program, because nothing shares copies between multiprocessors.
//!
//! ```text
//! tensor cores      2 m n k / (4096 * 2 / bytes of an element)
//! shared memory     ((m + n) k + (max(64, m) + n) k) * bytes / 128 + output / 128        copies write a slot, and instructions read it
//! L2                (m + n) k * bytes / min(64, 6150 / busy multiprocessors) + output likewise
//! memory            different bytes of the launch / bandwidth
//! epilogue          output / 64 + 800, for each program, unless another worker multiplies meanwhile
//! ```

use serde::Serialize;

/// The rates of a multiprocessor of Hopper GPUs, in bytes or operations per cycle.
struct Rates {
    /// Floating-point operations on elements of one byte. Elements of two bytes take twice as long.
    operations: f64,
    /// Shared memory: reads and writes together.
    shared: f64,
    /// From the L2 to one multiprocessor.
    l2_of_one: f64,
    /// From the L2 to all multiprocessors.
    l2_of_all: f64,
    /// Results that a worker converts and stores.
    stored: f64,
    /// The cycles of a worker between its last product and its first store.
    epilogue_cycles: f64,
    /// The time of a launch that does nothing, in microseconds.
    launch_us: f64,
}

/// The rates of the tensor cores follow from the data sheet. `l2_of_all` is the constant of DeepGEMM's model; the time of an epilogue and of a launch are rounded
/// measurements.
const RATES: Rates =
    Rates { operations: 8192.0, shared: 128.0, l2_of_one: 64.0, l2_of_all: 6150.0, stored: 64.0, epilogue_cycles: 800.0, launch_us: 2.5 };

/// The fewest rows of an operand that an instruction reads.
const LEAST_ROWS: u32 = 64;

/// What a launch does.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) programs: u64,
    /// The products.
    pub(super) products: Vec<Executed>,
    /// The bytes of all copies to shared memory.
    pub(super) copied_bytes: f64,
    /// The bytes of all stores.
    pub(super) stored_bytes: f64,
    /// The different bytes that the launch moves between memory and the L2.
    pub(super) memory_bytes: f64,
    /// The CTAs that a multiprocessor runs at the same time.
    pub(super) workers: u32,
}

/// A product, and how often the launch executes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Executed {
    pub(super) tile: [u32; 3],
    pub(super) element_bytes: u32,
    pub(super) times: f64,
}

/// The properties of the GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) multiprocessors: u64,
    pub(super) clock_ghz: f64,
    pub(super) memory_gb_per_s: f64,
}

/// Times in microseconds. Each part assumes that it alone limits the launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) predicted_us: f64,
    /// The part that limits the launch.
    pub(super) bound: &'static str,
    pub(super) tensor_us: f64,
    pub(super) shared_us: f64,
    pub(super) l2_us: f64,
    pub(super) memory_us: f64,
    /// The part of the time of stores during which the tensor cores wait.
    pub(super) epilogue_us: f64,
    pub(super) launch_us: f64,
    /// The part of the multiprocessors that programs occupy on average.
    pub(super) busy: f64,
}

impl Cost {
    pub(super) fn of(work: &Work, machine: Machine) -> Cost {
        let programs = work.programs.max(1);
        let of_one = programs.div_ceil(machine.multiprocessors);
        let busy = programs.min(machine.multiprocessors) as f64;
        // The cycles of the busiest multiprocessor, of a cost of all programs together.
        let us = |cycles: f64| cycles / programs as f64 * of_one as f64 / machine.clock_ghz / 1e3;
        let sum = |cost: &dyn Fn(&Executed) -> f64| work.products.iter().map(|product| product.times * cost(product)).sum::<f64>();
        let tensor = sum(&|Executed { tile: [m, n, k], element_bytes, .. }| {
            2.0 * f64::from(*m) * f64::from(*n) * f64::from(*k) * f64::from(*element_bytes) / RATES.operations
        });
        let read = sum(&|Executed { tile: [m, n, k], element_bytes, .. }| f64::from(m.max(&LEAST_ROWS) + n) * f64::from(k * element_bytes));
        let l2 = (work.copied_bytes + work.stored_bytes) / RATES.l2_of_one.min(RATES.l2_of_all / busy);
        let epilogue = match work.workers {
            1 => work.stored_bytes / RATES.stored + programs as f64 * RATES.epilogue_cycles,
            _ => 0.0,
        };
        let (tensor_us, l2_us, epilogue_us) = (us(tensor), us(l2), us(epilogue));
        let shared_us = us((work.copied_bytes + read + work.stored_bytes) / RATES.shared);
        let memory_us = work.memory_bytes / machine.memory_gb_per_s / 1e3;
        let parts = [("tensor cores", tensor_us), ("shared memory", shared_us), ("L2", l2_us), ("memory", memory_us)];
        let (bound, longest) = parts.into_iter().fold(("tensor cores", 0.0), |most, part| if part.1 > most.1 { part } else { most });
        let (bound, predicted_us) =
            if longest + epilogue_us < RATES.launch_us { ("launch", RATES.launch_us) } else { (bound, longest + epilogue_us) };
        let busy = programs as f64 / (of_one * machine.multiprocessors) as f64;
        Cost { predicted_us, bound, tensor_us, shared_us, l2_us, memory_us, epilogue_us, launch_us: RATES.launch_us, busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { multiprocessors: 132, clock_ghz: 1.83, memory_gb_per_s: 4800.0 };

    /// A product of square matrices of 16-bit floats.
    fn square(extent: u64, [m, n]: [u32; 2], workers: u32) -> Cost {
        let (k, programs) = (64, extent.div_ceil(m.into()) * extent.div_ceil(n.into()));
        let times = (programs * extent / u64::from(k)) as f64;
        let work = Work {
            programs,
            products: vec![Executed { tile: [m, n, k], element_bytes: 2, times }],
            copied_bytes: times * f64::from((m + n) * k * 2),
            stored_bytes: (extent * extent * 2) as f64,
            memory_bytes: (3 * extent * extent * 2) as f64,
            workers,
        };
        Cost::of(&work, H200)
    }

    /// By hand: 2 * 8192^3 operations at 132 * 4096 a cycle, on 16 * 132 of 2048 programs.
    #[test]
    fn large_tiles_are_limited_by_the_tensor_cores_or_just_by_the_l2() {
        let cost = square(8192, [128, 256], 1);
        let whole = 2.0 * 8192f64.powi(3) / (132.0 * 4096.0) / 1.83e3;
        assert!((cost.tensor_us * cost.busy / whole - 1.0).abs() < 1e-9 && (cost.busy - 2048.0 / 2112.0).abs() < 1e-9, "{cost:?}");
        // 48 KiB in 1024 cycles on each of 132 multiprocessors are 6336 bytes a cycle, of 6150; stores come on top.
        let of_tensor = cost.l2_us / cost.tensor_us;
        assert!(cost.bound == "L2" && (1.03..1.05).contains(&of_tensor), "{cost:?}");
        let small = square(8192, [128, 128], 2);
        assert!(small.bound == "L2" && small.l2_us / small.tensor_us > 1.3, "{small:?}");
    }

    #[test]
    fn narrow_tiles_are_limited_by_shared_memory_or_the_l2_before_the_tensor_cores() {
        let cost = square(4096, [64, 32], 2);
        assert!(cost.shared_us > cost.tensor_us && cost.bound == "L2", "{cost:?}");
    }

    /// The choices of the literature, of the tiles that one CTA can have.
    #[test]
    fn the_best_tile_depends_on_the_waves() {
        let best = |extent| {
            let tiles = [[64, 64], [64, 128], [128, 64], [128, 128], [128, 256], [256, 128]];
            let predicted = |tile: &[u32; 2]| square(extent, *tile, if tile[0] * tile[1] <= 64 * 128 { 2 } else { 1 }).predicted_us;
            tiles.into_iter().min_by(|one, other| predicted(one).total_cmp(&predicted(other))).unwrap()
        };
        assert_eq!([1024, 2048, 4096, 8192].map(best), [[64, 128], [128, 256], [128, 256], [128, 256]]);
    }

    #[test]
    fn a_small_launch_is_limited_by_the_launch_and_an_empty_one_has_a_time() {
        assert_eq!(square(128, [128, 128], 1).bound, "launch");
        let none = Work { programs: 0, products: Vec::new(), copied_bytes: 0.0, stored_bytes: 0.0, memory_bytes: 0.0, workers: 2 };
        assert_eq!((Cost::of(&none, H200).predicted_us, Cost::of(&none, H200).bound), (RATES.launch_us, "launch"));
    }

    #[test]
    fn memory_limits_products_of_few_rows() {
        let times = 8192.0 / 64.0 * 64.0;
        let work = Work {
            programs: 64,
            products: vec![Executed { tile: [64, 128, 64], element_bytes: 2, times }],
            copied_bytes: times * f64::from((64 + 128) * 64 * 2),
            stored_bytes: 64.0 * 8192.0 * 2.0,
            memory_bytes: 2.0 * 8192.0 * 8192.0,
            workers: 2,
        };
        assert_eq!(Cost::of(&Work { memory_bytes: 0.0, ..work.clone() }, H200).bound, "L2");
        assert_eq!(Cost::of(&Work { memory_bytes: 1e9, ..work }, H200).bound, "memory");
    }
}
