//! The command `attache`.

fn main() {}
