//! The fields of a form that the agent asks the user to fill in.

use crate::codec::{record, string_enum, union};

record! {
    /// The fields of a form.
    pub struct ElicitationSchema {
        optional {
            /// Always an object.
            schema_type: ElicitationSchemaType = Shown "type",
            /// The title of the form.
            title: Option<String> = Lenient "title",
            /// What the form is for.
            description: Option<String> = Lenient "description",
            /// The fields by name, in the order to show them.
            properties: Vec<(String, ElicitationProperty)> = Map "properties",
            /// The names of those that must be filled in.
            required: Option<Vec<String>> = Optional "required",
        }
    }

    /// A text.
    pub struct StringProperty {
        optional {
            /// Its name to show.
            title: Option<String> = Lenient "title",
            /// What it is for.
            description: Option<String> = Lenient "description",
            /// How many characters it has at least.
            min_length: Option<u32> = Optional "minLength",
            /// How many characters it has at most.
            max_length: Option<u32> = Optional "maxLength",
            /// The regular expression that it matches.
            pattern: Option<String> = Optional "pattern",
            /// What it looks like.
            format: Option<StringFormat> = Optional "format",
            /// What to start with.
            default: Option<String> = Lenient "default",
            /// The values to choose from.
            enum_values: Option<Vec<String>> = Optional "enum",
            /// The values to choose from, with names.
            one_of: Option<Vec<EnumOption>> = Optional "oneOf",
        }
    }

    /// A number.
    pub struct NumberProperty {
        optional {
            /// Its name to show.
            title: Option<String> = Lenient "title",
            /// What it is for.
            description: Option<String> = Lenient "description",
            /// The least that it may be.
            minimum: Option<f64> = Optional "minimum",
            /// The most that it may be.
            maximum: Option<f64> = Optional "maximum",
            /// What to start with.
            default: Option<f64> = Lenient "default",
        }
    }

    /// A whole number.
    pub struct IntegerProperty {
        optional {
            /// Its name to show.
            title: Option<String> = Lenient "title",
            /// What it is for.
            description: Option<String> = Lenient "description",
            /// The least that it may be.
            minimum: Option<i64> = Optional "minimum",
            /// The most that it may be.
            maximum: Option<i64> = Optional "maximum",
            /// What to start with.
            default: Option<i64> = Lenient "default",
        }
    }

    /// A yes or no.
    pub struct BooleanProperty {
        optional {
            /// Its name to show.
            title: Option<String> = Lenient "title",
            /// What it is for.
            description: Option<String> = Lenient "description",
            /// What to start with.
            default: Option<bool> = Lenient "default",
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
            title: Option<String> = Lenient "title",
            /// What it is for.
            description: Option<String> = Lenient "description",
            /// How many have to be chosen.
            min_items: Option<u64> = Optional "minItems",
            /// How many may be chosen.
            max_items: Option<u64> = Optional "maxItems",
            /// What to start with.
            default: Option<Vec<String>> = LenientList "default",
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
            description: Option<String> = Lenient "description",
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
