//! Lines of source that errors name.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// A line of a program, such as `src/model.rs:41:21`: one of this program, or one that a package names.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Site(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Here(&'static Location<'static>),
    Text(Arc<str>),
}

impl Site {
    /// A line of another program, as its `Display` wrote it.
    pub fn of_text(text: &str) -> Site {
        Site(Repr::Text(text.into()))
    }
}

impl From<&'static Location<'static>> for Site {
    fn from(location: &'static Location<'static>) -> Site {
        Site(Repr::Here(location))
    }
}

impl From<&Site> for Site {
    fn from(site: &Site) -> Site {
        site.clone()
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Here(location) => location.fmt(f),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({self})")
    }
}
