//! The fields of a form that the agent asks the user to fill in.

use crate::codec::{record, string_enum, union};

record! {
    /// The fields of a form.
    pub struct ElicitationSchema {
        optional {
            /// Always an object.
            schema_type: ElicitationSchemaType = "type" shown,
            /// The title of the form.
            title: Option<String> = "title",
            /// What the form is for.
            description: Option<String> = "description",
            /// The fields by name, in the order to show them.
            properties: Vec<(String, ElicitationProperty)> = "properties" strict shown null,
            /// The names of those that must be filled in.
            required: Option<Vec<String>> = "required" strict,
        }
    }

    /// A text.
    pub struct StringProperty {
        optional {
            /// Its name to show.
            title: Option<String> = "title",
            /// What it is for.
            description: Option<String> = "description",
            /// How many characters it has at least.
            min_length: Option<u32> = "minLength" strict,
            /// How many characters it has at most.
            max_length: Option<u32> = "maxLength" strict,
            /// The regular expression that it matches.
            pattern: Option<String> = "pattern" strict,
            /// What it looks like.
            format: Option<StringFormat> = "format" strict,
            /// What to start with.
            default: Option<String> = "default",
            /// The values to choose from.
            enum_values: Option<Vec<String>> = "enum" strict,
            /// The values to choose from, with names.
            one_of: Option<Vec<EnumOption>> = "oneOf" strict,
        }
    }

    /// A number.
    pub struct NumberProperty {
        optional {
            /// Its name to show.
            title: Option<String> = "title",
            /// What it is for.
            description: Option<String> = "description",
            /// The least that it may be.
            minimum: Option<f64> = "minimum" strict,
            /// The most that it may be.
            maximum: Option<f64> = "maximum" strict,
            /// What to start with.
            default: Option<f64> = "default",
        }
    }

    /// A whole number.
    pub struct IntegerProperty {
        optional {
            /// Its name to show.
            title: Option<String> = "title",
            /// What it is for.
            description: Option<String> = "description",
            /// The least that it may be.
            minimum: Option<i64> = "minimum" strict,
            /// The most that it may be.
            maximum: Option<i64> = "maximum" strict,
            /// What to start with.
            default: Option<i64> = "default",
        }
    }

    /// A yes or no.
    pub struct BooleanProperty {
        optional {
            /// Its name to show.
            title: Option<String> = "title",
            /// What it is for.
            description: Option<String> = "description",
            /// What to start with.
            default: Option<bool> = "default",
        }
    }

    /// Several choices.
    pub struct MultiSelectProperty {
        required {
            /// The values to choose from.
            items: MultiSelectItems = "items",
        }
        optional {
            /// Its name to show.
            title: Option<String> = "title",
            /// What it is for.
            description: Option<String> = "description",
            /// How many have to be chosen.
            min_items: Option<u64> = "minItems" strict,
            /// How many may be chosen.
            max_items: Option<u64> = "maxItems" strict,
            /// What to start with.
            default: Option<Vec<String>> = "default" list,
        }
    }

    /// Values to choose from.
    pub struct StringItems {
        required {
            /// The values.
            values: Vec<String> = "enum",
        }
    }

    /// Values to choose from, with names.
    pub struct TitledItems {
        required {
            /// The values.
            options: Vec<EnumOption> = "anyOf",
        }
    }

    /// A value to choose.
    pub struct EnumOption {
        required {
            /// The value.
            value: String = "const",
            /// Its name to show.
            title: String = "title",
        }
        optional {
            /// What it means.
            description: Option<String> = "description",
        }
    }
}

union! {
    /// A field of a form. One of an unknown type is no text field.
    pub enum ElicitationProperty tag "type" {
        /// A text.
        String(StringProperty) boxed = "string",
        /// A number.
        Number(NumberProperty) boxed = "number",
        /// A whole number.
        Integer(IntegerProperty) boxed = "integer",
        /// A yes or no.
        Boolean(BooleanProperty) boxed = "boolean",
        /// Several choices.
        Array(MultiSelectProperty) boxed = "array",
    }

    /// The values of a field with several choices.
    pub enum MultiSelectItems tag "type" else Titled in [V1, V2Draft, V2] {
        /// Values.
        Strings(StringItems) = "string",
        /// Values with names; they have no tag.
        Titled(TitledItems) = "",
    }
}

string_enum! {
    /// The type of a form: there is but one.
    #[derive(Default)]
    pub enum ElicitationSchemaType {
        /// An object.
        #[default]
        Object = "object",
    }

    /// What a text looks like.
    pub enum StringFormat {
        /// An address for mail.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and a time.
        DateTime = "date-time",
    }
}
