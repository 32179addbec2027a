//! Maps an address of global memory to an argument of the launch and an element of it.

use std::fmt;

/// A memory argument of a launch. Faults name addresses in it by argument and element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argument<'a> {
    /// The name of the parameter.
    pub name: &'a str,
    /// The address of the first element.
    pub address: u64,
    /// The number of elements.
    pub elements: u64,
    /// The size of an element in bytes.
    pub element_bytes: u32,
}

/// An element of an argument, or of the memory before or after the argument. Printed as ``element 17 of argument `x` ``.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The name of the parameter.
    pub argument: String,
    /// The index relative to the argument's first element; negative before it. Counts bytes if the element size is unknown.
    pub index: i64,
    /// The byte inside the element.
    pub byte: u32,
    /// The number of elements of the argument.
    pub length: u64,
    /// The size of an element in bytes; `None` if the launch does not give it.
    pub element_bytes: Option<u32>,
}

impl Element {
    /// Whether the index is inside the argument.
    pub fn is_inside(&self) -> bool {
        u64::try_from(self.index).is_ok_and(|index| index < self.length)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element { argument, index, byte, length, element_bytes } = self;
        let unit = if element_bytes.is_some() { "element" } else { "byte" };
        let plural = if *length == 1 { "" } else { "s" };
        if *byte > 0 {
            write!(f, "byte {byte} of ")?;
        }
        write!(f, "{unit} {index} of argument `{argument}`")?;
        match (u64::try_from(*index), length) {
            (Ok(index), length) if index < *length => Ok(()),
            (_, 0) => write!(f, ", which has no {unit}s"),
            (Ok(index), length) => write!(f, ", which has {length} {unit}{plural}: {} after the last", index - length + 1),
            (Err(_), length) => write!(f, ", which has {length} {unit}{plural}: {} before the first", index.unsigned_abs()),
        }
    }
}

/// The memory arguments of a launch.
#[derive(Clone, Default, Debug)]
pub(crate) struct Arguments {
    known: Vec<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    name: String,
    address: u64,
    elements: u64,
    element_bytes: Option<u32>,
}

/// The maximum distance at which an address outside every argument is still attributed to the nearest one: the minimum distance between two
/// allocations.
const NEAR: u64 = 64 << 10;

impl Arguments {
    /// The arguments that the caller of the launch describes.
    pub(crate) fn new(described: &[Argument<'_>]) -> Arguments {
        let known = |argument: &Argument<'_>| Known {
            name: argument.name.to_owned(),
            address: argument.address,
            elements: argument.elements,
            element_bytes: Some(argument.element_bytes.max(1)),
        };
        Arguments { known: described.iter().map(known).collect() }
    }

    /// Adds a pointer parameter with this many bytes of memory from its address on. Does nothing if the caller described an argument at
    /// this address.
    pub(crate) fn add_bytes(&mut self, name: &str, address: u64, bytes: u64) {
        if !self.known.iter().any(|known| known.address == address && known.element_bytes.is_some()) {
            self.known.push(Known { name: name.to_owned(), address, elements: bytes, element_bytes: None });
        }
    }

    /// The elements that contain an address, one for each argument: several if arguments overlap. For an address outside every argument,
    /// the element of the nearest argument, if it is near.
    pub(crate) fn locate(&self, address: u64) -> Vec<Element> {
        let inside: Vec<Element> =
            self.known.iter().filter(|known| known.distance(address) == 0).map(|known| known.element(address)).collect();
        if !inside.is_empty() {
            return inside;
        }
        let nearest = self.known.iter().min_by_key(|known| known.distance(address));
        nearest.filter(|known| known.distance(address) <= NEAR).map(|known| known.element(address)).into_iter().collect()
    }
}

impl Known {
    fn unit(&self) -> u64 {
        self.element_bytes.map_or(1, u64::from)
    }

    /// The first address after the argument.
    fn end(&self) -> u64 {
        self.address.saturating_add(self.elements.saturating_mul(self.unit()))
    }

    /// The distance of an address to the argument; 0 inside.
    fn distance(&self, address: u64) -> u64 {
        match address.checked_sub(self.address) {
            None => self.address - address,
            Some(_) if address < self.end() => 0,
            Some(_) => address - self.end() + 1,
        }
    }

    fn element(&self, address: u64) -> Element {
        let (unit, distance) = (i128::from(self.unit()), i128::from(address) - i128::from(self.address));
        Element {
            argument: self.name.clone(),
            index: distance.div_euclid(unit).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            byte: distance.rem_euclid(unit) as u32,
            length: self.elements,
            element_bytes: self.element_bytes,
        }
    }
}

/// The elements of a fault as one phrase.
pub(crate) fn phrase(elements: &[Element]) -> String {
    elements.iter().map(Element::to_string).collect::<Vec<_>>().join(", which is ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(arguments: &Arguments, address: u64) -> String {
        phrase(&arguments.locate(address))
    }

    #[test]
    fn an_address_is_described_by_the_nearest_element() {
        let x = Argument { name: "x", address: 0x1000_0000, elements: 69, element_bytes: 4 };
        let y = Argument { name: "y", address: 0x2000_0000, elements: 1, element_bytes: 8 };
        let none = Argument { name: "none", address: 0x3000_0000, elements: 0, element_bytes: 2 };
        let arguments = Arguments::new(&[x, y, none]);
        let at = |address: u64| texts(&arguments, address);
        assert_eq!(at(x.address), "element 0 of argument `x`");
        assert_eq!(at(x.address + 68 * 4 + 2), "byte 2 of element 68 of argument `x`");
        assert_eq!(at(x.address + 69 * 4), "element 69 of argument `x`, which has 69 elements: 1 after the last");
        assert_eq!(at(x.address - 6), "byte 2 of element -2 of argument `x`, which has 69 elements: 2 before the first");
        assert_eq!(at(y.address + 24), "element 3 of argument `y`, which has 1 element: 3 after the last");
        assert_eq!(at(none.address), "element 0 of argument `none`, which has no elements");
        assert_eq!(at(x.address + (1 << 20)), "");
    }

    #[test]
    fn an_address_is_in_each_of_the_arguments_that_overlap() {
        let x = Argument { name: "x", address: 0x1000_0000, elements: 64, element_bytes: 4 };
        let part = Argument { name: "part", address: x.address + 16, elements: 8, element_bytes: 2 };
        let arguments = Arguments::new(&[x, part]);
        assert_eq!(texts(&arguments, x.address + 20), "element 5 of argument `x`, which is element 2 of argument `part`");
        assert_eq!(texts(&arguments, x.address + 32), "element 8 of argument `x`");
    }

    #[test]
    fn arguments_without_elements_are_described_in_bytes() {
        let mut arguments = Arguments::new(&[Argument { name: "x", address: 0x1000_0000, elements: 8, element_bytes: 4 }]);
        arguments.add_bytes("x_address", 0x1000_0000, 32);
        arguments.add_bytes("raw", 0x2000_0000, 5);
        assert_eq!(texts(&arguments, 0x1000_0004), "element 1 of argument `x`");
        assert_eq!(texts(&arguments, 0x2000_0003), "byte 3 of argument `raw`");
        assert_eq!(texts(&arguments, 0x2000_0008), "byte 8 of argument `raw`, which has 5 bytes: 4 after the last");
    }
}
