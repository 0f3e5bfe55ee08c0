//! A `Deserializer` that has no bytes: it makes values up and notes what it is asked.

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Questions answered in all, passes included; beyond it the trace ends where it is.
const QUESTIONS_MAX: usize = 20_000;
/// Passes over a type: each visits a variant, or closes a recursion, that none did before.
const PASSES_MAX: usize = 500;
/// How deep types may lie in each other.
const DEPTH_MAX: usize = 64;
/// How often a structure may lie in itself before it counts as recursion.
const SELF_MAX: usize = 3;

/// What was asked so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    text: String,
    questions: usize,
    passes: usize,
    /// Something was done for the first time in this pass.
    is_fresh: bool,
    refused: Option<&'static str>,
    enums: BTreeMap<String, Visited>,
    /// Names of structures that we are inside of.
    inside: Vec<String>,
    /// Where we are, as positions from the outside in.
    path: Vec<usize>,
    /// Options, lists and maps that we are inside of.
    optional: Vec<Vec<usize>>,
    /// Those of them that must be left empty, for there is no end behind them.
    closed: BTreeSet<Vec<usize>>,
}

/// The variants of an enum.
#[derive(Debug, Default)]
struct Visited {
    /// So many were entered.
    tried: usize,
    /// One that came to an end.
    good: Option<usize>,
}

/// The trace cannot go on here.
#[derive(Debug)]
pub(super) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the trace stopped")
    }
}

impl std::error::Error for Stopped {}

impl de::Error for Stopped {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl Trace {
    /// Reads one made-up value; false when another pass would see nothing new.
    pub(super) fn pass<T: DeserializeOwned>(&mut self) -> bool {
        self.is_fresh = false;
        self.inside.clear();
        self.path.clear();
        self.optional.clear();
        let ended = T::deserialize(Asked(self)).is_ok();
        self.text.push_str(if ended { ".\n" } else { "!\n" });
        self.passes += 1;
        self.is_fresh
            && self.refused.is_none()
            && self.passes < PASSES_MAX
            && self.questions < QUESTIONS_MAX
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn refused(&self) -> Option<&'static str> {
        self.refused
    }

    fn ask(&mut self, what: &str) -> Result<(), Stopped> {
        self.questions += 1;
        if self.questions > QUESTIONS_MAX || self.path.len() > DEPTH_MAX {
            return Err(Stopped);
        }
        self.text.push_str(what);
        self.text.push(' ');
        Ok(())
    }

    fn refuse<T>(&mut self, what: &'static str) -> Result<T, Stopped> {
        self.refused.get_or_insert(what);
        Err(Stopped)
    }

    /// Enters a structure, unless it lies in itself too often.
    fn enter(&mut self, name: String) -> Result<(), Stopped> {
        if self.inside.iter().filter(|outer| **outer == name).count() >= SELF_MAX {
            // The nearest thing that may be empty is left empty next time.
            if let Some(place) = self.optional.last() {
                self.is_fresh |= self.closed.insert(place.clone());
            }
            self.text.push('^');
            return Err(Stopped);
        }
        self.inside.push(name);
        Ok(())
    }

    /// Enters something that may be empty; false when it must be.
    fn open(&mut self) -> bool {
        if self.closed.contains(&self.path) {
            self.text.push_str("- ");
            return false;
        }
        self.optional.push(self.path.clone());
        true
    }

    /// The variant of an enum to make up: the first that was not visited, else one with an end.
    fn choose(&mut self, name: &str, of: usize) -> Option<usize> {
        let visited = self.enums.entry(name.to_owned()).or_default();
        if visited.tried < of {
            visited.tried += 1;
            self.is_fresh = true;
            return Some(visited.tried - 1);
        }
        visited.good
    }
}

/// One question.
struct Asked<'t>(&'t mut Trace);

/// What lies in a structure, a tuple, a list or a map: `left` more.
struct Parts<'t> {
    trace: &'t mut Trace,
    left: usize,
}

impl Parts<'_> {
    fn part<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stopped> {
        self.trace.path.push(self.left);
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
        self.part(seed)
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
        let at = u32::try_from(self.variant).map_err(|_| Stopped)?;
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
    ($($method:ident: $visit:ident($value:expr),)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
            self.0.ask(stringify!($visit))?;
            visitor.$visit($value)
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

    // 1, not 0: there are types that have no zero.
    made_up! {
        deserialize_bool: visit_bool(false),
        deserialize_i8: visit_i8(1),
        deserialize_i16: visit_i16(1),
        deserialize_i32: visit_i32(1),
        deserialize_i64: visit_i64(1),
        deserialize_i128: visit_i128(1),
        deserialize_u8: visit_u8(1),
        deserialize_u16: visit_u16(1),
        deserialize_u32: visit_u32(1),
        deserialize_u64: visit_u64(1),
        deserialize_u128: visit_u128(1),
        deserialize_f32: visit_f32(1.0),
        deserialize_f64: visit_f64(1.0),
        deserialize_char: visit_char('a'),
        deserialize_str: visit_str(""),
        deserialize_string: visit_str(""),
        deserialize_bytes: visit_bytes(&[]),
        deserialize_byte_buf: visit_bytes(&[]),
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
        self.0.enter(name.to_owned())?;
        self.0.path.push(0);
        let value = visitor.visit_newtype_struct(Asked(self.0));
        self.0.path.pop();
        self.0.inside.pop();
        value
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("seq")?;
        let left = usize::from(self.0.open());
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
        self.0.enter(format!("{name} {len}"))?;
        let value = visitor.visit_seq(Parts { trace: self.0, left: len });
        self.0.inside.pop();
        value
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stopped> {
        self.0.ask("map")?;
        let left = usize::from(self.0.open());
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
        self.0.enter(format!("{name} {fields:?}"))?;
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
        let known_as = format!("{name} {variants:?}");
        let Some(variant) = self.0.choose(&known_as, variants.len()) else {
            self.0.text.push('^');
            return Err(Stopped);
        };
        self.0.ask(&variant.to_string())?;
        self.0.path.push(variant);
        let value = visitor.visit_enum(Chosen { trace: self.0, variant });
        self.0.path.pop();
        if value.is_ok()
            && let Some(visited) = self.0.enums.get_mut(&known_as)
        {
            visited.good.get_or_insert(variant);
        }
        value
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
