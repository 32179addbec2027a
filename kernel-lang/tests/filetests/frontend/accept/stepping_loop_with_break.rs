#[kernel]
fn stepping(y: PtrMut<u8>, from: u8, to: u8) {
    for i in range(from, to, 10) {
        if i == 77 {
            break;
        }
        store(y + i, i);
    }
}
