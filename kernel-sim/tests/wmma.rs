//! `wmma` kernels, from PTX to results: to the bit what an H200 gave.
//!
//! `tests/tensor_core/wmma.bin` was made by, with the scripts beside it, in an empty folder on a machine with a Hopper GPU:
//!
//! ```text
//! python3 wmma.py && ptxas -arch=sm_90a wmma.ptx -o kernels.cubin && mkdir out && python3 run.py out && python3 wmma.py record out
//! ```

use kernel_sim::{Gpu, Launch, LaunchError, Machine};

const PTX: &str = include_str!("tensor_core/wmma.ptx");

/// One warp's product: the kernel, and the bytes of A, B, C and D.
struct Recorded<'a> {
    kernel: &'a str,
    parts: [&'a [u8]; 4],
}

fn recorded() -> Vec<Recorded<'static>> {
    let data = include_bytes!("tensor_core/wmma.bin");
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let mut body = &data[end + 2..];
    let lines = std::str::from_utf8(&data[..end]).unwrap().lines();
    let cases = lines.map(|line| {
        let mut words = line.split(' ');
        let kernel = words.next().unwrap();
        assert_eq!(words.next(), Some("1"), "one warp of each is recorded");
        let parts = std::array::from_fn(|_| {
            let (part, rest) = body.split_at(words.next().unwrap().parse().unwrap());
            body = rest;
            part
        });
        Recorded { kernel, parts }
    });
    let cases: Vec<_> = cases.collect();
    assert!(body.is_empty());
    cases
}

/// Runs a kernel of four pointers; gives the bytes of the last.
fn run(ptx: &str, kernel: &str, parts: [&[u8]; 4]) -> Result<Vec<u8>, LaunchError> {
    let machine = Machine::new(Gpu::h200());
    let module = machine.load(ptx).unwrap_or_else(|error| panic!("{error}"));
    let pointers = parts.map(|part| machine.allocate(part.len()).unwrap());
    for (pointer, part) in pointers.iter().zip(&parts[..3]) {
        machine.write(*pointer, part).unwrap();
    }
    let params = pointers.map(u64::to_le_bytes);
    let params: Vec<&[u8]> = params.iter().map(|bytes| bytes.as_slice()).collect();
    machine.launch(&module.kernel(kernel).unwrap(), &Launch { params: &params, ..Launch::new([1; 3], [32, 1, 1], &[]) })?;
    let mut result = vec![0; parts[3].len()];
    machine.read(pointers[3], &mut result).unwrap();
    Ok(result)
}

#[test]
fn as_an_h200_does() {
    let cases = recorded();
    assert_eq!(cases.len(), PTX.matches(".entry").count());
    for case in &cases {
        let result = run(PTX, case.kernel, case.parts).unwrap_or_else(|error| panic!("{}: {error}", case.kernel));
        assert!(result == case.parts[3], "{}", case.kernel);
    }
}

#[test]
fn layouts_in_memory_only_move_elements() {
    let cases = recorded();
    let case = cases.iter().find(|case| case.kernel == "wmma_m32n8k16_f16_f32_f32").unwrap();
    let [a, b, c, d] = case.parts;
    // Each part with rows and columns exchanged, and loaded and stored so: the same product.
    let transposed = |matrix: &[u8], width: usize, bytes: usize| -> Vec<u8> {
        let height = matrix.len() / width / bytes;
        let element = |row: usize, column: usize| &matrix[(row * width + column) * bytes..][..bytes];
        (0..width).flat_map(|column| (0..height).flat_map(move |row| element(row, column))).copied().collect()
    };
    let other = PTX
        .replace("wmma.load.a.sync.aligned.row.m32n8k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%p0], 16;", "LOAD_A")
        .replace("LOAD_A", "wmma.load.a.sync.aligned.col.m32n8k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%p0], 32;")
        .replace("wmma.load.b.sync.aligned.col.m32n8k16", "wmma.load.b.sync.aligned.row.m32n8k16")
        .replace("wmma.load.c.sync.aligned.row.m32n8k16.global.f32", "wmma.load.c.sync.aligned.col.m32n8k16.global.f32")
        .replace("wmma.store.d.sync.aligned.row.m32n8k16.global.f32", "wmma.store.d.sync.aligned.col.m32n8k16.global.f32");
    let (a, b, c) = (transposed(a, 16, 2), transposed(b, 16, 2), transposed(c, 8, 4));
    let result = run(&other, case.kernel, [&a, &b, &c, d]).unwrap_or_else(|error| panic!("{error}"));
    assert!(result == transposed(d, 8, 4));
    assert!(run(PTX, case.kernel, [&a, &b, &c, d]).unwrap() != d, "the layouts matter");
}

#[test]
fn a_matrix_that_is_too_small_is_found() {
    let cases = recorded();
    let case = cases.iter().find(|case| case.kernel == "wmma_m16n16k16_f16_f32_f32").unwrap();
    let [a, b, c, d] = case.parts;
    let error = run(PTX, case.kernel, [a, &b[..b.len() - 32], c, d]).unwrap_err();
    let LaunchError::Fault(fault) = error else { panic!("{error}") };
    assert!(fault.instruction.starts_with("wmma.load.b"), "{fault}");
    assert!(matches!(fault.kind, kernel_sim::FaultKind::OutOfBounds { bytes: 16, .. }), "{fault}");
}
