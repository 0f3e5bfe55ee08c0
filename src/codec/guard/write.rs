//! A serializer that counts levels and elements on the way out, as the deserializer does on the way
//! in. It promises nothing else: every call goes on to the one below.

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{Guard, Writing};

/// Anything of serde's writing with its guard.
pub struct Guarded<'g, S> {
    pub to: S,
    pub guard: Guard<'g>,
}

macro_rules! plain {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        fn $name(self, $($arg: $ty),*) -> Result<S::Ok, S::Error> {
            self.to.$name($($arg),*)
        }
    )*};
}

macro_rules! nested {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $kind:ident $is_list:literal;)*) => {$(
        fn $name(self, $($arg: $ty),*) -> Result<Self::$kind, S::Error> {
            let guard = self.guard.deeper($is_list, S::Error::custom)?;
            Ok(Guarded { to: self.to.$name($($arg),*)?, guard })
        }
    )*};
}

impl<'g, S: Serializer> Serializer for Guarded<'g, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Guarded<'g, S::SerializeSeq>;
    type SerializeTuple = Guarded<'g, S::SerializeTuple>;
    type SerializeTupleStruct = Guarded<'g, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Guarded<'g, S::SerializeTupleVariant>;
    type SerializeMap = Guarded<'g, S::SerializeMap>;
    type SerializeStruct = Guarded<'g, S::SerializeStruct>;
    type SerializeStructVariant = Guarded<'g, S::SerializeStructVariant>;

    plain! {
        serialize_bool(v: bool);
        serialize_i8(v: i8);
        serialize_i16(v: i16);
        serialize_i32(v: i32);
        serialize_i64(v: i64);
        serialize_i128(v: i128);
        serialize_u8(v: u8);
        serialize_u16(v: u16);
        serialize_u32(v: u32);
        serialize_u64(v: u64);
        serialize_u128(v: u128);
        serialize_f32(v: f32);
        serialize_f64(v: f64);
        serialize_char(v: char);
        serialize_str(v: &str);
        serialize_bytes(v: &[u8]);
        serialize_unit();
        serialize_unit_struct(name: &'static str);
    }

    nested! {
        serialize_seq(len: Option<usize>) -> SerializeSeq true;
        serialize_tuple(len: usize) -> SerializeTuple false;
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct false;
        serialize_tuple_variant(name: &'static str, at: u32, variant: &'static str, len: usize)
            -> SerializeTupleVariant false;
        serialize_map(len: Option<usize>) -> SerializeMap true;
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct false;
        serialize_struct_variant(name: &'static str, at: u32, variant: &'static str, len: usize)
            -> SerializeStructVariant false;
    }

    // What is read as an option or a variant is a level even where nothing is in it.
    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.guard.deeper(false, S::Error::custom)?;
        self.to.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let guard = self.guard.deeper(false, S::Error::custom)?;
        self.to.serialize_some(&Writing { value, guard })
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.guard.deeper(false, S::Error::custom)?;
        self.to.serialize_unit_variant(name, at, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let guard = self.guard.deeper(false, S::Error::custom)?;
        self.to.serialize_newtype_struct(name, &Writing { value, guard })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let guard = self.guard.deeper(false, S::Error::custom)?;
        self.to.serialize_newtype_variant(name, at, variant, &Writing { value, guard })
    }

    fn is_human_readable(&self) -> bool {
        self.to.is_human_readable()
    }
}

macro_rules! elements {
    ($($kind:ident $name:ident;)*) => {$(
        impl<C: $kind> $kind for Guarded<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                self.guard.element(C::Error::custom)?;
                self.to.$name(&Writing { value, guard: self.guard })
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.to.end()
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($kind:ident)*) => {$(
        impl<C: $kind> $kind for Guarded<'_, C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), C::Error> {
                self.to.serialize_field(key, &Writing { value, guard: self.guard })
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), C::Error> {
                self.to.skip_field(key)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.to.end()
            }
        }
    )*};
}

fields!(SerializeStruct SerializeStructVariant);

impl<C: SerializeMap> SerializeMap for Guarded<'_, C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.guard.element(C::Error::custom)?;
        self.to.serialize_key(&Writing { value, guard: self.guard })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.to.serialize_value(&Writing { value, guard: self.guard })
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.to.end()
    }
}
