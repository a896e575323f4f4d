//! Commands that the user can call by name.

use crate::codec::{record, union};

union! {
    /// Something that the user can call by name, as `/name`.
    pub enum AvailableCommand tag "type" else Command in [V1, V2Draft] {
        /// A command of the agent.
        Command(Command) = "command",
    }

    /// The input that a command takes.
    pub enum CommandInput tag "type" else Text in [V1, V2Draft] {
        /// The text after the name.
        Text(TextInput) = "text",
    }
}

record! {
    /// A command of the agent. Not to be confused with `attache::process::Command`, a program to launch.
    pub struct Command {
        required {
            /// Its name, without a slash.
            name: String = "name",
            /// What it does.
            description: String = "description",
        }
        optional {
            /// The input that it takes; absent means none.
            input: Option<CommandInput> = "input",
        }
    }

    /// The text after the name of a command.
    pub struct TextInput {
        required {
            /// What to show while there is none.
            hint: String = "hint",
        }
    }
}
