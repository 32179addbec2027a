//! Accesses to memory, as far as races depend on them.

/// An access, as messages show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// `load`, `store` and their like.
    pub(crate) name: &'static str,
    /// The source line.
    pub(crate) line: u32,
    /// The scope of a strong access; none if it is weak. Two strong accesses do not race if both scopes include both threads.
    pub(crate) scope: Option<Scope>,
    /// Does it read and write in one?
    pub(crate) is_atomic: bool,
}

/// The threads for which a strong access, or a fence, has effect (PTX ISA, 8.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Scope {
    /// Those of the CTA.
    Cta,
    /// Those of the cluster.
    Cluster,
    /// All of the GPU. `.sys` is the same here: the host does nothing while a kernel runs.
    Gpu,
}

impl Touch {
    /// A weak access.
    pub(crate) fn plain(name: &'static str, line: u32) -> Touch {
        Touch { name, line, scope: None, is_atomic: false }
    }
}

impl Scope {
    /// All scopes, the narrowest first.
    pub(crate) const ALL: [Scope; 3] = [Scope::Cta, Scope::Cluster, Scope::Gpu];
}
