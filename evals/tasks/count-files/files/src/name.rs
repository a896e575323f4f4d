pub fn first() -> String {
    "Ada".to_string()
}
