#[test]
fn greets() {}
