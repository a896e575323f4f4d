//! What a field can be given as.

use crate::json::RawJson;
use crate::model::{Secret, Unknown};

/// What a field of type `T` can be given as: all that becomes it by [`Into`]. Numbers must have
/// exactly the field's type, so that literals need no suffix.
///
/// ```
/// use attache_proto::model::tool::Location;
///
/// let location = Location::new("/src/main.rs").line(3);
/// assert_eq!(location.line, Some(3));
/// ```
pub trait IntoField<T> {
    /// The value of the field.
    fn into_field(self) -> T;
}

/// Takes for a field all that becomes its type.
macro_rules! into_field {
    ($type:ty) => {
        impl<T: Into<$type>> crate::codec::IntoField<$type> for T {
            #[inline]
            fn into_field(self) -> $type {
                self.into()
            }
        }
    };
}
pub(crate) use into_field;

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl IntoField<$type> for $type {
            #[inline]
            fn into_field(self) -> $type {
                self
            }
        }
    )*};
}

plain!(bool u16 u32 u64 i32 i64 f64);
into_field!(String);
into_field!(RawJson);
into_field!(Secret);
into_field!(Unknown);

impl<T, U: Into<Vec<T>>> IntoField<Vec<T>> for U {
    #[inline]
    fn into_field(self) -> Vec<T> {
        self.into()
    }
}

impl<T, U: Into<Box<T>>> IntoField<Box<T>> for U {
    #[inline]
    fn into_field(self) -> Box<T> {
        self.into()
    }
}
