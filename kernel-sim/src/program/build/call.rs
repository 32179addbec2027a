//! Calls: allocates the callee's parameters, expands its body, and copies the results out.

use std::mem;

use super::{Builder, known_modifiers};
use crate::instructions::{self, Form, Register, failed_assertion};
use crate::program::{Action, Named, Problem, Scope};
use crate::ptx::{AddressBase, Function, Instruction, Operand, Position, Space, Type, Variable};

/// `call (returns), function, (arguments)`
struct Call<'a> {
    returns: &'a [Operand],
    name: &'a str,
    arguments: &'a [Operand],
    at: Position,
}

impl<'a> Call<'a> {
    fn of(written: &'a Instruction) -> Result<Call<'a>, Problem> {
        let at = written.position;
        let (returns, rest) = list(&written.operands);
        let [Operand::Name(name), rest @ ..] = rest else { return Err(Problem::new(at, "`call` takes a function")) };
        let (arguments, _) = list(rest);
        Ok(Call { returns, name, arguments, at })
    }
}

/// Splits off a leading list of operands, if there is one.
fn list(operands: &[Operand]) -> (&[Operand], &[Operand]) {
    match operands {
        [Operand::List(list), rest @ ..] => (list, rest),
        _ => (&[], operands),
    }
}

/// A parameter in a register, and the operand that the call passes to it or receives from it.
struct InRegister<'a> {
    name: &'a str,
    register: Register,
    ty: Type,
    operand: &'a Operand,
}

impl<'a> Builder<'a> {
    /// Expands a call.
    pub(super) fn call(&mut self, written: &'a Instruction, guard: Option<(Register, bool)>) -> Result<(), Problem> {
        known_modifiers(written, &["uni"])?;
        let call = Call::of(written)?;
        let at = call.at;
        if let Some(Named::Register { .. }) = self.scope.lookup(call.name) {
            return Err(Problem::new(at, "the simulator does not know calls through a register"));
        }
        if call.name == "__assertfail" {
            self.push(Action::Work(failed_assertion()), guard, at, &written.text);
            return Ok(());
        }
        let callee = self.callee(&call)?;
        let skip = guard.map(|(register, value)| {
            self.push(Action::Branch { target: 0, reconverge: None }, Some((register, !value)), at, &written.text);
            self.steps.len() - 1
        });
        let (inner, results) = self.pass(&call, callee)?;
        let outer = mem::replace(&mut self.scope, inner);
        self.calls.push(&callee.name);
        let callers = self.callers.call(self.line);
        self.body(callee.body.as_deref().unwrap_or_default(), Some(callee))?;
        self.callers.leave(callers);
        self.calls.pop();
        self.scope = outer;
        for result in &results {
            self.copy_out(result, &callee.name, at)?;
        }
        let end = self.steps.len() as u32;
        if let Some(step) = skip
            && let Action::Branch { target, .. } = &mut self.steps[step].action
        {
            *target = end;
        }
        Ok(())
    }

    /// The called function. Its numbers of parameters and results must match the call.
    fn callee(&self, Call { returns, name, arguments, at }: &Call<'_>) -> Result<&'a Function, Problem> {
        let problem = |message: String| Problem::new(*at, message);
        let defined = self.module.functions.iter().find(|function| function.name == *name && function.body.is_some());
        let callee = defined.ok_or_else(|| problem(format!("`{name}` is called and has no body")))?;
        if self.calls.contains(name) {
            return Err(problem(format!("`{name}` calls itself, which the simulator does not know")));
        }
        let (params, results) = (callee.params.len(), callee.returns.len());
        if (params, results) != (arguments.len(), returns.len()) {
            return Err(problem(format!("`{name}` takes {params} arguments and returns {results} values")));
        }
        Ok(callee)
    }

    /// Allocates the parameters and copies the arguments into them. Returns the scope of the body, which has the names of the module and of
    /// the callee but not those of the caller, and the results to copy out.
    fn pass(&mut self, call: &Call<'a>, callee: &'a Function) -> Result<(Scope, Vec<InRegister<'a>>), Problem> {
        let mut scope = self.scope.outermost();
        scope.enter();
        let mut results = Vec::new();
        let returns = callee.returns.iter().zip(call.returns).map(|of| (of, true));
        let params = callee.params.iter().zip(call.arguments).map(|of| (of, false));
        for ((variable, operand), is_result) in returns.chain(params) {
            let (name, ty) = (variable.name.as_str(), variable.ty);
            let named = match self.named(operand) {
                Some(Named::Variable { .. }) if variable.space == Space::Generic => {
                    return Err(Problem::new(call.at, format!("`{name}` is a register of `{}`, and memory is passed", call.name)));
                }
                // Memory is passed without a copy: the caller does not access its side of a parameter while the callee runs.
                Some(memory @ Named::Variable { .. }) => memory,
                _ if variable.space == Space::Generic => {
                    let register = self.fresh(name, ty);
                    let parameter = InRegister { name, register, ty, operand };
                    if is_result {
                        results.push(parameter)
                    } else {
                        self.copy_in(&parameter, call.at)?
                    }
                    Named::Register { register, ty }
                }
                _ if is_result => {
                    return Err(Problem::new(call.at, "the simulator knows results in registers only of `.reg` parameters"));
                }
                _ => self.store(variable, operand, call.at)?,
            };
            scope.declare(name, named);
        }
        Ok((scope, results))
    }

    fn named(&self, operand: &Operand) -> Option<Named> {
        match operand {
            Operand::Name(name) => self.scope.lookup(name),
            _ => None,
        }
    }

    /// Stores an argument in local memory.
    fn store(&mut self, variable: &Variable, operand: &Operand, at: Position) -> Result<Named, Problem> {
        let address = self.local(variable)?;
        let memory = Operand::Address { base: AddressBase::Absolute(address), offset: 0, coordinates: Vec::new() };
        self.synthetic(&synthetic("st", &["local"], variable.ty, vec![memory, operand.clone()], at))?;
        Ok(Named::Variable { space: Space::Local, address })
    }

    fn copy_in(&mut self, parameter: &InRegister<'_>, at: Position) -> Result<(), Problem> {
        let hidden = format!("argument {}", parameter.name);
        self.copy(parameter, &hidden, [Operand::Name(hidden.clone()), parameter.operand.clone()], at)
    }

    fn copy_out(&mut self, result: &InRegister<'_>, callee: &str, at: Position) -> Result<(), Problem> {
        let hidden = format!("{} of {callee}", result.name);
        self.copy(result, &hidden, [result.operand.clone(), Operand::Name(hidden.clone())], at)
    }

    /// Adds a `mov` between an operand and a parameter. The parameter is declared as `hidden`, a name that cannot occur in the text.
    fn copy(&mut self, parameter: &InRegister<'_>, hidden: &str, operands: [Operand; 2], at: Position) -> Result<(), Problem> {
        let InRegister { register, ty, .. } = *parameter;
        self.scope.enter();
        self.scope.declare(hidden, Named::Register { register, ty });
        let result = self.synthetic(&synthetic("mov", &[], ty, operands.to_vec(), at));
        self.scope.leave();
        result
    }

    /// Adds an instruction that is not in the text.
    fn synthetic(&mut self, written: &Instruction) -> Result<(), Problem> {
        let mut form = Form::new(written, &self.scope);
        let work = instructions::decode(&mut form).map_err(|error| Problem::new(written.position, error.0))?;
        let uses = form.into_uses();
        self.push_using(Action::Work(work), None, written, uses);
        Ok(())
    }
}

fn synthetic(opcode: &str, modifiers: &[&str], ty: Type, operands: Vec<Operand>, position: Position) -> Instruction {
    let mut modifiers: Vec<String> = modifiers.iter().map(|&modifier| modifier.to_owned()).collect();
    modifiers.push(ty.to_string()[1..].to_owned());
    Instruction { guard: None, opcode: opcode.to_owned(), modifiers, operands, text: "(an argument of a call)".to_owned(), position }
}
