//! Any serde value as parameters: fields and keys in a row with dots between them, items by their
//! position, what is absent left out. A key that is empty keeps its dot, and a whole number that
//! neither an `i64` nor a double holds exactly is refused.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};

use super::parameter::Parameter;
use crate::error::{Error, Result};

/// Flattens a map or a struct.
pub(super) fn flatten(task: &impl Serialize) -> Result<Vec<(String, Parameter)>> {
    let mut flat = Flat::default();
    let done = task.serialize(&mut flat);
    done.map_err(|e| {
        let cause = format!("its parameters are not typed values under names: {e}");
        Error::invalid("record", "parameters", cause)
    })?;
    Ok(flat.found)
}

/// Why something is no parameter.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

type Done<T = ()> = std::result::Result<T, Refused>;

#[derive(Default)]
struct Flat {
    path: String,
    /// How many names the path has.
    depth: usize,
    found: Vec<(String, Parameter)>,
}

impl Flat {
    fn take(&mut self, value: Parameter) -> Done {
        if self.depth == 0 {
            return Err(Refused(format!("{value} stands under no name")));
        }
        self.found.push((self.path.clone(), value));
        Ok(())
    }

    fn within<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Done {
        let before = self.enter(name);
        let done = value.serialize(&mut *self);
        self.leave(before);
        done
    }

    fn enter(&mut self, name: &str) -> (usize, usize) {
        let before = (self.path.len(), self.depth);
        if self.depth > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.depth += 1;
        before
    }

    fn leave(&mut self, (len, depth): (usize, usize)) {
        self.path.truncate(len);
        self.depth = depth;
    }

    fn nested<'f>(&'f mut self, variant: Option<&str>) -> Nested<'f> {
        let mut before = (self.path.len(), self.depth);
        if let Some(variant) = variant {
            before = self.enter(variant);
        }
        Nested { flat: self, before, at: 0, key: String::new() }
    }
}

/// The inside of something with parts.
struct Nested<'f> {
    flat: &'f mut Flat,
    /// Length and depth of the path before.
    before: (usize, usize),
    at: usize,
    key: String,
}

impl Nested<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let name = self.at.to_string();
        self.at += 1;
        self.flat.within(&name, value)
    }

    fn done(self) -> Done {
        self.flat.leave(self.before);
        Ok(())
    }
}

macro_rules! scalars {
    ($($method:ident: $ty:ty,)*) => {$(
        fn $method(self, value: $ty) -> Done {
            self.take(value.into())
        }
    )*};
}

impl<'f> Serializer for &'f mut Flat {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Nested<'f>;
    type SerializeTuple = Nested<'f>;
    type SerializeTupleStruct = Nested<'f>;
    type SerializeTupleVariant = Nested<'f>;
    type SerializeMap = Nested<'f>;
    type SerializeStruct = Nested<'f>;
    type SerializeStructVariant = Nested<'f>;

    scalars! {
        serialize_bool: bool,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u32: u32,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_str: &str,
    }

    fn serialize_i8(self, value: i8) -> Done {
        self.take(i64::from(value).into())
    }
    fn serialize_i16(self, value: i16) -> Done {
        self.take(i64::from(value).into())
    }
    fn serialize_u8(self, value: u8) -> Done {
        self.take(i64::from(value).into())
    }
    fn serialize_u16(self, value: u16) -> Done {
        self.take(i64::from(value).into())
    }
    fn serialize_u64(self, value: u64) -> Done {
        match Parameter::try_from(value) {
            Ok(value) => self.take(value),
            Err(e) => Err(Refused(format!("{:?} is {}", self.path, e.cause()))),
        }
    }
    fn serialize_char(self, value: char) -> Done {
        self.take(value.to_string().into())
    }
    fn serialize_bytes(self, _value: &[u8]) -> Done {
        Err(Refused(format!("{:?} is bytes", self.path)))
    }
    fn serialize_none(self) -> Done {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Done {
        Ok(())
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Done {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.take(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.within(variant, value)
    }
    fn serialize_seq(self, _len: Option<usize>) -> Done<Nested<'f>> {
        Ok(self.nested(None))
    }
    fn serialize_tuple(self, _len: usize) -> Done<Nested<'f>> {
        Ok(self.nested(None))
    }
    fn serialize_tuple_struct(self, _: &'static str, _len: usize) -> Done<Nested<'f>> {
        Ok(self.nested(None))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _len: usize,
    ) -> Done<Nested<'f>> {
        Ok(self.nested(Some(variant)))
    }
    fn serialize_map(self, _len: Option<usize>) -> Done<Nested<'f>> {
        Ok(self.nested(None))
    }
    fn serialize_struct(self, _: &'static str, _len: usize) -> Done<Nested<'f>> {
        Ok(self.nested(None))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _len: usize,
    ) -> Done<Nested<'f>> {
        Ok(self.nested(Some(variant)))
    }
}

macro_rules! items {
    ($($of:ident: $method:ident,)*) => {$(
        impl ser::$of for Nested<'_> {
            type Ok = ();
            type Error = Refused;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
                self.item(value)
            }
            fn end(self) -> Done {
                self.done()
            }
        }
    )*};
}

items! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! fields {
    ($($of:ident,)*) => {$(
        impl ser::$of for Nested<'_> {
            type Ok = ();
            type Error = Refused;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Done {
                self.flat.within(key, value)
            }
            fn end(self) -> Done {
                self.done()
            }
        }
    )*};
}

fields! { SerializeStruct, SerializeStructVariant, }

impl ser::SerializeMap for Nested<'_> {
    type Ok = ();
    type Error = Refused;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        let mut flat = Flat { path: "key".to_owned(), depth: 1, found: Vec::new() };
        key.serialize(&mut flat)?;
        match flat.found.as_slice() {
            [(_, name)] => self.key = name.to_string(),
            _ => return Err(Refused(format!("a key of {:?} is no single value", self.flat.path))),
        }
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let key = std::mem::take(&mut self.key);
        self.flat.within(&key, value)
    }
    fn end(self) -> Done {
        self.done()
    }
}
