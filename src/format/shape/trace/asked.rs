//! A `Deserializer` that has no bytes: it makes values up and notes what it is asked.

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::any::type_name;

use super::made_up::{BOOLS, BYTES, CHARS, FLOATS, INTEGERS, LENGTHS, TEXTS, ZEROS};
use super::{ENUM_SELF_MAX, SELF_MAX, Stopped, Trace};

/// A value of a map lies elsewhere than its key.
const VALUE: usize = 1 << 32;

/// Tells types apart that call themselves the same: two instances of one generic type, say. It is
/// no part of the fingerprint, so a type may move.
fn known_as<T>(said: String) -> String {
    format!("{said} {} {}", type_name::<T>(), size_of::<T>())
}

/// One question.
pub(super) struct Asked<'t>(pub(super) &'t mut Trace);

/// What lies in a structure, a tuple, a list or a map: `left` more.
struct Parts<'t> {
    trace: &'t mut Trace,
    left: usize,
}

impl Parts<'_> {
    fn part<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stopped> {
        self.part_at(self.left, seed)
    }

    fn part_at<'de, S: DeserializeSeed<'de>>(
        &mut self,
        place: usize,
        seed: S,
    ) -> Result<S::Value, Stopped> {
        self.trace.path.push(place);
        let value = seed.deserialize(Asked(self.trace));
        self.trace.path.pop();
        value
    }
}

impl<'de> SeqAccess<'de> for Parts<'_> {
    type Error = Stopped;
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stopped> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.part(seed).map(Some)
    }
}

impl<'de> MapAccess<'de> for Parts<'_> {
    type Error = Stopped;
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stopped> {
        self.next_element_seed(seed)
    }
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stopped> {
        self.part_at(VALUE + self.left, seed)
    }
}

/// An enum whose variant was chosen.
struct Chosen<'t> {
    trace: &'t mut Trace,
    variant: usize,
}

impl<'de, 't> EnumAccess<'de> for Chosen<'t> {
    type Error = Stopped;
    type Variant = Asked<'t>;
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Asked<'t>), Stopped> {
        let at = u32::try_from(self.variant).map_err(|_| Stopped(None))?;
        let at: de::value::U32Deserializer<Stopped> = de::IntoDeserializer::into_deserializer(at);
        Ok((seed.deserialize(at)?, Asked(self.trace)))
    }
}

impl<'de> VariantAccess<'de> for Asked<'_> {
    type Error = Stopped;
    fn unit_variant(self) -> Result<(), Stopped> {
        self.0.ask("unit")
    }
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Stopped> {
        self.0.ask("newtype")?;
        Parts { trace: self.0, left: 0 }.part(seed)
    }
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, v: V) -> Result<V::Value, Stopped> {
        self.deserialize_tuple(len, v)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("{fields:?}"))?;
        visitor.visit_seq(Parts { trace: self.0, left: fields.len() })
    }
}

macro_rules! made_up {
    ($($method:ident: $visit:ident($values:ident, $value:expr),)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
            self.0.ask(stringify!($visit))?;
            let value = $values[self.0.choice($values.len())];
            visitor.$visit($value(value))
        }
    )*};
}

macro_rules! refused {
    ($($method:ident: $what:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stopped> {
            self.0.refuse($what)
        }
    )*};
}

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Stopped;

    made_up! {
        deserialize_bool: visit_bool(BOOLS, |b| b),
        deserialize_i8: visit_i8(INTEGERS, |n| n as i8),
        deserialize_i16: visit_i16(INTEGERS, |n| n as i16),
        deserialize_i32: visit_i32(INTEGERS, |n| n as i32),
        deserialize_i64: visit_i64(INTEGERS, |n| n as i64),
        deserialize_i128: visit_i128(INTEGERS, |n| n),
        deserialize_u8: visit_u8(INTEGERS, |n| n as u8),
        deserialize_u16: visit_u16(INTEGERS, |n| n as u16),
        deserialize_u32: visit_u32(INTEGERS, |n| n as u32),
        deserialize_u64: visit_u64(INTEGERS, |n| n as u64),
        deserialize_u128: visit_u128(INTEGERS, |n| n as u128),
        deserialize_f32: visit_f32(FLOATS, |x| x as f32),
        deserialize_f64: visit_f64(FLOATS, |x| x),
        deserialize_char: visit_char(CHARS, |c| c),
        deserialize_str: visit_str(TEXTS, |t| t),
        deserialize_string: visit_str(TEXTS, |t| t),
        deserialize_bytes: visit_bytes(BYTES, |len| &ZEROS[..len]),
        deserialize_byte_buf: visit_bytes(BYTES, |len| &ZEROS[..len]),
    }

    refused! {
        deserialize_any: "asks the bytes what they are",
        deserialize_identifier: "asks the bytes for names of fields",
        deserialize_ignored_any: "passes over bytes that it does not know",
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("option")?;
        if !self.0.open() {
            return visitor.visit_none();
        }
        self.0.path.push(0);
        let value = visitor.visit_some(Asked(self.0));
        self.0.path.pop();
        self.0.optional.pop();
        value
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("unit")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("struct {name}"))?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("struct {name} newtype"))?;
        self.0.enter(known_as::<V::Value>(name.to_owned()), SELF_MAX)?;
        self.0.path.push(0);
        let value = visitor.visit_newtype_struct(Asked(self.0));
        self.0.path.pop();
        self.0.inside.pop();
        value
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("seq")?;
        let left = match self.0.open() {
            true => LENGTHS[self.0.length(LENGTHS.len())],
            false => 0,
        };
        let value = visitor.visit_seq(Parts { trace: self.0, left });
        if left > 0 {
            self.0.optional.pop();
        }
        value
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("tuple {len}"))?;
        visitor.visit_seq(Parts { trace: self.0, left: len })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("struct {name} tuple {len}"))?;
        self.0.enter(known_as::<V::Value>(format!("{name} {len}")), SELF_MAX)?;
        let value = visitor.visit_seq(Parts { trace: self.0, left: len });
        self.0.inside.pop();
        value
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("map")?;
        let left = match self.0.open() {
            true => LENGTHS[self.0.length(LENGTHS.len())],
            false => 0,
        };
        let value = visitor.visit_map(Parts { trace: self.0, left });
        if left > 0 {
            self.0.optional.pop();
        }
        value
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("struct {name} {fields:?}"))?;
        self.0.enter(known_as::<V::Value>(format!("{name} {fields:?}")), SELF_MAX)?;
        let value = visitor.visit_seq(Parts { trace: self.0, left: fields.len() });
        self.0.inside.pop();
        value
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stopped> {
        self.0.ask(&format!("enum {name} {variants:?}"))?;
        let known = known_as::<V::Value>(format!("{name} {variants:?}"));
        let Some(variant) = self.0.choose(&known, variants.len()) else {
            return self.0.turn_back();
        };
        self.0.enter(known.clone(), ENUM_SELF_MAX)?;
        self.0.ask(&variant.to_string())?;
        self.0.path.push(variant);
        let asked = self.0.questions;
        let value = visitor.visit_enum(Chosen { trace: self.0, variant });
        self.0.path.pop();
        self.0.inside.pop();
        if value.is_ok() {
            self.0.came_to_an_end(&known, variant);
        } else if self.0.questions == asked {
            self.0.unreadable.get_or_insert((known, variant));
        }
        value
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
