//! A deserializer that counts levels and elements on the way in. It promises nothing else: every
//! call goes on to the one below.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::Guard;

/// Anything of serde's reading with its guard.
pub struct Guarded<'g, D> {
    pub from: D,
    pub guard: Guard<'g>,
}

macro_rules! plain {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.from.$name(visitor)
        }
    )*};
}

macro_rules! nested {
    ($($name:ident($($arg:ident: $ty:ty),*) $is_list:literal;)*) => {$(
        fn $name<V: Visitor<'de>>(self, $($arg: $ty,)* to: V) -> Result<V::Value, D::Error> {
            let guard = self.guard.deeper($is_list, D::Error::custom)?;
            self.from.$name($($arg,)* Looking { to, guard })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Guarded<'_, D> {
    type Error = D::Error;

    plain! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier
    }

    nested! {
        deserialize_any() true;
        deserialize_ignored_any() true;
        deserialize_option() false;
        deserialize_seq() true;
        deserialize_map() true;
        deserialize_newtype_struct(name: &'static str) false;
        deserialize_tuple(len: usize) false;
        deserialize_tuple_struct(name: &'static str, len: usize) false;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) false;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) false;
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.from.deserialize_unit_struct(name, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.from.is_human_readable()
    }
}

/// A visitor of something that holds more.
struct Looking<'g, V> {
    to: V,
    guard: Guard<'g>,
}

macro_rules! told {
    ($($name:ident: $ty:ty;)*) => {$(
        fn $name<E: Error>(self, value: $ty) -> Result<V::Value, E> {
            self.to.$name(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Looking<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to.expecting(f)
    }

    told! {
        visit_bool: bool; visit_i64: i64; visit_i128: i128; visit_u64: u64; visit_u128: u128;
        visit_f64: f64; visit_char: char; visit_str: &str; visit_string: String; visit_bytes: &[u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.to.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.to.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.to.visit_some(Guarded { from, guard: self.guard })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.to.visit_newtype_struct(Guarded { from, guard: self.guard })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        self.to.visit_seq(Guarded { from, guard: self.guard })
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        self.to.visit_map(Guarded { from, guard: self.guard })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        self.to.visit_enum(Guarded { from, guard: self.guard })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Guarded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.from.deserialize(Guarded { from, guard: self.guard })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        let guard = self.guard;
        let element = self.from.next_element_seed(Guarded { from: seed, guard })?;
        if element.is_some() {
            guard.element(A::Error::custom)?;
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.from.size_hint().map(|hint| self.guard.at_most(hint))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let guard = self.guard;
        let key = self.from.next_key_seed(Guarded { from: seed, guard })?;
        if key.is_some() {
            guard.element(A::Error::custom)?;
        }
        Ok(key)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.from.next_value_seed(Guarded { from: seed, guard: self.guard })
    }

    fn size_hint(&self) -> Option<usize> {
        self.from.size_hint().map(|hint| self.guard.at_most(hint))
    }
}

impl<'de, 'g, A: EnumAccess<'de>> EnumAccess<'de> for Guarded<'g, A> {
    type Error = A::Error;
    type Variant = Guarded<'g, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let guard = self.guard;
        // Which variant it is, is a number or a name: no level of its own.
        let (value, from) = self.from.variant_seed(seed)?;
        Ok((value, Guarded { from, guard }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.from.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.from.newtype_variant_seed(Guarded { from: seed, guard: self.guard })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, to: V) -> Result<V::Value, A::Error> {
        self.from.tuple_variant(len, Looking { to, guard: self.guard })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        to: V,
    ) -> Result<V::Value, A::Error> {
        self.from.struct_variant(fields, Looking { to, guard: self.guard })
    }
}
