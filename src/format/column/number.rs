//! The types that a field's elements may have: fixed widths, so that many of them are an array.

use std::fmt::Debug;

use super::array::Elements;
use super::data::Data;
use super::numeric::Binned;
use super::plain::Kind;
use super::transform::Word;
use super::value::{FieldType, Value};

/// Calls a macro with the name of each number's type and of its variants, `bool` last.
macro_rules! for_each_number {
    ($apply:ident) => {
        $apply! {
            (i8, I8), (i16, I16), (i32, I32), (i64, I64), (u8, U8), (u16, U16), (u32, U32),
            (u64, U64), (f32, F32), (f64, F64), (bool, Bool),
        }
    };
}
pub(super) use for_each_number;

/// A number, or a `bool`: what a field may hold arrays of.
pub trait Number: Copy + Default + PartialEq + Debug + Send + Sync + 'static {
    /// The type of a field of such values.
    const TYPE: FieldType;
    /// The values as elements of an array.
    fn elements(values: &[Self]) -> Elements<'_>;
    /// The value of a cell.
    fn value(self) -> Value<'static>;
    /// The number in a cell, if it is of this type.
    fn of_value(value: Value<'_>) -> Option<Self>;
    /// The elements of a column, if they are of this type.
    fn of_data(data: &Data) -> Option<&[Self]>;
}

macro_rules! numbers {
    ($(($ty:ty, $variant:ident),)*) => {$(
        impl Number for $ty {
            const TYPE: FieldType = FieldType::$variant;
            fn elements(values: &[Self]) -> Elements<'_> {
                Elements::$variant(values)
            }
            fn value(self) -> Value<'static> {
                Value::$variant(self)
            }
            fn of_value(value: Value<'_>) -> Option<Self> {
                match value {
                    Value::$variant(v) => Some(v),
                    _ => None,
                }
            }
            fn of_data(data: &Data) -> Option<&[Self]> {
                match data {
                    Data::$variant(values) => Some(values),
                    _ => None,
                }
            }
        }
    )*};
}
for_each_number!(numbers);

/// A number that is stored as a word of its own width: any but `bool`.
pub(super) trait Bits: Number {
    type Word: Binned;
    const KIND: Kind;
    /// Sorts as the number does; a float by totalOrder.
    fn key(self) -> Self::Word;
    /// As 64 bits: integers by their value, floats by their own bits.
    fn widen(self) -> u64;
    fn word(self) -> Self::Word;
    fn of_word(word: Self::Word) -> Self;
    fn is_nan(self) -> bool;
}

macro_rules! integers {
    ($($ty:ty, $word:ty, $signed:literal;)*) => {$(
        impl Bits for $ty {
            type Word = $word;
            const KIND: Kind = if $signed { Kind::Signed } else { Kind::Unsigned };
            fn key(self) -> $word {
                let sign: $word = if $signed { 1 << (<$word>::BITS - 1) } else { 0 };
                self as $word ^ sign
            }
            fn widen(self) -> u64 {
                self as i64 as u64
            }
            fn word(self) -> $word {
                self as $word
            }
            fn of_word(word: $word) -> Self {
                word as $ty
            }
            fn is_nan(self) -> bool {
                false
            }
        }
    )*};
}
integers! {
    i8, u8, true; i16, u16, true; i32, u32, true; i64, u64, true;
    u8, u8, false; u16, u16, false; u32, u32, false; u64, u64, false;
}

macro_rules! floats {
    ($($ty:ty, $word:ty;)*) => {$(
        impl Bits for $ty {
            type Word = $word;
            const KIND: Kind = Kind::Float;
            fn key(self) -> $word {
                self.to_bits().ordered()
            }
            fn widen(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn word(self) -> $word {
                self.to_bits()
            }
            fn of_word(word: $word) -> Self {
                <$ty>::from_bits(word)
            }
            fn is_nan(self) -> bool {
                <$ty>::is_nan(self)
            }
        }
    )*};
}
floats! { f32, u32; f64, u64; }

/// Appends numbers from their little-endian bytes; a `bool` is one byte.
pub(super) trait FromBytes: Number {
    fn extend(values: &mut Vec<Self>, bytes: &[u8]);
}

impl<T: Bits> FromBytes for T {
    fn extend(values: &mut Vec<T>, bytes: &[u8]) {
        let words = bytes.chunks_exact(T::Word::BYTES).map(T::Word::of_le);
        values.extend(words.map(T::of_word));
    }
}

impl FromBytes for bool {
    fn extend(values: &mut Vec<Self>, bytes: &[u8]) {
        values.extend(bytes.iter().map(|byte| *byte == 1));
    }
}
