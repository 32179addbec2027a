//! The words of the compiler that this crate uses.

pub(crate) use kernel_lang::dtype::Dtype;
pub(crate) use kernel_lang::ir;
pub(crate) use stub::*;

mod stub {
    use super::*;
    use kernel_lang::diagnostic::Diagnostics;
    use kernel_lang::location::Name;

    #[derive(Default, Debug)]
    pub(crate) struct Bindings {
        pub(crate) types: Vec<(Name, Dtype)>,
        pub(crate) consts: Vec<(Name, i128)>,
    }
    pub(crate) struct Options {
        pub(crate) bindings: Bindings,
        pub(crate) target: Target,
        pub(crate) num_warps: u32,
        pub(crate) num_stages: u32,
    }
    pub(crate) struct Target;
    impl Target {
        pub(crate) fn for_device(_: (u32, u32)) -> Target {
            Target
        }
    }
    pub(crate) struct Compiled {
        pub(crate) ptx: String,
        pub(crate) entry: String,
        pub(crate) num_warps: u32,
        pub(crate) shared_bytes: u32,
    }
    pub(crate) fn compile(_: &ir::Function, o: &Options) -> Result<Compiled, Diagnostics> {
        let _ = (&o.bindings, &o.target, o.num_stages);
        Ok(Compiled { ptx: String::new(), entry: String::new(), num_warps: o.num_warps, shared_bytes: 0 })
    }
    pub(crate) fn compile_cpu(_: &ir::Function, b: &Bindings) -> Result<Program, Diagnostics> {
        let _ = (&b.types, &b.consts);
        Ok(Program)
    }
    pub(crate) struct Program;
    #[derive(Default)]
    pub(crate) struct Scratch;
    pub(crate) struct Violation {
        pub(crate) file: String,
        pub(crate) line: u32,
        pub(crate) column: u32,
        pub(crate) program_id: [u32; 3],
        pub(crate) index: i64,
        pub(crate) length: u64,
        pub(crate) parameter: String,
    }
    impl Program {
        /// x[i] += 1 for f32, one element a program; parameters: pointer and length.
        pub(crate) unsafe fn run(&self, args: &[u64], _: [u32; 3], program: [u32; 3], _: &mut Scratch) -> Result<(), Violation> {
            let i = program[0] as u64;
            if i >= args[1] {
                return Err(Violation {
                    file: "a.rs".into(),
                    line: 1,
                    column: 2,
                    program_id: program,
                    index: i as i64,
                    length: args[1],
                    parameter: "x".into(),
                });
            }
            unsafe { *(args[0] as *mut f32).add(i as usize) += 1.0 };
            Ok(())
        }
    }
}
