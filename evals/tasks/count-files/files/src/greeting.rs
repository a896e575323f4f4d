pub fn of(name: &str) -> String {
    format!("Hello, {name}!")
}
