//! The elements of a column, one type throughout.

use std::ops::Range;

use super::array::Elements;
use super::number::{FromBytes, for_each_number};
use super::parts::Blob;
use super::value::{FieldType, Value};

macro_rules! data {
    ($(($ty:ty, $variant:ident),)*) => {
        /// The values of a column. Where a record is missing there stands a zero or an empty value; of an
        /// array all elements stand, and none of a missing one.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Data {
            $(
                #[doc = concat!("Of a field of type `", stringify!($ty), "`.")]
                $variant(Vec<$ty>),
            )*
            /// Of a `string`, `bytes`, `json` or `opaque` field; UTF-8 in text.
            Blob(Blob),
        }

        impl Data {
            /// Of no records.
            pub(super) fn new(ty: FieldType) -> Self {
                match ty {
                    $(FieldType::$variant => Self::$variant(Vec::new()),)*
                    FieldType::String | FieldType::Bytes | FieldType::Json | FieldType::Opaque => {
                        Self::Blob(Blob::default())
                    }
                }
            }

            /// How many elements there are.
            pub(super) fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                    Self::Blob(blob) => blob.len(),
                }
            }

            /// Element `at`. Of a blob it says nothing.
            pub(super) fn number(&self, at: usize) -> Value<'_> {
                match self {
                    $(Self::$variant(v) => v.get(at).map_or(Value::Missing, |v| Value::$variant(*v)),)*
                    Self::Blob(_) => Value::Missing,
                }
            }

            /// Adds `more` elements that stand for none.
            pub(super) fn push_nothing(&mut self, more: usize) {
                match self {
                    $(Self::$variant(values) => values.resize(values.len() + more, <$ty>::default()),)*
                    Self::Blob(blob) => (0..more).for_each(|_| blob.push(&[])),
                }
            }

            /// Adds a number. Returns whether it is of this type.
            #[must_use]
            pub(super) fn push_number(&mut self, value: Value<'_>) -> bool {
                match (self, value) {
                    $((Self::$variant(values), Value::$variant(v)) => values.push(v),)*
                    _ => return false,
                }
                true
            }

            /// Adds the elements of an array. Returns whether they are of this type.
            #[must_use]
            pub(super) fn push_elements(&mut self, elements: Elements<'_>) -> bool {
                match (self, elements) {
                    $((Self::$variant(to), Elements::$variant(from)) => to.extend_from_slice(from),)*
                    $((Self::$variant(to), Elements::Bytes(FieldType::$variant, bytes)) => {
                        <$ty as FromBytes>::extend(to, bytes);
                    })*
                    _ => return false,
                }
                true
            }

            /// Adds elements of another column. Returns whether the types agree.
            #[must_use]
            pub(super) fn extend(&mut self, other: &Self, range: Range<usize>) -> bool {
                match (self, other) {
                    $((Self::$variant(to), Self::$variant(from)) => {
                        to.extend_from_slice(from.get(range).unwrap_or(&[]));
                    })*
                    (Self::Blob(to), Self::Blob(from)) => range.for_each(|at| to.push(from.get(at))),
                    _ => return false,
                }
                true
            }

            /// Elements as those of an array.
            pub(super) fn elements(&self, range: Range<usize>) -> Elements<'_> {
                match self {
                    $(Self::$variant(values) => Elements::$variant(values.get(range).unwrap_or(&[])),)*
                    Self::Blob(_) => Elements::Bytes(FieldType::Bytes, &[]),
                }
            }

            /// Puts zeros at the records that `missing` names.
            pub(super) fn clear(&mut self, missing: impl Iterator<Item = usize>) {
                match self {
                    $(Self::$variant(values) => missing.for_each(|at| {
                        if let Some(value) = values.get_mut(at) {
                            *value = <$ty>::default();
                        }
                    }),)*
                    Self::Blob(_) => {}
                }
            }
        }
    };
}
for_each_number!(data);
