//! Translates the syntax tree of a kernel to its steps: resolves every name, and expands every call inline.

mod call;

use std::collections::HashMap;

use super::addresses::{SharedVariables, alignment, bytes, key};
use super::{Action, Effect, Globals, Named, Param, Problem, Program, Scope, Step, allocate_shared, effect, reconverge};
use crate::instructions::{self, Form, Register, Unsupported, Uses};
use crate::program::callers::Callers;
use crate::ptx::{Function, Instruction, Module, Operand, Position, SourceLine, Space, Statement, Type, Variable};

/// The maximum number of steps after the expansion of calls, enough for any kernel. Without it, functions that call others several times could
/// expand to exponentially many steps. Recursive calls are rejected separately.
const MAX_STEPS: usize = 4 << 20;

/// The maximum total size of a kernel's parameters, and the maximum before PTX ISA 8.1 (PTX ISA, "Kernel Function Parameters").
const PARAM_BYTES: u32 = 32764;
const OLD_PARAM_BYTES: u32 = 4352;

/// Builds the program of a kernel of a module.
pub(crate) fn build(module: &Module, globals: &Globals, kernel: &Function) -> Result<Program, Problem> {
    let mut params = Vec::new();
    let mut builder = Builder {
        module,
        shared: allocate_shared(module, kernel)?,
        scope: Scope::default(),
        registers: Vec::new(),
        steps: Vec::new(),
        local_bytes: 0,
        line: SourceLine::default(),
        callers: Callers::default(),
        calls: vec![&kernel.name],
        blocks: Vec::new(),
        tables: HashMap::new(),
    };
    builder.scope.enter();
    for variable in &module.variables {
        let address = match variable.space {
            Space::Shared => u64::from(builder.shared.offsets[&key(variable.position)]),
            _ => globals
                .get(&variable.name)
                .copied()
                .ok_or_else(|| Problem::new(variable.position, format!("`{}` is declared and not defined", variable.name)))?,
        };
        builder.declare(&variable.name, Named::Variable { space: variable.space, address }, variable.position)?;
    }
    builder.scope.enter();
    let mut offset = 0u32;
    for param in &kernel.params {
        let size = u32::try_from(bytes(param)?).map_err(|_| Problem::new(param.position, "this parameter is too large"))?;
        offset = offset.next_multiple_of(alignment(param));
        params.push(Param { name: param.name.clone(), offset, bytes: size });
        builder.declare(&param.name, Named::Variable { space: Space::Param, address: u64::from(offset) }, param.position)?;
        offset = offset.saturating_add(size);
    }
    let most = if module.version >= (8, 1) { PARAM_BYTES } else { OLD_PARAM_BYTES };
    if offset > most {
        let (major, minor) = module.version;
        let message = format!("this kernel takes {offset} bytes of parameters, and `.version {major}.{minor}` allows {most}");
        return Err(Problem::new(kernel.position, message));
    }
    let body = kernel.body.as_deref().ok_or_else(|| Problem::new(kernel.position, "this kernel has no body"))?;
    builder.body(body, None)?;
    let needs_exit = !matches!(builder.steps.last(), Some(Step { action: Action::Exit, guard: None, .. }));
    if needs_exit || builder.steps.is_empty() {
        builder.push(Action::Exit, None, kernel.position, "ret;");
    }
    reconverge::run(&mut builder.steps);
    let is_cooperative = builder.steps.iter().any(|step| matches!(&step.action, Action::Work(work) if work.crosses_ctas()));
    Ok(Program {
        name: kernel.name.clone(),
        steps: builder.steps,
        registers: builder.registers,
        params,
        shared_bytes: builder.shared.static_bytes,
        dynamic_shared_start: builder.shared.dynamic_start,
        local_bytes: builder.local_bytes,
        directives: kernel.directives.clone(),
        files: module.files.clone(),
        is_cooperative,
    })
}

struct Builder<'a> {
    module: &'a Module,
    shared: SharedVariables,
    scope: Scope,
    registers: Vec<String>,
    steps: Vec<Step>,
    local_bytes: u32,
    line: SourceLine,
    callers: Callers,
    /// The kernel, and the functions whose bodies are being expanded.
    calls: Vec<&'a str>,
    /// The labels of the enclosing blocks, innermost last.
    blocks: Vec<Labels<'a>>,
    /// The targets of branch tables, by the name of the table.
    tables: HashMap<&'a str, &'a [String]>,
}

/// The labels of a block, and the branches inside it that have a label as target.
#[derive(Default)]
struct Labels<'a> {
    /// The indices of the steps after the labels.
    steps: HashMap<&'a str, u32>,
    branches: Vec<Branch<'a>>,
}

/// A branch with an unresolved target: the step, and the entry of the branch table.
struct Branch<'a> {
    step: usize,
    entry: usize,
    label: &'a str,
    position: Position,
}

/// The target of `ret` in a function: the end of its expansion.
const END_OF_CALL: &str = "";

impl<'a> Builder<'a> {
    /// Expands a body. A `ret` of the kernel ends the thread; a `ret` of a callee branches to the end of the body.
    fn body(&mut self, statements: &'a [Statement], callee: Option<&'a Function>) -> Result<(), Problem> {
        self.blocks.push(Labels::default());
        self.statements(statements, callee.is_some())?;
        if callee.is_some() {
            self.label(END_OF_CALL, Position::default())?;
        }
        self.close_block()?;
        Ok(())
    }

    fn statements(&mut self, statements: &'a [Statement], is_callee: bool) -> Result<(), Problem> {
        for statement in statements {
            match statement {
                Statement::Registers { ty, names, position } => {
                    for (name, count) in names {
                        match count {
                            None => self.register(name, *ty, *position)?,
                            Some(count) => {
                                for number in 0..*count {
                                    self.register(&format!("{name}{number}"), *ty, *position)?;
                                }
                            }
                        }
                    }
                }
                Statement::Variable(variable) => self.variable(variable)?,
                Statement::Label(name, position) => self.label(name, *position)?,
                Statement::Location { line, inlined_at } => self.callers.enter(&mut self.line, *line, *inlined_at),
                Statement::Block(inner) => {
                    self.scope.enter();
                    self.blocks.push(Labels::default());
                    self.statements(inner, is_callee)?;
                    self.close_block()?;
                    self.scope.leave();
                }
                Statement::BranchTargets { name, targets, .. } => {
                    self.tables.insert(name, targets);
                }
                Statement::CallPrototype(..) => {}
                Statement::Instruction(instruction) => self.instruction(instruction, is_callee)?,
            }
        }
        Ok(())
    }

    fn declare(&mut self, name: &str, named: Named, position: Position) -> Result<(), Problem> {
        if self.scope.declare(name, named) { Ok(()) } else { Err(Problem::new(position, format!("`{name}` is declared twice"))) }
    }

    fn register(&mut self, name: &str, ty: Type, position: Position) -> Result<(), Problem> {
        let register = self.fresh(name, ty);
        self.declare(name, Named::Register { register, ty }, position)
    }

    /// A new register without an entry in the scope.
    fn fresh(&mut self, name: &str, ty: Type) -> Register {
        let register = Register(self.registers.len() as u32);
        self.registers.extend(std::iter::repeat_n(name.to_owned(), if ty.bits() > 64 { 2 } else { 1 }));
        register
    }

    fn variable(&mut self, variable: &'a Variable) -> Result<(), Problem> {
        let named = match variable.space {
            Space::Shared | Space::SharedCluster => {
                Named::Variable { space: Space::Shared, address: u64::from(self.shared.offsets[&key(variable.position)]) }
            }
            // Parameters of calls are in local memory, as local variables are.
            Space::Local | Space::Param => Named::Variable { space: Space::Local, address: self.local(variable)? },
            Space::Generic => return self.register(&variable.name, variable.ty, variable.position),
            Space::Global | Space::Const => {
                return Err(Problem::new(variable.position, "`.global` and `.const` variables stand outside of functions"));
            }
        };
        self.declare(&variable.name, named, variable.position)
    }

    /// The address of a variable in local memory.
    fn local(&mut self, variable: &Variable) -> Result<u64, Problem> {
        let offset = self.local_bytes.next_multiple_of(alignment(variable).max(16));
        let end = u32::try_from(bytes(variable)?).ok().and_then(|bytes| offset.checked_add(bytes));
        self.local_bytes = end
            .filter(|&end| end <= 512 << 10)
            .ok_or_else(|| Problem::new(variable.position, "more local memory than a thread can have"))?;
        Ok(u64::from(offset))
    }

    fn label(&mut self, name: &'a str, position: Position) -> Result<(), Problem> {
        let step = self.steps.len() as u32;
        match self.blocks.last_mut().and_then(|block| block.steps.insert(name, step)) {
            None => Ok(()),
            Some(_) => Err(Problem::new(position, format!("the label `{name}` is defined twice"))),
        }
    }

    /// Leaves a block: resolves branches to its labels, and passes the other branches to the enclosing block.
    fn close_block(&mut self) -> Result<(), Problem> {
        let Some(block) = self.blocks.pop() else { return Ok(()) };
        for branch in block.branches {
            let Some(&step) = block.steps.get(branch.label) else {
                match self.blocks.last_mut() {
                    // The labels around a call are invisible in the body of the callee.
                    Some(outer) if !block.steps.contains_key(END_OF_CALL) => outer.branches.push(branch),
                    _ => return Err(Problem::new(branch.position, format!("there is no label `{}`", branch.label))),
                }
                continue;
            };
            match &mut self.steps[branch.step].action {
                Action::Branch { target, .. } => *target = step,
                Action::BranchTable { targets, .. } => targets[branch.entry] = step,
                Action::Work(_) | Action::Exit => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, action: Action, guard: Option<(Register, bool)>, position: Position, text: &str) {
        let (line, callers, text) = (self.line, self.callers.chain(), text.to_owned());
        self.steps.push(Step { action, guard, uses: Uses::default(), effect: Effect::Progress, line, callers, position, text });
    }

    /// Adds an instruction with known registers.
    fn push_using(&mut self, action: Action, guard: Option<(Register, bool)>, written: &Instruction, uses: Uses) {
        let effect = if let Action::Work(work) = &action { effect::of(written, work.class(), &uses) } else { Effect::Registers };
        self.push(action, guard, written.position, &written.text);
        if let Some(step) = self.steps.last_mut() {
            (step.uses, step.effect) = (uses, effect);
        }
    }

    fn instruction(&mut self, written: &'a Instruction, is_callee: bool) -> Result<(), Problem> {
        let problem = |error: Unsupported| Problem::new(written.position, error.0);
        let guard = match &written.guard {
            None => None,
            Some((name, negated)) => match self.scope.lookup(name) {
                Some(Named::Register { register, ty: Type::Pred }) => Some((register, !negated)),
                _ => return Err(Problem::new(written.position, format!("`{name}` is no predicate"))),
            },
        };
        if self.steps.len() >= MAX_STEPS {
            return Err(Problem::new(written.position, "the calls of this kernel expand to too many instructions"));
        }
        let mut uses = Uses::default();
        let action = match written.opcode.as_str() {
            "bra" => {
                known_modifiers(written, &["uni"])?;
                let [Operand::Name(label)] = written.operands.as_slice() else {
                    return Err(Problem::new(written.position, "`bra` takes a label"));
                };
                self.branch(label, 0, written.position);
                Action::Branch { target: 0, reconverge: None }
            }
            "brx" => {
                known_modifiers(written, &["idx", "uni"])?;
                let mut form = Form::new(written, &self.scope);
                let index = form.source(Type::U32).map_err(problem)?;
                let Ok(Operand::Name(table)) = form.operand() else {
                    return Err(Problem::new(written.position, "`brx.idx` takes an index and a table"));
                };
                uses = form.into_uses();
                let Some(&targets) = self.tables.get(table.as_str()) else {
                    return Err(Problem::new(written.position, format!("there is no branch table `{table}`")));
                };
                for (entry, label) in targets.iter().enumerate() {
                    self.branch(label, entry, written.position);
                }
                Action::BranchTable { index, targets: vec![0; targets.len()], reconverge: None }
            }
            "exit" => {
                known_modifiers(written, &[])?;
                Action::Exit
            }
            "ret" => {
                known_modifiers(written, &["uni"])?;
                if is_callee {
                    self.branch(END_OF_CALL, 0, written.position);
                    Action::Branch { target: 0, reconverge: None }
                } else {
                    Action::Exit
                }
            }
            "call" => return self.call(written, guard),
            _ => {
                let mut form = Form::new(written, &self.scope);
                let work = instructions::decode(&mut form).map_err(problem)?;
                uses = form.into_uses();
                Action::Work(work)
            }
        };
        self.push_using(action, guard, written, uses);
        Ok(())
    }

    /// Records that the next step branches to a label.
    fn branch(&mut self, label: &'a str, entry: usize, position: Position) {
        let step = self.steps.len();
        if let Some(block) = self.blocks.last_mut() {
            block.branches.push(Branch { step, entry, label, position });
        }
    }
}

fn known_modifiers(written: &Instruction, known: &[&str]) -> Result<(), Problem> {
    match written.modifiers.iter().find(|modifier| !known.contains(&modifier.as_str())) {
        None => Ok(()),
        Some(modifier) => Err(Problem::new(written.position, format!("the simulator does not know `.{modifier}` here"))),
    }
}
