//! Checks `#[kernel(require(..))]`: an unmet requirement is an error at the op that prevents it.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::Requirement;
use crate::passes::specialize_warps::{Decisions, Obstacle};

/// Checks the requirements of a kernel for a target that can meet them. A checked launch, which is slow anyway, is no error.
///
/// # Errors
/// Each reason why a requirement is not met, at the op of the user's source. An error that other values or another schedule mend is marked
/// [`beyond_gpu`](Diagnostic::beyond_gpu), so that tuning leaves out such a configuration.
pub(super) fn check(requires: &[Requirement], roles: Result<&Decisions, &Obstacle>) -> Result<(), Diagnostics> {
    let mut errors = Diagnostics::new();
    match roles {
        _ if requires.is_empty() => {}
        Err(Obstacle::Checked) => {}
        Err(why) => {
            let names: Vec<String> = requires.iter().map(|requirement| format!("`{requirement}`")).collect();
            let error = Diagnostic::new(why.loc(), format!("the kernel requires {}, but {why}", names.join(" and "))).help(why.help());
            errors.push(if why.is_of_values() { error.beyond_gpu() } else { error });
        }
        Ok(decisions) if requires.contains(&Requirement::Tma) => {
            for (loc, why) in &decisions.usual_stores {
                let message = format!("the kernel requires `{}`, but this store is no tensor copy: {why}", Requirement::Tma);
                errors.push(Diagnostic::new(*loc, message).help(why.help()));
            }
        }
        Ok(_) => {}
    }
    errors.finish(())
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Diagnostic;
    use crate::target::Target;
    use crate::{Bindings, Options, Schedule, compile, ir};

    /// A product of tiles of a tensor with itself, whose result is stored, and this op.
    fn kernel(mutable: bool, stored: &str, requires: &str) -> ir::Function {
        let ptr = if mutable { "ptr_mut" } else { "ptr" };
        let text = format!(
            "kernel @product(%x: {ptr}<bf16>, %z: ptr_mut<f32>) requires({requires}) {{
                %i = arange {{start = 0, end = 64}} : tile<i64, [64]>
                %column = expand_dims %i {{axis = 1}} : tile<i64, [64, 1]>
                %extent = const {{value = 64}} : tile<i64, [64, 1]>
                %starts = mul %column, %extent : tile<i64, [64, 1]>
                %rows = broadcast %starts : tile<i64, [64, 64]>
                %row = expand_dims %i {{axis = 0}} : tile<i64, [1, 64]>
                %columns = broadcast %row : tile<i64, [64, 64]>
                %at = add %rows, %columns : tile<i64, [64, 64]>
                %a = load %x, %at : tile<bf16, [64, 64]> @2:1
                %none = const {{value = 0.0}} : tile<f32, [64, 64]>
                %product = dot %a, %a, %none : tile<f32, [64, 64]> @3:1
                {stored}
                return
            }}"
        );
        ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    const STORE: &str = "store %z, %at, %product @4:1";
    const SUM: &str =
        "%old = load %z, %at : tile<f32, [64, 64]> @4:2\n%sum = add %old, %product : tile<f32, [64, 64]>\nstore %z, %at, %sum @5:1";

    fn errors(func: &ir::Function, target: Target, num_warps: u32, checked: bool) -> Vec<Diagnostic> {
        let schedule = Schedule { num_warps, ..Schedule::DEFAULT };
        let options = Options { schedule, checked, ..Options::new(Bindings::new(), target) };
        compile(func, &options).map_or_else(|errors| errors.into_vec(), |_| Vec::new())
    }

    #[test]
    fn a_lost_fast_path_is_an_error_at_the_op_that_loses_it() {
        let of = |mutable, stored, requires, num_warps| {
            let found = errors(&kernel(mutable, stored, requires), Target::SM_90A, num_warps, false);
            found.into_iter().map(|error| (error.loc.line, error.to_string(), error.beyond_gpu)).collect::<Vec<_>>()
        };
        let written = "the kernel requires `wgmma` and `specialized`, but the kernel may write the tensor, or computes the pointer\n\
                       help: take a `Ptr` in place of a `PtrMut`, or a `View` in place of a `ViewMut`";
        assert_eq!(of(true, STORE, "wgmma, specialized", 4), [(2, written.to_owned(), false)]);
        let rows = "the kernel requires `tma`, but the rows of a `dot`, and its columns, are fewer than 16 for each warp\n\
                    help: let the tile have at least 16 rows or columns for each warp, or say fewer `num_warps`";
        assert_eq!(of(false, STORE, "tma", 8), [(3, rows.to_owned(), true)]);
        let stored = "the kernel requires `tma`, but this store is no tensor copy: the kernel accesses the tensor elsewhere, too\n\
                      help: access the tensor by this store only";
        assert_eq!(of(false, SUM, "wgmma, tma", 4), [(5, stored.to_owned(), false)]);
    }

    #[test]
    fn a_kernel_that_has_what_it_requires_compiles() {
        let ptx = |requires: &str| compile(&kernel(false, STORE, requires), &Options::new(Bindings::new(), Target::SM_90A)).unwrap().ptx;
        let required = ptx("wgmma, tma, specialized");
        assert!(required.contains("wgmma.mma_async") && ir::Requirement::is_stated(&required), "{required}");
        assert_eq!(errors(&kernel(false, SUM, "wgmma, specialized"), Target::SM_90A, 4, false), []);
        // The comment states requirements, and changes nothing else.
        let free = ptx("");
        assert_eq!(
            (free.replacen("//\n\n", "//\n// requires wgmma, tma, specialized\n\n", 1), ir::Requirement::is_stated(&free)),
            (required, false)
        );
    }

    #[test]
    fn an_older_target_and_a_checked_launch_lose_nothing() {
        for func in [kernel(true, STORE, "wgmma"), kernel(false, SUM, "tma")] {
            assert_eq!(errors(&func, Target::SM_80, 4, false), []);
            assert_eq!(errors(&func, Target::SM_90A, 4, true), []);
        }
    }
}
