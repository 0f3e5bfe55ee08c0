//! An array of one record, borrowed: the lengths of its axes and its elements, row-major.

use super::axes::{RANK_MAX, count_of};
use super::number::{Number, for_each_number};
use super::value::{FieldType, Value};

macro_rules! elements {
    ($(($ty:ty, $variant:ident),)*) => {
        /// Elements of an array, one behind the other.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum Elements<'a> {
            $(
                #[doc = concat!("Of type `", stringify!($ty), "`.")]
                $variant(&'a [$ty]),
            )*
            /// Of any type, as little-endian bytes; a `bool` is one byte, 0 or 1.
            Bytes(FieldType, &'a [u8]),
        }

        impl<'a> Elements<'a> {
            /// The type of the elements.
            pub fn field_type(&self) -> FieldType {
                match self {
                    $(Self::$variant(_) => FieldType::$variant,)*
                    Self::Bytes(ty, _) => *ty,
                }
            }

            /// How many there are.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                    Self::Bytes(ty, bytes) => bytes.len() / ty.width().max(1),
                }
            }

            /// Element `at`; missing beyond the end.
            pub fn get(&self, at: usize) -> Value<'static> {
                match self {
                    $(Self::$variant(values) => {
                        values.get(at).map_or(Value::Missing, |v| Value::$variant(*v))
                    })*
                    Self::Bytes(ty, bytes) => {
                        let width = ty.width().max(1);
                        let range = at.saturating_mul(width)..at.saturating_add(1).saturating_mul(width);
                        bytes.get(range).map_or(Value::Missing, |bytes| ty.of_le_bytes(bytes))
                    }
                }
            }
        }

        $(
            impl<'a> From<&'a [$ty]> for Array<'a> {
                fn from(values: &'a [$ty]) -> Self {
                    Self::new(&[values.len()], values)
                }
            }
        )*
    };
}
for_each_number!(elements);

impl Elements<'_> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each in turn.
    pub fn iter(&self) -> impl Iterator<Item = Value<'static>> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// All of them, if they are of type `T`.
    pub fn to_vec<T: Number>(&self) -> Option<Vec<T>> {
        if self.field_type() != T::TYPE {
            return None;
        }
        self.iter().map(T::of_value).collect()
    }

    /// Appends the little-endian bytes.
    pub(super) fn write_le(&self, into: &mut Vec<u8>) {
        match self {
            Self::Bytes(_, bytes) => into.extend_from_slice(bytes),
            Self::U8(bytes) => into.extend_from_slice(bytes),
            Self::F64(values) => {
                values.iter().for_each(|v| into.extend_from_slice(&v.to_le_bytes()))
            }
            other => other.iter().for_each(|value| value.write_le(into)),
        }
    }
}

/// An array: axes and elements.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    lens: [u32; RANK_MAX],
    /// More than [`RANK_MAX`] where it was made of too many axes; no field takes that.
    rank: u8,
    elements: Elements<'a>,
}

impl<'a> Array<'a> {
    /// An array of `axes`, the slowest first, of as many elements as their product. Whether the
    /// numbers agree is looked at where a field takes it.
    pub fn new<T: Number>(axes: &[usize], elements: &'a [T]) -> Self {
        let mut lens = [0; RANK_MAX];
        for (to, len) in lens.iter_mut().zip(axes) {
            *to = u32::try_from(*len).unwrap_or(u32::MAX);
        }
        let rank = u8::try_from(axes.len()).unwrap_or(u8::MAX);
        Self { lens, rank, elements: T::elements(elements) }
    }

    pub(crate) fn of_parts((lens, rank): ([u32; RANK_MAX], u8), elements: Elements<'a>) -> Self {
        Self { lens, rank, elements }
    }

    /// The lengths of its axes, the slowest first.
    pub fn axes(&self) -> &[u32] {
        &self.lens[..usize::from(self.rank).min(RANK_MAX)]
    }

    /// Its elements, the last axis running fastest.
    pub fn elements(&self) -> Elements<'a> {
        self.elements
    }

    /// The type of its elements.
    pub fn field_type(&self) -> FieldType {
        self.elements.field_type()
    }

    /// Whether the axes and the number of elements agree.
    pub(super) fn is_whole(&self) -> bool {
        usize::from(self.rank) <= RANK_MAX && count_of(self.axes()) == Some(self.elements.len())
    }

    /// Equal bit for bit, in axes and elements.
    pub fn same(&self, other: &Array<'_>) -> bool {
        self.is_as(other, |a, b| a.same(b))
    }

    fn is_as(
        &self,
        other: &Array<'_>,
        equal: fn(&Value<'static>, &Value<'static>) -> bool,
    ) -> bool {
        let (a, b) = (self.elements, other.elements);
        (self.rank, self.axes()) == (other.rank, other.axes())
            && a.field_type() == b.field_type()
            && a.len() == b.len()
            && a.iter().zip(b.iter()).all(|(a, b)| equal(&a, &b))
    }
}

/// Equal as numbers are: NaN equals nothing, and -0 equals 0.
impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_as(other, |a, b| a == b)
    }
}
