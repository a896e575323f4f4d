//! Whether an agent may do what it asks for.
