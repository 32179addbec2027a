//! From a Rust function to generic IR and the code that launches it.
//!
//! The steps stand in `expand`: read the signature and the attributes, parse the body into the language's own tree
//! (`ast`), make its control flow nest (`structure`), check it and build IR in one walk (`elaborate`), compile the
//! listed variants (`variants`), and write the launcher (`launcher`). Each step reports what it finds and goes on; on any
//! mistake the result is every error and a stub of the same signature.

mod ast;
mod attributes;
mod autotune;
mod device;
mod elaborate;
mod launcher;
mod library;
mod parse;
mod place;
mod signature;
mod structure;
mod variants;
mod words;

use proc_macro2::TokenStream;

use crate::diagnostic::Diagnostics;
use crate::ir::Function;

use device::Devices;
use place::{Errors, Place};
pub use variants::Variant;

/// What a macro gives back.
#[derive(Debug)]
pub struct Expansion {
    /// The generated code, or errors and a stub.
    pub tokens: TokenStream,
    /// The kernel's name.
    pub name: String,
    /// The PTX in it, for who wants to keep it in files.
    pub variants: Vec<Variant>,
}

/// `#[kernel(..)]` on an item.
pub fn kernel(arguments: TokenStream, item: TokenStream) -> Expansion {
    attribute(Given { kernel: Some(arguments), autotune: None, taken: None, twice: None }, item)
}

/// `#[autotune(..)]` on an item; `#[kernel]` stands below it.
pub fn autotune(arguments: TokenStream, item: TokenStream) -> Expansion {
    let place = Place::of(&arguments);
    attribute(Given { kernel: None, autotune: Some((arguments, place)), taken: None, twice: None }, item)
}

/// The generic IR of the first kernel in a source text, checked together with its listed variants. For tests and tools.
///
/// It calls the device functions of the text, also those in modules by their paths; imports are not followed.
///
/// # Errors
/// Every mistake in it.
pub fn lower_source(source: &str, file: &str) -> Result<Function, Diagnostics> {
    let mut errors = Errors::default();
    let func = match syn::parse_file(source) {
        Err(error) => {
            errors.push_syn(&error);
            None
        }
        Ok(parsed) => {
            let devices = Devices::of_file(&parsed, file, &mut errors);
            let mut functions = parsed.items.into_iter().filter_map(|item| if let syn::Item::Fn(item) = item { Some(item) } else { None });
            functions.find_map(|mut item| {
                let mut given = Given { kernel: None, autotune: None, taken: None, twice: None };
                given.take_from(&mut item);
                (given.kernel.is_some() || given.autotune.is_some()).then(|| expand(&given, &item, &devices, file, &mut errors).func)
            })
        }
    };
    match func {
        Some(func) => errors.into_diagnostics().finish(func),
        None => {
            if errors.is_empty() {
                errors.push(Place::at(proc_macro2::Span::call_site()), "there is no `#[kernel]` in this text");
            }
            Err(errors.into_diagnostics())
        }
    }
}

/// The arguments of the attributes on a function.
struct Given {
    kernel: Option<TokenStream>,
    autotune: Option<(TokenStream, Place)>,
    /// The path of the attribute that was found on the function.
    taken: Option<syn::Path>,
    /// A second attribute of the same name.
    twice: Option<Place>,
}

impl Given {
    /// Takes the language's attributes off a function.
    fn take_from(&mut self, item: &mut syn::ItemFn) {
        item.attrs.retain(|attribute| {
            let arguments = match &attribute.meta {
                syn::Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            match attribute.path().segments.last().map(|segment| segment.ident.to_string()).as_deref() {
                Some("kernel") if self.kernel.is_none() => self.kernel = Some(arguments),
                Some("autotune") if self.autotune.is_none() => self.autotune = Some((arguments, Place::of(attribute.path()))),
                // Left on the function, it would take the launcher for a kernel.
                Some("kernel" | "autotune") => self.twice = Some(Place::of(attribute)),
                _ => return true,
            }
            self.taken = Some(attribute.path().clone());
            false
        });
    }
}

fn attribute(mut given: Given, tokens: TokenStream) -> Expansion {
    let failed = |tokens| Expansion { tokens, name: String::new(), variants: Vec::new() };
    let mut item = match syn::parse2::<syn::ItemFn>(tokens.clone()) {
        Ok(item) => item,
        Err(error) => {
            // Something else than a function is returned as it is; a function that is not Rust is rustc's to explain.
            let is_function = syn::parse2::<syn::Item>(tokens.clone()).is_err();
            let tokens = match is_function {
                true => error.to_compile_error(),
                false => launcher::foreign(&tokens, "a kernel is a function", "write `#[kernel] fn name(x: Ptr<f32>, ..) { .. }`"),
            };
            return failed(tokens);
        }
    };
    given.take_from(&mut item);
    let file = item.sig.ident.span().file();
    let mut errors = Errors::default();
    let Expanded { func, signature, attributes, autotune, words, variants } =
        expand(&given, &item, &Devices::default(), &file, &mut errors);
    let launcher = launcher::Launcher {
        item: &item,
        signature: &signature,
        attributes: &attributes,
        autotune: autotune.as_ref(),
        taken: given.taken.as_ref(),
        words: &words,
    };
    let tokens = if errors.is_empty() { launcher.tokens(&func.to_string(), &variants) } else { launcher.stub(errors) };
    Expansion { tokens, name: signature.name.text, variants }
}

struct Expanded {
    func: Function,
    signature: signature::Signature,
    attributes: attributes::Attributes,
    autotune: Option<autotune::Autotune>,
    words: Vec<(&'static str, proc_macro2::Span)>,
    variants: Vec<Variant>,
}

/// The steps from a function to its IR and its variants.
fn expand(given: &Given, item: &syn::ItemFn, devices: &Devices, file: &str, errors: &mut Errors) -> Expanded {
    let signature = signature::parse(item, errors);
    let name = signature.name.place;
    if given.kernel.is_none() {
        errors.push_help(name, "`#[autotune]` needs a kernel", "write `#[kernel]` below it");
    }
    if let Some(place) = given.twice {
        errors.push_help(place, "this attribute stands on the kernel twice", "remove one of them");
    }
    let attributes = attributes::parse(given.kernel.clone().unwrap_or_default(), &signature, errors);
    let autotune = given.autotune.as_ref().map(|(tokens, place)| autotune::parse(tokens.clone(), *place, &signature, &attributes, errors));
    let body = parse::body(&item.block, errors);
    let body = structure::run(body, errors);
    let lowered = elaborate::run(&signature, &body, devices, attributes.unchecked, file, errors);
    let mut variants = Vec::new();
    if errors.is_empty() {
        let instances = variants::instances(&signature, &attributes, autotune.as_ref());
        variants = variants::compile(&lowered.func, &instances, &lowered.places, name, errors);
    }
    Expanded { func: lowered.func, signature, attributes, autotune, words: lowered.words, variants }
}
