//! Targets and their properties as data. Only this file compares architectures.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use crate::dtype::Dtype;

/// The bytes that memory moves at least, on every target.
pub const SECTOR: u32 = 32;

/// The bytes of a cache line, on every target.
pub const LINE: u32 = 128;

/// A PTX target. Targets are ordered: of two that a device runs, the greater has more instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Target {
    major: u8,
    minor: u8,
    /// Does it allow the instructions that only this architecture has (`sm_90a`)?
    specific: bool,
}

impl Target {
    /// Ampere: the baseline. Its PTX runs on all newer devices.
    pub const SM_80: Target = Target { major: 8, minor: 0, specific: false };
    /// Hopper with its architecture-specific instructions; such PTX runs on Hopper only.
    pub const SM_90A: Target = Target { major: 9, minor: 0, specific: true };
    /// The targets that a build compiles for, best last.
    pub const ALL: [Target; 2] = [Target::SM_80, Target::SM_90A];

    /// The lowest PTX ISA version, major and minor, that supports the target; some instructions need a later one.
    pub const fn ptx_version(self) -> (u32, u32) {
        if self.major >= 9 { (8, 0) } else { (7, 0) }
    }

    /// Can a device of that compute capability run PTX of this target?
    pub const fn runs_on(self, major: i32, minor: i32) -> bool {
        let (own_major, own_minor) = (self.major as i32, self.minor as i32);
        if self.specific {
            major == own_major && minor == own_minor
        } else {
            major > own_major || (major == own_major && minor >= own_minor)
        }
    }

    /// The best target that a device of that compute capability runs; `None` for devices older than every target.
    ///
    /// ```
    /// use kernel_lang::target::Target;
    /// assert_eq!(Target::best_for(9, 0), Some(Target::SM_90A));
    /// assert_eq!(Target::best_for(12, 0), Some(Target::SM_80));
    /// assert_eq!(Target::best_for(7, 5), None);
    /// ```
    pub fn best_for(major: i32, minor: i32) -> Option<Target> {
        Target::ALL.into_iter().filter(|target| target.runs_on(major, minor)).max()
    }

    /// The compute capability as a number: 80 for `sm_80`, 90 for `sm_90a`.
    pub const fn number(self) -> u32 {
        10 * self.major as u32 + self.minor as u32
    }

    /// Does it have an atomic add of `bf16`?
    pub const fn has_bf16_atomics(self) -> bool {
        self.major >= 9
    }

    /// The bytes of neighbouring elements that one atomic add updates at once if their old values are unused: 0 if only one element
    /// (PTX ISA, `red`).
    pub const fn widest_atomic_add(self, dtype: Dtype) -> u32 {
        match dtype {
            Dtype::F16 | Dtype::Bf16 | Dtype::F32 if self.major >= 9 => 16,
            Dtype::F16 => 4,
            _ => 0,
        }
    }

    /// Can a launch begin before the launch that it depends on has ended (PTX ISA, `griddepcontrol`)?
    pub const fn has_dependent_launches(self) -> bool {
        self.major >= 9
    }

    /// Does it have conversions to and from 8-bit floats?
    pub const fn has_float8_conversions(self) -> bool {
        self.major >= 9 || (self.major == 8 && self.minor >= 9)
    }

    /// Does it have products of warpgroups, and copies of blocks by tensor maps?
    pub const fn has_warpgroup_products(self) -> bool {
        self.major == 9 && self.specific
    }

    /// Does it have matrix instructions of 8-bit floats?
    pub const fn has_float8_products(self) -> bool {
        self.has_float8_conversions()
    }

    /// Does it have matrix instructions of `f64` with 16 rows, or only those with 8?
    pub const fn has_f64_products_of_16_rows(self) -> bool {
        self.major >= 9
    }

    /// Threads per warp.
    pub const fn warp_size(self) -> u32 {
        32
    }

    /// Maximum number of warps per program.
    pub const fn max_warps(self) -> u32 {
        32
    }

    /// The shared memory that the hardware takes of each CTA.
    const RESERVED_BYTES: u32 = 1 << 10;

    /// Maximum number of bytes of shared memory per CTA.
    pub const fn shared_bytes(self) -> u32 {
        if self.major >= 9 { 227 << 10 } else { 163 << 10 }
    }

    /// As [`Target::shared_bytes`], on the GPU with the least shared memory that runs code for the target. Code for `sm_80` also runs on GPUs of compute capability 8.6, 8.9
    /// and 12.0.
    pub const fn least_shared_bytes(self) -> u32 {
        if self.major >= 9 { self.shared_bytes() } else { 99 << 10 }
    }

    /// Maximum number of bytes of shared memory per CTA, if a multiprocessor runs so many CTAs at the same time.
    pub const fn shared_bytes_of(self, ctas: u32) -> u32 {
        (self.shared_bytes() + Self::RESERVED_BYTES) / ctas - Self::RESERVED_BYTES
    }

    /// Registers shared by the threads of a CTA.
    pub const fn registers(self) -> u32 {
        64 << 10
    }

    /// Maximum number of CTAs per cluster: 1 without cluster support.
    pub const fn max_cluster(self) -> u32 {
        if self.major >= 9 { crate::Schedule::MOST_CTAS } else { 1 }
    }

    /// The widest access of one thread to global memory, in bytes.
    pub const fn widest_access(self) -> u32 {
        16
    }
}

/// A target together with the other targets that gave the same answer to every question so far: they share the generated code.
///
/// Code generation can query target properties only through this type.
#[derive(Clone, Debug)]
pub struct Asked {
    target: Target,
    alike: RefCell<Vec<Target>>,
}

impl Asked {
    /// A target without any questions asked yet.
    pub fn new(target: Target) -> Asked {
        Asked { target, alike: RefCell::new(Target::ALL.into_iter().filter(|other| *other != target).collect()) }
    }

    /// A target of which questions have been asked before: `alike` are the other targets that gave the same answers.
    pub(crate) fn resumed(target: Target, alike: Vec<Target>) -> Asked {
        Asked { target, alike: RefCell::new(alike) }
    }

    /// Answers a question about the target. Narrow questions let more targets share code: ask how many stages fit into shared memory, not how
    /// many bytes it has.
    ///
    /// ```
    /// use kernel_lang::target::{Asked, Target};
    /// let target = Asked::new(Target::SM_80);
    /// assert!(target.ask(|target| target.shared_bytes() > 1024));
    /// assert_eq!(target.alike(), [Target::SM_90A]);
    /// assert!(!target.ask(Target::has_bf16_atomics));
    /// assert_eq!(target.alike(), []);
    /// ```
    pub fn ask<T: PartialEq>(&self, question: impl Fn(Target) -> T) -> T {
        let answer = question(self.target);
        self.alike.borrow_mut().retain(|other| question(*other) == answer);
        answer
    }

    /// The target itself, for output that only names it.
    pub fn name(&self) -> Target {
        self.target
    }

    /// The targets that give the same answer to every question asked so far.
    pub fn alike(&self) -> Vec<Target> {
        self.alike.borrow().clone()
    }
}

/// An architecture of machine code, such as `sm_86` or `sm_90a`. The compiler need not have a [`Target`] for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Architecture {
    major: u8,
    minor: u8,
    specific: bool,
}

impl Architecture {
    /// The architecture for which PTX of a target is assembled, for devices of that compute capability. `None` if they do not run it.
    pub fn of(target: Target, (major, minor): (u32, u32)) -> Option<Architecture> {
        let [signed_major, signed_minor] = [major, minor].map(|number| i32::try_from(number).unwrap_or(-1));
        let [major, minor] = [major, minor].map(|number| u8::try_from(number).ok());
        let architecture = Architecture { major: major?, minor: minor?, specific: target.specific };
        target.runs_on(signed_major, signed_minor).then_some(architecture)
    }

    /// Can a device of that compute capability run its machine code? Unlike PTX, machine code does not run on later major versions (CUDA C++ Programming
    /// Guide, Binary Compatibility).
    ///
    /// ```
    /// use kernel_lang::target::Architecture;
    /// let ampere: Architecture = "sm_86".parse().unwrap();
    /// assert!(ampere.runs_on(8, 6) && ampere.runs_on(8, 9) && !ampere.runs_on(8, 0) && !ampere.runs_on(9, 0));
    /// let hopper: Architecture = "sm_90a".parse().unwrap();
    /// assert!(hopper.runs_on(9, 0) && !hopper.runs_on(9, 1));
    /// ```
    pub const fn runs_on(self, major: i32, minor: i32) -> bool {
        let (own_major, own_minor) = (self.major as i32, self.minor as i32);
        major == own_major && (minor == own_minor || (minor > own_minor && !self.specific))
    }
}

/// The name of the assembler's option: `sm_86`, `sm_90a`.
impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}{}", self.major, self.minor, if self.specific { "a" } else { "" })
    }
}

impl FromStr for Architecture {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Architecture, UnknownTarget> {
        let name = text.strip_prefix("sm_").ok_or(UnknownTarget)?;
        let number = name.strip_suffix('a').unwrap_or(name);
        let number =
            Some(number).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())).and_then(|digits| digits.parse::<u8>().ok());
        let number = number.filter(|number| *number >= 10).ok_or(UnknownTarget)?;
        let architecture = Architecture { major: number / 10, minor: number % 10, specific: name.ends_with('a') };
        if architecture.to_string() == text { Ok(architecture) } else { Err(UnknownTarget) }
    }
}

/// Fused multiply-adds of that type that one multiprocessor of a device of that compute capability completes per clock, without matrix
/// instructions. `None` for other types, and for architectures without an entry here.
///
/// The figures come from the arithmetic throughputs in NVIDIA's CUDA C++ Programming Guide and the peaks in the papers on the GA100, GA102,
/// AD102 and GH100. The figures for `f16` and `bf16` assume packed instructions on two elements, which a GPU executes only if the code
/// contains them.
///
/// ```
/// use kernel_lang::{dtype::Dtype, target::fmas_per_clock};
/// assert_eq!(fmas_per_clock((9, 0), Dtype::F32), Some(128));
/// assert_eq!(fmas_per_clock((9, 0), Dtype::I32), None);
/// ```
pub const fn fmas_per_clock(capability: (i32, i32), dtype: Dtype) -> Option<u32> {
    let [f16, bf16, f32, f64] = match capability {
        (8, 0) => [256, 128, 64, 32],
        (8, 6 | 9) => [128, 128, 128, 2],
        (9, 0) => [256, 256, 128, 64],
        _ => return None,
    };
    match dtype {
        Dtype::F16 => Some(f16),
        Dtype::Bf16 => Some(bf16),
        Dtype::F32 => Some(f32),
        Dtype::F64 => Some(f64),
        _ => None,
    }
}

/// The name in PTX: `sm_80`, `sm_90a`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}{}", self.major, self.minor, if self.specific { "a" } else { "" })
    }
}

/// The text is not the name of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownTarget;

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Target, UnknownTarget> {
        Target::ALL.into_iter().find(|target| target.to_string() == text).ok_or(UnknownTarget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baseline_ptx_runs_on_newer_devices_and_specific_ptx_on_its_own() {
        assert!(Target::SM_80.runs_on(8, 0) && Target::SM_80.runs_on(9, 0) && Target::SM_80.runs_on(12, 0));
        assert!(!Target::SM_80.runs_on(7, 5));
        assert!(Target::SM_90A.runs_on(9, 0) && !Target::SM_90A.runs_on(10, 0));
        assert_eq!("sm_90a".parse(), Ok(Target::SM_90A));
        assert_eq!("sm_91".parse::<Target>(), Err(UnknownTarget));
    }

    #[test]
    fn machine_code_is_for_the_devices_that_run_the_ptx() {
        let of = |target, capability| Architecture::of(target, capability).map(|architecture| architecture.to_string());
        let names = [(8, 0), (8, 6), (9, 0), (12, 1), (7, 5)].map(|capability| of(Target::SM_80, capability));
        assert_eq!(names, [Some("sm_80"), Some("sm_86"), Some("sm_90"), Some("sm_121"), None].map(|name| name.map(str::to_owned)));
        assert_eq!([(9, 0), (8, 0), (10, 0)].map(|capability| of(Target::SM_90A, capability)), [Some("sm_90a".to_owned()), None, None]);
        for name in ["sm_80", "sm_90a", "sm_100", "sm_121"] {
            assert_eq!(name.parse::<Architecture>().unwrap().to_string(), name);
        }
        for name in ["", "sm_", "sm_9", "sm_080", "sm_+90", "sm_90aa", "sm_90f", "sm_9000", "compute_90", "sm_90 "] {
            assert_eq!(name.parse::<Architecture>(), Err(UnknownTarget), "{name}");
        }
    }
}
