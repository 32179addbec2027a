//! The code of a package's kernels: variants that a program lacks, their PTX without layout, and machine code for named GPUs.

use std::path::Path;

use kernel_runtime::Target;
use kernel_runtime::assembler::Assembler;
use kernel_runtime::ops::parts::{KernelParts, VariantParts, split_entries};
use kernel_runtime::ops::recorder::RecordedLaunch;

use crate::error::PackageError;

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// Compiles what a launch runs on a target, if the parts lack it. A configuration that does not compile cannot run there, and others may.
pub(crate) fn add_variants(parts: &mut KernelParts, launch: &RecordedLaunch, target: Target) -> Result<()> {
    // Later GPUs run what is compiled for `sm_80`, too.
    let serves = |variant: &VariantParts| variant.target == target.to_string() || variant.target == Target::SM_80.to_string();
    let (mut has_code, mut failure) = (false, None);
    for (key, schedule) in launch.code() {
        let is_of =
            |variant: &VariantParts| variant.key == key && serves(variant) && schedule.is_none_or(|schedule| variant.schedule == schedule);
        if !parts.variants.iter().any(is_of) {
            match KernelParts::compile(launch.of_kernel(), key, schedule, target) {
                Ok(variant) => parts.variants.push(variant),
                Err(error) => {
                    failure.get_or_insert((key, error));
                    continue;
                }
            }
        }
        has_code = true;
    }
    match failure {
        Some((key, error)) if !has_code => Err(PackageError::NoCode {
            kernel: launch.kernel().to_owned(),
            parameters: launch.of_kernel().written_key(key),
            help: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// The assembler for machine code: the named one, or one that this machine has.
pub(crate) fn assembler(named: Option<&Path>) -> Result<Assembler> {
    match Assembler::find(named) {
        Ok(Some(assembler)) => Ok(assembler),
        Ok(None) => Err(PackageError::NoAssembler { reason: "there is no `ptxas` in `PATH`".to_owned() }),
        Err(reason) => Err(PackageError::NoAssembler { reason }),
    }
}

/// Assembles each variant that GPUs of these compute capabilities load. A configuration that does not assemble has PTX only, as it cannot run there.
pub(crate) fn add_machine_code(parts: &mut KernelParts, assembler: &Assembler, capabilities: &[(u32, u32)]) -> Result<()> {
    let is_tuned = parts.built.is_some();
    for number in 0..parts.variants.len() {
        let mut codes = Vec::new();
        for capability in capabilities.iter().copied().filter(|capability| is_preferred(&parts.variants, number, *capability)) {
            match assembler.machine_code(&parts.variants[number], capability) {
                Ok(code) => codes.extend(code),
                Err(_) if is_tuned => {}
                Err(reason) => return Err(PackageError::NotAssembled { kernel: parts.name.clone(), capability, reason }),
            }
        }
        parts.variants[number].machine_code = codes;
    }
    Ok(())
}

/// Whether a GPU runs a variant, and no variant for a better target in its place.
fn is_preferred(variants: &[VariantParts], number: usize, (major, minor): (u32, u32)) -> bool {
    let target = |variant: &VariantParts| {
        let target: Target = variant.target.parse().ok()?;
        Some(target).filter(|target| target.runs_on(major.cast_signed(), minor.cast_signed()))
    };
    let variant = &variants[number];
    let others = variants.iter().filter(|other| (&other.key, other.schedule) == (&variant.key, variant.schedule));
    target(variant).is_some_and(|own| others.filter_map(target).all(|other| other <= own))
}

/// PTX without indentation and empty lines, and without comments in its functions. The comments in front of a function state its launch values, and source
/// locations are those of profilers and of errors.
pub(crate) fn without_layout(ptx: &str) -> String {
    if ptx.contains("/*") {
        return ptx.to_owned();
    }
    let (usual, persistent) = split_entries(ptx);
    entry_without_layout(usual) + &persistent.map(entry_without_layout).unwrap_or_default()
}

/// The part of a module with one entry, which ends the part.
fn entry_without_layout(part: &str) -> String {
    let Some(at) = part.find(".visible .entry ") else { return part.to_owned() };
    let (head, function) = part.split_at(at);
    // A comment that closes a block without indentation ends the launch values.
    let outdented = |line: &'_ str| match line.strip_prefix("// ").map(str::trim_start) {
        Some(content) if content != "}" => format!("// {content}\n"),
        _ => format!("{line}\n"),
    };
    let head = head.lines().filter(|line| !line.is_empty()).map(outdented);
    let lines = function.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    head.chain(lines.map(|line| format!("{line}\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_of_functions_is_left_out() {
        let head = "//\n// k\n//\n\n.version 8.0\n.target sm_90a\n\n// launch values:\n// kernel @k() {\n//     if %0 {\n//         yield\n//     }\n//     return\n// }\n\n";
        let short = "//\n// k\n//\n.version 8.0\n.target sm_90a\n// launch values:\n// kernel @k() {\n// if %0 {\n// yield\n//     }\n// return\n// }\n";
        let body =
            ".visible .entry k(\n\t.param .u64 a,\n\t.param .u64 b\n)\n.reqntid 128, 1, 1\n{\n\n\t// note\n\t.loc 1 3 9\n\tret;\n}\n";
        let expected = ".visible .entry k(\n.param .u64 a,\n.param .u64 b\n)\n.reqntid 128, 1, 1\n{\n.loc 1 3 9\nret;\n}\n";
        assert_eq!(without_layout(&format!("{head}{body}")), format!("{short}{expected}"));
        assert_eq!(without_layout(&format!("{short}{expected}")), format!("{short}{expected}"));
        // A module with two entries, of which the second has a comment in front of it, too.
        let second = "// persistent entry: k2\n// 128 threads and 0 bytes of shared memory a CTA, 1 CTAs a multiprocessor\n";
        let launch_values = |head: &str| head[head.find("// launch").unwrap()..].to_owned();
        let [long, short] =
            [(head, body), (short, expected)].map(|(head, body)| format!("{head}{body}\n{second}{}{body}", launch_values(head)));
        assert_eq!(without_layout(&long), short.replacen("}\n\n// persistent", "}\n// persistent", 1));
        let commented = format!("{head}{body}/* a\n// */ b\n");
        assert_eq!(without_layout(&commented), commented, "a line that begins as a comment may end one");
    }

    #[test]
    fn each_gpu_has_the_code_that_it_prefers() {
        let variant = |key: u64, target: &str| VariantParts {
            key: vec![key],
            schedule: kernel_runtime::ops::parts::Schedule::DEFAULT,
            target: target.to_owned(),
            entry: String::new(),
            shared_bytes: 0,
            ptx: String::new(),
            machine_code: Vec::new(),
        };
        let variants = [variant(1, "sm_80"), variant(1, "sm_90a"), variant(2, "sm_80")];
        let preferred = |capability| [0, 1, 2].map(|number| is_preferred(&variants, number, capability));
        assert_eq!(preferred((9, 0)), [false, true, true]);
        assert_eq!(preferred((8, 6)), [true, false, true]);
        assert_eq!(preferred((10, 0)), [true, false, true]);
        assert_eq!(preferred((7, 5)), [false, false, false]);
    }
}
