//! As `last_run_of_a_tensor`, with an end that the mask keeps: of the program whose end is 1016, the last run has one element.
//! x: any 1021
//! y: zeros 9216
//! grid: 9
fn kernel(x: Ptr<i16>, y: PtrMut<i16>) {
    let row = program_id(0);
    let i = arange(0, 1024);
    store(y + row * 1024 + i, load(x + i, mask = i <= 1009 + row, other = 5));
}

fn reference(x: Ptr<i16>, y: PtrMut<i16>) {
    let row = program_id(0);
    for i in 0..1024 {
        store(y + row * 1024 + i, load(x + i, mask = i <= 1009 + row, other = 5));
    }
}
