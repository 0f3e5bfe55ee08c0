//! Decoders: how the values of a record become a value of the caller's own type, field by field.
//!
//! - A key is refused when it is empty, or registered already; a key that no field has is allowed.
//! - A field without a decoder is found by [`Decoders::check`], which reads nothing.
//! - What a decoder refuses is told with its own error behind it, by stream, record and field.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;

use super::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Field, Schema, Value};
use crate::protection::Protection;

/// Puts one value where it belongs in a state.
type Put<S> = dyn Fn(&mut S, Value<'_>, &Place<'_>) -> Result<()> + Send + Sync;

/// Whether values of a field can be decoded so, as far as that is known without them.
type Check = fn(&Field) -> Result<()>;

/// Whether a value is of the type that it is put as.
type Fits = fn(Value<'_>, &Place<'_>) -> Result<()>;

/// How the values of one field are decoded.
struct Decoder<S> {
    check: Check,
    /// Of one that cannot refuse a value that fits; the caller's own code may refuse any.
    fits: Option<Fits>,
    put: Box<Put<S>>,
}

/// Which decoders are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) enum Ask {
    /// All of them.
    All,
    /// Those that may refuse a value; of the others it is known afterwards that they will not.
    ThoseThatMayRefuse,
    /// The others.
    TheOthers,
}

/// Which value: named in errors.
pub(super) struct Place<'a> {
    /// What holds the record.
    pub(super) of: &'a str,
    pub(super) iteration: i64,
    field: &'a str,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} iteration {} field {:?}", self.of, self.iteration, self.field)
    }
}

/// For each field, how its value gets into a state of type `S`.
///
/// ```
/// use sealstone::recording::Decoders;
///
/// #[derive(Default)]
/// struct State { x: f64, name: Option<String> }
///
/// let decoders = Decoders::new()
///     .field("x", |state: &mut State, x: f64| state.x = x)?
///     .field("name", |state: &mut State, name: Option<String>| state.name = name)?;
/// # Ok::<(), sealstone::Error>(())
/// ```
pub struct Decoders<S> {
    by_field: BTreeMap<String, Decoder<S>>,
}

impl<S> fmt::Debug for Decoders<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_field.keys()).finish()
    }
}

impl<S> Default for Decoders<S> {
    fn default() -> Self {
        Self { by_field: BTreeMap::new() }
    }
}

impl<S> Decoders<S> {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers how a value of type `T` of the field called `field` gets into a state. For a field
    /// whose values may be missing `T` is an `Option`.
    ///
    /// # Errors
    /// `Invalid` for an empty name, or one that is registered already.
    pub fn field<T: Element>(
        self,
        field: &str,
        set: impl Fn(&mut S, T) + Send + Sync + 'static,
    ) -> Result<Self> {
        let put = move |state: &mut S, value: Value<'_>, place: &Place<'_>| {
            set(state, taken::<T>(value, place)?);
            Ok(())
        };
        let fits: Fits = |value, place| taken::<T>(value, place).map(drop);
        let decoder = Decoder { check: T::check, fits: Some(fits), put: Box::new(put) };
        self.register(field, decoder)
    }

    /// Registers a decoder that may refuse a value; its error is kept as the source of ours.
    ///
    /// # Errors
    /// As [`Decoders::field`].
    pub fn field_with<E: StdError + Send + Sync + 'static>(
        self,
        field: &str,
        decode: impl Fn(&mut S, Value<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Self> {
        let put = move |state: &mut S, value: Value<'_>, place: &Place<'_>| {
            decode(state, value).map_err(|e| {
                let cause = "its decoder refused the value";
                Error::invalid("decode", place, cause).with_source(e)
            })
        };
        let decoder = Decoder { check: |_| Ok(()), fits: None, put: Box::new(put) };
        self.register(field, decoder)
    }

    fn register(mut self, field: &str, decoder: Decoder<S>) -> Result<Self> {
        let refuse = |cause| Err(Error::invalid("decode", format!("field {field:?}"), cause));
        if field.trim().is_empty() {
            return refuse("the name of a decoder's field is empty");
        }
        if self.by_field.insert(field.to_owned(), decoder).is_some() {
            return refuse("it has a decoder already");
        }
        Ok(self)
    }

    /// Whether each field of `schema` has a decoder. Decoders of fields that it lacks are allowed.
    ///
    /// # Errors
    /// `Invalid`, with the fields that have none; `TypeMismatch` for an opaque field of another
    /// type.
    pub fn check(&self, schema: &Schema) -> Result<()> {
        for field in schema.fields() {
            if let Some(decoder) = self.by_field.get(&field.name) {
                (decoder.check)(field)?;
            }
        }
        let fields = schema.fields().iter().map(|field| field.name.as_str());
        let missing = fields.filter(|name| !self.by_field.contains_key(*name));
        let missing: Vec<String> = missing.map(|name| format!("{name:?}")).collect();
        if missing.is_empty() || !Protection::DecodersComplete.is_on() {
            return Ok(());
        }
        let cause = format!("no decoder is registered for {}", missing.join(", "));
        Err(Error::invalid("decode", "schema", cause))
    }

    /// The decoders in the order of the fields of `schema`.
    ///
    /// # Errors
    /// As [`Decoders::check`].
    pub(super) fn bind(&self, schema: &Schema) -> Result<Bound<'_, S>> {
        self.check(schema)?;
        let fields = schema.fields().iter();
        let found = fields.enumerate().filter_map(|(at, field)| {
            let (name, decoder) = self.by_field.get_key_value(&field.name)?;
            Some((at, name.as_str(), decoder))
        });
        Ok(Bound { by_position: found.collect() })
    }
}

/// The value as a `T`.
fn taken<T: Element>(value: Value<'_>, place: &Place<'_>) -> Result<T> {
    let decoded = T::decode(value).map_err(|e| e.told_of("decode", place))?;
    decoded.ok_or_else(|| {
        let cause = format!("it is {}, not {}", value.kind(), T::NAME);
        Error::new(ErrorKind::TypeMismatch, "decode", place, cause)
    })
}

/// Decoders for the records of one schema.
pub(super) struct Bound<'d, S> {
    by_position: Vec<(usize, &'d str, &'d Decoder<S>)>,
}

impl<S> Bound<'_, S> {
    /// Puts the values of a record into `state`, which is half done where this fails. `of` names
    /// what the record is of.
    ///
    /// # Errors
    /// `TypeMismatch`, `Damage` for bytes of a type that do not decode, or `Invalid` for what a
    /// decoder of the caller refused, with its error as the source; all name the record and the field.
    pub(super) fn decode<'v>(
        &self,
        of: &str,
        iteration: i64,
        value: impl Fn(usize) -> Value<'v>,
        state: &mut S,
    ) -> Result<()> {
        self.ask(Ask::All, of, iteration, value, state)
    }

    /// As [`Bound::decode`], in parts. That a value does not fit is told before anything is put.
    ///
    /// # Errors
    /// As there.
    pub(super) fn ask<'v>(
        &self,
        whom: Ask,
        of: &str,
        iteration: i64,
        value: impl Fn(usize) -> Value<'v>,
        state: &mut S,
    ) -> Result<()> {
        if whom == Ask::ThoseThatMayRefuse {
            for &(at, field, decoder) in &self.by_position {
                decoder
                    .fits
                    .map_or(Ok(()), |fits| fits(value(at), &Place { of, iteration, field }))?;
            }
        }
        for &(at, field, decoder) in &self.by_position {
            let is_asked = match whom {
                Ask::All => true,
                Ask::ThoseThatMayRefuse => decoder.fits.is_none(),
                Ask::TheOthers => decoder.fits.is_some(),
            };
            if is_asked {
                (decoder.put)(state, value(at), &Place { of, iteration, field })?;
            }
        }
        Ok(())
    }
}
