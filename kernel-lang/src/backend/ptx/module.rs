//! The text of a module: what its functions share, the kernel's entry, and the entry of its version with roles.

use rustc_hash::FxHashMap;

use super::memory::checked_report::Site;
use super::text::names;
use super::{Emitter, arithmetic, exchange, memory_type};
use crate::dtype::Dtype;
use crate::ir::{Function, Inst, Requirement, Type, Value};
use crate::launch_value::persistent_entry::{MAP_ALIGNMENT, MAP_BYTES, PersistentEntry, map_name};
use crate::launch_value::{self, parameter_name};
use crate::layout::BLOCK_ALIGNMENT;
use crate::schedule::Schedule;

/// The alignment of the memory of exchanges.
const SHARED_ALIGNMENT: u32 = 16;

/// The PTX of a kernel, or of a version of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// The text.
    pub(super) version: Version,
    /// The accesses and assertions that report, if the kernel is checked.
    pub sites: Vec<Site>,
    /// Bytes of dynamic shared memory that a launch must provide. This may exceed the limit of the target.
    pub shared_bytes: u32,
    /// The bytes of its parameters. This may exceed the limit of GPUs.
    pub param_bytes: usize,
    /// The CTAs that a multiprocessor runs at the same time, of a version with roles. 0 for other kernels.
    pub workers: u32,
}

/// A function, and what it needs of its module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Version {
    /// The kernel's name as a valid PTX identifier.
    entry: String,
    target: String,
    /// The comment about what the kernel requires.
    requires: String,
    /// The PTX ISA version, major and minor.
    isa: (u32, u32),
    uses_two_over_pi: bool,
    /// The alignment of shared memory, or 0 if the function uses none.
    shared_alignment: u32,
    /// The comment in front of the declaration of shared memory.
    shared_comment: String,
    /// The function, with the comments about its launches.
    function: String,
    /// The directives that name the source files.
    files: String,
}

impl Module {
    /// The kernel's name as a valid PTX identifier.
    pub fn entry(&self) -> &str {
        &self.version.entry
    }

    /// The text of the module with this version of the kernel, and with the version with roles, if there is one.
    pub fn text(&self, with_roles: Option<&Module>) -> String {
        let all = || [Some(self), with_roles].into_iter().flatten().map(|module| &module.version);
        let Version { entry, target, requires, shared_comment, function, files, .. } = &self.version;
        let (major, minor) = all().map(|version| version.isa).max().unwrap_or_default();
        let mut text =
            format!("//\n// {entry} by galatea\n//\n{requires}\n.version {major}.{minor}\n.target {target}\n.address_size 64\n\n");
        if all().any(|version| version.uses_two_over_pi) {
            let words: Vec<String> = arithmetic::math::TWO_OVER_PI.iter().map(|word| format!("{word:#010x}")).collect();
            text.push_str(&format!(
                ".const .align 4 .b32 {}[{}] = {{{}}};\n\n",
                arithmetic::math::TABLE_NAME,
                words.len(),
                words.join(", ")
            ));
        }
        text.push_str(shared_comment);
        let alignment = all().map(|version| version.shared_alignment).max().unwrap_or_default();
        if alignment > 0 {
            text.push_str(&format!(".extern .shared .align {alignment} .b8 {}[];\n\n", exchange::shared::NAME));
        }
        text.push_str(function);
        if let Some(with_roles) = with_roles {
            text.push('\n');
            text.push_str(&with_roles.version.function);
        }
        text.push_str(files);
        text
    }
}

impl Emitter<'_> {
    /// The text of the kernel with this body. `shared_ends` are the ends of the memory of its ops, `in_order` its launch values, and `launch_types` the types of their
    /// parameters.
    pub(super) fn version(
        &self,
        body: String,
        shared_ends: &FxHashMap<Option<Inst>, u32>,
        in_order: &[Value],
        launch_types: &[Dtype],
    ) -> Version {
        let shared_bytes = shared_ends.values().copied().max().unwrap_or_default();
        let (func, schedule) = (self.func, self.schedule);
        let mut entry = names::entry(&func.name);
        let has_roles = self.rings.maps().next().is_some();
        let (mut shared_comment, mut function) = (String::new(), String::new());
        let mut threads = schedule.threads();
        let mut maxnreg = schedule.maxnreg;
        if has_roles {
            // No name in Rust has a `$`.
            entry.push_str("$roles");
            threads += Schedule::PRODUCER_THREADS;
            maxnreg = Some(schedule.role_registers(self.workers()).at_first);
            let maps = self.rings.maps().cloned().collect();
            let ctas_per_multiprocessor = self.workers();
            function = PersistentEntry { name: entry.clone(), threads, shared_bytes, ctas_per_multiprocessor, maps }.to_string();
        } else if shared_bytes > 0 {
            shared_comment.push_str(&format!("// shared memory: {shared_bytes} bytes a CTA\n"));
            for unused in exchange::launch::unused(func, shared_ends, in_order) {
                shared_comment.push_str(&format!("// {unused}\n"));
            }
        }
        function.push_str(&launch_value::comment(func));
        function.push_str(&format!(".visible .entry {entry}(\n"));
        let mut params: Vec<String> =
            func.params.iter().enumerate().flat_map(|(index, param)| param_declarations(func, index, param.value)).collect();
        if func.reports {
            params.push("\t.param .u64 .ptr .global .align 8 report".to_string());
        }
        let launched = launch_types.iter().enumerate();
        params.extend(launched.map(|(number, dtype)| format!("\t.param .{} {}", memory_type(*dtype), parameter_name(number))));
        params.extend(
            (0..self.rings.maps().count()).map(|map| format!("\t.param .align {MAP_ALIGNMENT} .b8 {}[{MAP_BYTES}]", map_name(map))),
        );
        function.push_str(&params.join(",\n"));
        function.push_str(&format!("\n)\n.reqntid {threads}, 1, 1\n"));
        if schedule.num_ctas > 1 {
            function.push_str(&format!(".explicitcluster\n.reqnctapercluster {}, 1, 1\n", schedule.num_ctas));
        }
        if let Some(registers) = maxnreg {
            function.push_str(&format!(".maxnreg {registers}\n"));
        }
        function.push_str("{\n");
        function.push_str(&body);
        function.push_str("}\n");
        let files = func.files.iter().enumerate().map(|(index, file)| format!("\n.file {} {}\n", index + 1, names::file(file)));
        let shared_alignment = match shared_bytes {
            0 => 0,
            _ if has_roles => BLOCK_ALIGNMENT,
            _ => SHARED_ALIGNMENT,
        };
        Version {
            entry,
            target: self.target.name().to_string(),
            requires: Requirement::stated(&func.requires),
            isa: self.ptx_version,
            uses_two_over_pi: self.uses_two_over_pi,
            shared_alignment,
            shared_comment,
            function,
            files: files.collect(),
        }
    }
}

fn param_declarations(func: &Function, index: usize, value: Value) -> Vec<String> {
    match func.ty(value) {
        Type::Pointer { elem, .. } => {
            let align = elem.dtype().map_or(1, Dtype::bytes);
            vec![format!("\t.param .u64 .ptr .global .align {align} param_{index}"), format!("\t.param .u64 param_{index}_len")]
        }
        ty => vec![format!("\t.param .{} param_{index}", memory_type(ty.dtype()))],
    }
}
