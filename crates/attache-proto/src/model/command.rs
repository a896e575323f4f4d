//! Commands that the user can call by name.

use crate::codec::{record, union};

union! {
    /// Something that the user can call by name, as `/name`.
    pub enum AvailableCommand tag "type" else Command in [V1, V2Draft] {
        /// A command of the agent.
        Command(Command) = "command",
    }

    /// What a command wants to be told.
    pub enum CommandInput tag "type" else Text in [V1, V2Draft] {
        /// The text after the name.
        Text(TextInput) = "text",
    }
}

record! {
    /// A command of the agent.
    pub struct Command {
        required {
            /// Its name, without a slash.
            name: String = "name",
            /// What it does.
            description: String = "description",
        }
        optional {
            /// What it wants to be told; absent means nothing.
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
