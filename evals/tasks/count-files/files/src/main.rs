mod greeting;
mod name;

fn main() {
    println!("{}", greeting::of(&name::first()));
}
