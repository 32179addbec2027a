//! The text of tensors, compared with the text that PyTorch prints: `torch.txt`. `record.py` writes that file with PyTorch, and describes its format.

use kernel_runtime::prelude::*;

const CASES: &str = include_str!("torch.txt");

#[test]
fn tensors_print_as_in_pytorch() {
    let cases: Vec<&str> = CASES.split("\n## ").skip(1).collect();
    assert!(cases.len() >= 40, "only {} cases were found", cases.len());
    let wrong: Vec<String> = cases.into_iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{} cases differ\n{}", wrong.len(), wrong.join("\n"));
}

/// A tensor of the file.
struct Case<'a> {
    shape: Vec<usize>,
    elements: &'a str,
}

/// Both texts of a case, if they differ.
fn difference(case: &str) -> Option<String> {
    let (head, expected) = case.split_once('\n').unwrap();
    let [_, dtype, shape, elements] = head.split(" | ").collect::<Vec<_>>()[..] else { panic!("`{head}` has four parts") };
    let dims = shape.trim_matches(['[', ']']).split(", ").filter(|dim| !dim.is_empty());
    let case = Case { shape: dims.map(|dim| dim.parse().unwrap()).collect(), elements };
    let found = match dtype {
        "bool" => case.text(|x| x == 1.0),
        "i8" => case.text(|x| x as i8),
        "i16" => case.text(|x| x as i16),
        "i32" => case.text(|x| x as i32),
        "i64" => case.integers::<i64>(),
        "u8" => case.text(|x| x as u8),
        "u16" => case.text(|x| x as u16),
        "u32" => case.text(|x| x as u32),
        "u64" => case.integers::<u64>(),
        "f16" => case.text(f16::from_f64),
        "bf16" => case.text(bf16::from_f64),
        "f32" => case.text(|x| x as f32),
        "f64" => case.text(|x| x),
        "f8e4m3" => case.text(|x| f8e4m3::from_f32(x as f32)),
        // A conversion gives no infinity.
        "f8e5m2" => case.text(|x| if x == f64::INFINITY { f8e5m2::INFINITY } else { f8e5m2::from_f32(x as f32) }),
        _ => panic!("`{dtype}` is no dtype"),
    };
    let expected = expected.trim_end();
    (found != expected).then(|| format!("## {head}\n{found}\ninstead of\n{expected}\n"))
}

impl Case<'_> {
    fn text<T: Element>(&self, convert: impl Fn(f64) -> T) -> String {
        let numbers: Vec<f64> = self.elements.trim_end_matches("..").split_whitespace().map(|number| number.parse().unwrap()).collect();
        self.shown(|i| match self.elements.ends_with("..") {
            true => convert(numbers[0] + (numbers[1] - numbers[0]) * i as f64),
            false => convert(numbers[i % numbers.len()]),
        })
    }

    /// The text of integers that an `f64` may not hold.
    fn integers<T: Element + TryFrom<i128>>(&self) -> String {
        let numbers: Vec<i128> = self.elements.trim_end_matches("..").split_whitespace().map(|number| number.parse().unwrap()).collect();
        let number = |i: usize| match self.elements.ends_with("..") {
            true => numbers[0] + (numbers[1] - numbers[0]) * i as i128,
            false => numbers[i % numbers.len()],
        };
        self.shown(|i| T::try_from(number(i)).unwrap_or_else(|_| panic!("{} fits {}", number(i), T::DTYPE)))
    }

    /// The text of a tensor and of a view inside a larger tensor, which are the same.
    fn shown<T: Element>(&self, element: impl Fn(usize) -> T) -> String {
        let len = self.shape.iter().product();
        let elements: Vec<T> = (0..len).map(element).collect();
        let tensor = Device::cpu().tensor_from(&elements, &self.shape[..]).unwrap();
        let larger = Device::cpu().tensor(&[&[T::default(); 3][..], &elements, &[T::default(); 2]].concat()).unwrap();
        let view = larger.slice(3..3 + len).unwrap().reshape(&self.shape[..]).unwrap();
        assert_eq!(view.to_string(), tensor.to_string());
        tensor.to_string()
    }
}
