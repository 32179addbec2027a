//! The properties of memory accesses that decide whether they race.

/// An access, as the race check and its messages describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    /// The kind of the access, such as `load` or `store`.
    pub(crate) name: &'static str,
    /// The source line.
    pub(crate) line: u32,
    /// The scope of a strong access; `None` if the access is weak. Two strong accesses do not race if both scopes include both threads.
    pub(crate) scope: Option<Scope>,
    /// Whether the access is an atomic read-modify-write.
    pub(crate) is_atomic: bool,
}

/// The scope of a strong access or a fence (PTX ISA, 8.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Scope {
    /// The threads of the CTA.
    Cta,
    /// The threads of the cluster.
    Cluster,
    /// All threads of the GPU. `.sys` has the same effect, because the host does not access memory while a kernel runs.
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
