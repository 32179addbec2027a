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
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) struct Target(u8, u8, bool);
    impl Target {
        pub(crate) const ALL: [Target; 2] = [Target(8, 0, false), Target(9, 0, true)];
        pub(crate) const fn runs_on(self, major: i32, minor: i32) -> bool {
            let (a, b) = (self.0 as i32, self.1 as i32);
            if self.2 { major == a && minor == b } else { major > a || (major == a && minor >= b) }
        }
    }
    impl std::str::FromStr for Target {
        type Err = ();
        fn from_str(s: &str) -> Result<Target, ()> {
            match s {
                "sm_80" => Ok(Target::ALL[0]),
                "sm_90a" => Ok(Target::ALL[1]),
                _ => Err(()),
            }
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
        pub(crate) op: &'static str,
        pub(crate) file: Name,
        pub(crate) line: u32,
        pub(crate) column: u32,
        pub(crate) program_id: [u32; 3],
        pub(crate) index: i64,
        pub(crate) length: u64,
        pub(crate) parameter: Name,
        pub(crate) lane: usize,
    }
    impl Program {
        pub(crate) fn words(&self) -> usize {
            2
        }
        /// x[i] += 1 for f32, one element a program; parameters: pointer and length.
        pub(crate) unsafe fn run(
            &self,
            args: &[u64],
            _: [u32; 3],
            program: [u32; 3],
            _: &mut Scratch,
            checked: bool,
        ) -> Result<(), Violation> {
            let i = program[0] as u64;
            if i >= args[1] {
                return if !checked {
                    Ok(())
                } else {
                    Err(Violation {
                        op: "store",
                        lane: 0,
                        file: "a.rs".into(),
                        line: 1,
                        column: 2,
                        program_id: program,
                        index: i as i64,
                        length: args[1],
                        parameter: "x".into(),
                    })
                };
            }
            // SAFETY: stub.
            unsafe { *(args[0] as *mut f32).add(i as usize) += 1.0 };
            Ok(())
        }
    }
}
