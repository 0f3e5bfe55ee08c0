//! A state as a checkpoint kept it, given back value by value.

use super::decoders::{Ask, Decoders};
use super::element::Element;
use crate::codec;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, Value, row_payload};
use crate::ids::CheckpointId;

use serde::{Deserialize, Serialize};

/// The version of [`Head`].
const VERSION: u16 = 2;
/// The bytes of a head without the streams: version, schema, how many there are.
const HEAD_BYTES: usize = 2 + 32 + 8;
/// The least and the most bytes of an [`At`].
const AT_BYTES: [usize; 2] = [1 + 1 + 8, (1 + 8 + 1 + 8) + (1 + 32) + 8];
/// The longest head: what every stream's end takes in a recording of very many of them.
const HEAD_BYTES_MAX: usize = 64 << 20;

/// What stands before the values of a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Head {
    version: u16,
    /// Of the recording's schema, whose values follow.
    schema: [u8; 32],
    streams: Vec<At>,
}

/// Where a stream was, by the numbers of its own last record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(in crate::recording) struct At {
    pub last: Option<(i64, Option<f64>)>,
    /// Names what its last record saw of its watched field, where it records changes.
    pub seen: Option<[u8; 32]>,
    /// How many of its records were left out by then, over all of it: see
    /// [`Stream::dropped`](crate::recording::Stream::dropped).
    pub dropped: u64,
}

/// A state, encoded: the head's length, the head, the values of all fields as one record.
pub(in crate::recording) fn encode_state(
    schema: &Schema,
    streams: Vec<At>,
    values: &[u8],
) -> Result<Vec<u8>> {
    let schema = Digest::of(&schema.to_bytes()?).0;
    let head = codec::encode("checkpoint", &Head { version: VERSION, schema, streams })?;
    let len = u32::try_from(head.len()).ok().filter(|len| *len as usize <= HEAD_BYTES_MAX);
    let Some(len) = len else {
        let cause = format!("the ends of its streams take {} bytes", head.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "checkpoint", "state", cause));
    };
    let mut bytes = Vec::with_capacity(4 + head.len() + values.len());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(values);
    Ok(bytes)
}

/// A state that a run goes on from.
#[derive(Debug, Clone)]
pub struct Restored {
    checkpoint: CheckpointId,
    schema: Schema,
    iteration: i64,
    time: Option<f64>,
    streams: Vec<At>,
    payload: Vec<u8>,
    from: usize,
    passed_over: Vec<(CheckpointId, String)>,
}

impl Restored {
    /// Reads what [`encode`] made of a state of `schema`, of a recording with so many streams.
    ///
    /// # Errors
    /// `Damage` when the bytes are none, or of another schema; `NewerFormat`.
    pub(in crate::recording) fn decode(
        checkpoint: CheckpointId,
        schema: &Schema,
        stream_count: usize,
        bytes: Vec<u8>,
    ) -> Result<Self> {
        let wrong =
            |cause: &str| Error::damage("resume", format!("checkpoint {checkpoint}"), cause);
        let (len, rest) =
            bytes.split_first_chunk::<4>().ok_or_else(|| wrong("its state is cut short"))?;
        let len = u32::from_le_bytes(*len) as usize;
        let head = rest.get(..len).filter(|_| len <= HEAD_BYTES_MAX);
        let head = head.ok_or_else(|| wrong("the head of its state is cut short"))?;
        let version = head.first_chunk::<2>().map_or(0, |b| u16::from_le_bytes(*b));
        if version > VERSION {
            let cause = format!("version {version} of a state is of a newer release");
            let place = format!("checkpoint {checkpoint}");
            return Err(Error::new(ErrorKind::NewerFormat, "resume", place, cause));
        }
        if version < VERSION {
            return Err(wrong("its state is of a form that no release wrote"));
        }
        // P9: decoded it takes more memory than its bytes do, so that these are compared first.
        let [least, most] = AT_BYTES.map(|of| of.saturating_mul(stream_count) + HEAD_BYTES);
        if !(least..=most).contains(&len) {
            return Err(wrong("it does not cover the streams of the recording"));
        }
        let head: Head = codec::decode("checkpoint", head)
            .map_err(|e| wrong("the head of its state does not decode").with_source(e))?;
        if head.schema != Digest::of(&schema.to_bytes()?).0 {
            return Err(wrong("it does not cover the fields of the recording"));
        }
        if head.streams.len() != stream_count {
            return Err(wrong("it does not cover the streams of the recording"));
        }
        let from = 4 + len;
        let mut values = Vec::new();
        let (iteration, time) = row_payload::decode(schema, &bytes[from..], &mut values)
            .map_err(|e| wrong("the values of its state do not decode").with_source(e))?;
        drop(values);
        Ok(Self {
            checkpoint,
            schema: schema.clone(),
            iteration,
            time,
            streams: head.streams,
            payload: bytes,
            from,
            passed_over: Vec::new(),
        })
    }

    pub(in crate::recording) fn note_passed_over(
        &mut self,
        passed_over: Vec<(CheckpointId, String)>,
    ) {
        self.passed_over = passed_over;
    }

    /// The bytes that it was read from.
    pub(in crate::recording) fn bytes(&self) -> &[u8] {
        &self.payload
    }

    /// Where each stream was.
    pub(in crate::recording) fn streams(&self) -> &[At] {
        &self.streams
    }

    /// The checkpoint that it is of.
    pub fn checkpoint(&self) -> CheckpointId {
        self.checkpoint
    }

    /// The iteration that the state was at.
    pub fn iteration(&self) -> i64 {
        self.iteration
    }

    /// The physical time that it was at, where the recording has one.
    pub fn time(&self) -> Option<f64> {
        self.time
    }

    /// The fields that it has: all those of the recording.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Newer checkpoints that were passed over since they do not read, the newest first, each with
    /// what was wrong with it.
    pub fn passed_over(&self) -> &[(CheckpointId, String)] {
        &self.passed_over
    }

    /// The value of a field.
    ///
    /// # Errors
    /// `NotFound` for a field that the recording does not have.
    pub fn value(&self, field: &str) -> Result<Value<'_>> {
        let Some(at) = self.schema.position(field) else {
            let cause = "the recording has no such field";
            return Err(Error::new(
                ErrorKind::NotFound,
                "resume",
                format!("field {field:?}"),
                cause,
            ));
        };
        Ok(self.values()?.get(at).copied().unwrap_or(Value::Missing))
    }

    /// The value of a field as a Rust value; an `Option` where it may be missing.
    ///
    /// # Errors
    /// `NotFound` for a field that the recording does not have; `TypeMismatch`, also for an opaque
    /// field of another type; `Damage` for bytes of its type that do not decode.
    pub fn get<T: Element>(&self, field: &str) -> Result<T> {
        let value = self.value(field)?;
        let place = || format!("field {field:?}");
        if let Some(field) = self.schema.position(field).and_then(|at| self.schema.fields().get(at))
        {
            T::check(field).map_err(|e| e.told_of("resume", place()))?;
        }
        let found = value.field_type().map_or("missing", |ty| ty.name());
        T::decode(value).map_err(|e| e.told_of("resume", place()))?.ok_or_else(|| {
            let cause = format!("it is {found}, not {}", T::NAME);
            Error::new(ErrorKind::TypeMismatch, "resume", place(), cause)
        })
    }

    /// Puts the value of every field into `state`.
    ///
    /// # Errors
    /// `Invalid` when a field has no decoder, `TypeMismatch`, and `Damage` for bytes of a type that do
    /// not decode, all before anything is put; `Invalid` when a decoder of the caller refuses its value:
    /// those before it have put theirs then.
    pub fn put_into<S>(&self, decoders: &Decoders<S>, state: &mut S) -> Result<()> {
        self.ask(Ask::ThoseThatMayRefuse, decoders, state)?;
        self.ask(Ask::TheOthers, decoders, state)
    }

    /// A part of [`Restored::put_into`].
    pub(in crate::recording) fn ask<S>(
        &self,
        whom: Ask,
        decoders: &Decoders<S>,
        state: &mut S,
    ) -> Result<()> {
        let bound = decoders.bind(&self.schema)?;
        let values = self.values()?;
        let value = |at: usize| values.get(at).copied().unwrap_or(Value::Missing);
        bound.ask(whom, &format!("checkpoint {}", self.checkpoint), self.iteration, value, state)
    }

    fn values(&self) -> Result<Vec<Value<'_>>> {
        let mut values = Vec::new();
        let bytes = self.payload.get(self.from..).unwrap_or_default();
        row_payload::decode(&self.schema, bytes, &mut values)?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::{Field, FieldType};

    fn schema(name: &str) -> Schema {
        let fields = vec![Field::new(name, FieldType::F64), Field::new("s", FieldType::String)];
        Schema::new(fields).unwrap()
    }

    /// Does a state come back as it was, and is any cut, any other schema, any newer form refused?
    #[test]
    fn rec37_a_state_comes_back_or_is_refused() {
        let schema_of = schema("x");
        let values = [Value::F64(-0.0), Value::String("é")];
        let row = row_payload::encode(&schema_of, 7, None, &values);
        let at = At { last: Some((6, None)), seen: Some([3; 32]), dropped: 7 };
        let bytes = encode_state(&schema_of, vec![at.clone(), At::default()], &row).unwrap();
        let decode = |schema: &Schema, streams, bytes: &[u8]| {
            Restored::decode(CheckpointId(4), schema, streams, bytes.to_vec())
        };
        let restored = decode(&schema_of, 2, &bytes).unwrap();
        assert_eq!((restored.iteration(), restored.time()), (7, None));
        assert_eq!(restored.get::<f64>("x").unwrap().to_bits(), (-0.0f64).to_bits());
        assert_eq!(restored.get::<String>("s").unwrap(), "é");
        assert_eq!(restored.streams(), [at, At::default()]);
        assert_eq!(restored.get::<i64>("x").unwrap_err().kind(), ErrorKind::TypeMismatch);
        assert_eq!(restored.get::<i64>("y").unwrap_err().kind(), ErrorKind::NotFound);
        for len in 0..bytes.len() {
            let refused = decode(&schema_of, 2, &bytes[..len]).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Damage, "{len}");
        }
        assert_eq!(decode(&schema("z"), 2, &bytes).unwrap_err().kind(), ErrorKind::Damage);
        assert_eq!(decode(&schema_of, 3, &bytes).unwrap_err().kind(), ErrorKind::Damage);
        let mut newer = bytes;
        newer[4] = 9;
        assert_eq!(decode(&schema_of, 2, &newer).unwrap_err().kind(), ErrorKind::NewerFormat);
        newer[4] = 1;
        assert_eq!(decode(&schema_of, 2, &newer).unwrap_err().kind(), ErrorKind::Damage);
    }

    /// Is a head of many streams refused by its length, before it takes memory; and is one of the
    /// least and of the most bytes not?
    #[test]
    fn rec37_a_head_is_compared_by_its_length_first() {
        let schema_of = schema("x");
        let row = row_payload::encode(&schema_of, 7, None, &[Value::F64(1.0), Value::String("")]);
        let full = At { last: Some((6, Some(1.0))), seen: Some([3; 32]), dropped: 7 };
        let decode = |at: &At, count: usize, wanted: usize| {
            let bytes = encode_state(&schema_of, vec![at.clone(); count], &row).unwrap();
            Restored::decode(CheckpointId(4), &schema_of, wanted, bytes)
        };
        for count in [0, 1, 300] {
            for at in [At::default(), full.clone()] {
                assert_eq!(decode(&at, count, count).unwrap().streams().len(), count);
            }
        }
        // What does not decode any more, and is refused by its length alone.
        let mut many = encode_state(&schema_of, vec![At::default(); 1 << 16], &row).unwrap();
        many[4 + 40] = 0xff;
        let refused = Restored::decode(CheckpointId(4), &schema_of, 2, many).unwrap_err();
        assert!(refused.cause().contains("cover the streams"), "{refused}");
    }

    /// Is an opaque value given back as its own type alone, and told to be damaged where its bytes do not
    /// decode?
    #[test]
    fn rec38_an_opaque_value_comes_back_as_its_own_type_or_not_at_all() {
        use super::super::element::Opaque;
        let fields = vec![Field::opaque::<(u32, u32)>("o").unwrap().nullable()];
        let schema = Schema::new(fields).unwrap();
        let restored = |value: Value<'_>| {
            let row = row_payload::encode(&schema, 7, None, &[value]);
            let bytes = encode_state(&schema, vec![At::default()], &row).unwrap();
            Restored::decode(CheckpointId(4), &schema, 1, bytes).unwrap()
        };
        let bytes = Opaque::encode(&(1u32, 2u32)).unwrap();
        let whole = restored(Value::Opaque(&bytes));
        assert_eq!(whole.get::<Opaque<(u32, u32)>>("o").unwrap().0, (1, 2));
        let other = whole.get::<Opaque<u64>>("o").unwrap_err();
        assert_eq!(other.kind(), ErrorKind::TypeMismatch, "{other}");
        assert_eq!(
            whole.get::<Option<Opaque<u64>>>("o").unwrap_err().kind(),
            ErrorKind::TypeMismatch
        );
        let cut = restored(Value::Opaque(&bytes[..5]));
        let refused = cut.get::<Opaque<(u32, u32)>>("o").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damage, "{refused}");
        assert!(refused.to_string().contains("\"o\""), "{refused}");
        let maybe = cut.get::<Option<Opaque<(u32, u32)>>>("o").unwrap_err();
        assert_eq!(maybe.kind(), ErrorKind::Damage);
        let decoders = Decoders::new()
            .field("o", |to: &mut (u32, u32), o: Option<Opaque<(u32, u32)>>| to.0 = o.unwrap().0.0)
            .unwrap();
        let mut to = (0, 0);
        assert_eq!(cut.put_into(&decoders, &mut to).unwrap_err().kind(), ErrorKind::Damage);
        whole.put_into(&decoders, &mut to).unwrap();
        assert_eq!(to, (1, 0));
        let missing = restored(Value::Missing).get::<Option<Opaque<(u32, u32)>>>("o").unwrap();
        assert_eq!(missing, None);
    }
}
