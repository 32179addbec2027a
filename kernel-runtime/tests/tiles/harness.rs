//! Runs a kernel's text on the simulator; random numbers and layouts.

use kernel_lang::backend::ptx::{PASSES, emit};
use kernel_lang::ir::{Stage, parse, verify};
use kernel_lang::launch_value::LaunchValues;
use kernel_lang::layout::Layout;
use kernel_lang::passes::SCHEDULE;
use kernel_lang::{
    Bindings, Compiled, Options, Schedule, compile,
    target::{Asked, Target},
};
use kernel_sim::{Gpu, Launch, Machine};

/// A small generator (xorshift): the seed is printed by who fails.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 33) % end as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    pub(crate) fn shape(&mut self, bits: usize) -> Vec<u32> {
        let mut shape = vec![1; 1 + self.below(3)];
        for _ in 0..bits {
            let axis = self.below(shape.len());
            shape[axis] *= 2;
        }
        shape
    }

    /// A layout that holds every element, of single bits (`mixing` 0) or of sums of them, with copies at random bits.
    pub(crate) fn layout(&mut self, shape: &[u32], num_warps: u32, mixing: usize) -> Layout {
        let bits = shape.iter().product::<u32>().trailing_zeros() as usize;
        let mut basis: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        self.shuffle(&mut basis);
        if bits > 1 {
            for _ in 0..mixing {
                let (a, b) = (self.below(bits), self.below(bits));
                if a != b {
                    basis[a] ^= basis[b];
                }
            }
        }
        let threads = 5 + num_warps.trailing_zeros() as usize;
        let copies = self.below(4);
        let mut levels: [Vec<Vec<u32>>; 4] = Default::default();
        for bit in 0..threads {
            let is_copy = copies > 0 && self.below(6) < copies;
            let value = if is_copy { 0 } else { basis.pop().unwrap_or(0) };
            levels[if bit < 5 { 1 } else { 2 }].push(vec![value]);
        }
        levels[0] = basis.into_iter().map(|value| vec![value]).collect();
        self.shuffle(&mut levels[0]);
        self.shuffle(&mut levels[1]);
        Layout::new(&[1 << bits], &levels).unwrap().reshape(shape).unwrap()
    }
}

/// A module that runs.
pub(crate) struct Module {
    pub(crate) text: String,
    pub(crate) entry: String,
    pub(crate) shared_bytes: u32,
}

/// The PTX of a kernel that has layouts already.
pub(crate) fn emitted(text: &str, num_warps: u32) -> Module {
    let mut func = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (target, schedule) = (Asked::new(Target::SM_80), Schedule { num_warps, ..Schedule::DEFAULT });
    for pass in SCHEDULE.iter().skip_while(|pass| pass.name != "choose_readers").chain(PASSES) {
        (pass.run)(&mut func, &target, schedule).unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[])));
    }
    let verified = verify(&func, Stage::Ptx(schedule)).unwrap_or_else(|violations| panic!("{violations:?}\n{text}"));
    let module = emit(verified, &target);
    Module { text: module.text(None), entry: module.entry().to_owned(), shared_bytes: module.shared_bytes }
}

/// A kernel with layouts in which only `room` bytes of shared memory are left: an async buffer of elements of `base`'s tensor holds the others from the
/// first op to the last. `room` is a multiple of what one element a thread takes.
pub(crate) fn with_room(text: &str, num_warps: u32, (base, elem, bytes): (&str, &str, usize), room: u32) -> String {
    let threads = 32 * num_warps;
    let slots = (Target::SM_80.shared_bytes() - room) / (threads * bytes as u32);
    let warps: Vec<u32> = (0..num_warps.trailing_zeros()).map(|bit| 32 << bit).collect();
    let layout = format!("layout<[{threads}], register = [], lane = [1, 2, 4, 8, 16], warp = {warps:?}, block = []>");
    let buffer = format!(
        "%held_at = arange {{start = 0, end = {threads}}} : tile<i64, [{threads}]> {layout}
        %held = async_buffer {{slots = {slots}}} : tile<{elem}, [{threads}]> {layout}
        %held_slot = const {{value = 0}} : i32
        %never = const {{value = false}} : bool\n"
    );
    let last = format!("async_copy %held, %held_slot, %never, {base}, %held_at\nasync_commit_group\nreturn\n}}");
    let begin = text.find("{\n").expect("a kernel has a body") + 2;
    let end = text.rfind("return").expect("a kernel returns");
    [&text[..begin], &buffer, &text[begin..end], &last].concat()
}

/// The PTX of a kernel without layouts.
pub(crate) fn compiled(text: &str, num_warps: u32) -> Module {
    compiled_for(Target::SM_80, text, Schedule { num_warps, ..Schedule::DEFAULT })
}

/// As [`compiled`], for any target and schedule.
pub(crate) fn compiled_for(target: Target, text: &str, schedule: Schedule) -> Module {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = Options { schedule, ..Options::new(Bindings::new(), target) };
    module(compile(&func, &options).unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&[]))))
}

/// What a compilation made, as a module that runs.
pub(crate) fn module(compiled: Compiled) -> Module {
    Module { text: compiled.ptx, entry: compiled.entry, shared_bytes: compiled.shared_bytes }
}

/// An argument: a tensor's bytes and the size of an element, or a scalar's.
#[derive(Clone)]
pub(crate) enum Arg {
    Tensor(Vec<u8>, usize),
    Scalar(Vec<u8>),
}

impl Arg {
    pub(crate) fn tensor<const N: usize>(elements: impl IntoIterator<Item = [u8; N]>) -> Arg {
        Arg::Tensor(elements.into_iter().flatten().collect(), N)
    }

    pub(crate) fn elements<const N: usize>(&self) -> Vec<[u8; N]> {
        let Arg::Tensor(bytes, _) = self else { panic!("a scalar") };
        bytes.as_chunks().0.to_vec()
    }
}

/// Runs a kernel on a GPU of its target; tensors are changed in place.
pub(crate) fn run(module: &Module, num_warps: u32, grid: [u32; 3], args: &mut [Arg], seed: u64) {
    let is_hopper = module.text.contains(".target sm_90a");
    let machine = Machine::new(if is_hopper { Gpu::h200() } else { Gpu::a100() });
    let loaded = machine.load(&module.text).unwrap_or_else(|error| panic!("{error}\n{}", module.text));
    let kernel = loaded.kernel(&module.entry).expect("its entry");
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut addresses = Vec::new();
    for arg in args.iter() {
        match arg {
            Arg::Tensor(bytes, size) => {
                let address = machine.allocate(bytes.len()).unwrap();
                machine.write(address, bytes).unwrap();
                words.push(address.to_le_bytes().to_vec());
                words.push(((bytes.len() / size) as u64).to_le_bytes().to_vec());
                addresses.push(Some(address));
            }
            Arg::Scalar(bytes) => {
                words.push(bytes.clone());
                addresses.push(None);
            }
        }
    }
    if let Some(values) = LaunchValues::of_ptx(&module.text).unwrap() {
        words.extend(values.bytes(&words, grid).unwrap().0);
    }
    let params: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut launch = Launch::new(grid, [32 * num_warps, 1, 1], &params);
    launch.shared_bytes = module.shared_bytes;
    launch.options.seed = seed;
    machine.launch(&kernel, &launch).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", module.text));
    for (arg, address) in args.iter_mut().zip(addresses) {
        if let (Arg::Tensor(bytes, _), Some(address)) = (arg, address) {
            machine.read(address, bytes).unwrap();
        }
    }
}
