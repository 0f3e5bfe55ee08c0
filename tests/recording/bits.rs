//! Floats, bit for bit, through everything that a store does with them.

use std::ops::ControlFlow;

use sealstone::engine::{Budget, Options};
use sealstone::recording::{Array, Field, FieldType, Recording, Schema, Value};
use sealstone::{Limits, Store};

const RECORDS: usize = 1000;
const DOUBLES: usize = 1000;

/// Any bits, in an order that a seed gives (splitmix64).
struct Bits(u64);

impl Iterator for Bits {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(z ^ (z >> 31))
    }
}

/// Signalling and quiet NaNs with payloads, infinities, zeros, subnormals, and their neighbours.
const HARD: [u64; 16] = [
    0,
    1 << 63,
    1,
    (1 << 63) | 1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xfff0_0000_dead_beef,
    0x7ff8_0000_0000_0000,
    0xfff8_0000_0000_0001,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
    0x3ff0_0000_0000_0001,
];

struct Sample {
    hard: Vec<f64>,
    doubles: Vec<f64>,
    /// Every upper half of a single, and any lower one.
    singles: Vec<f32>,
}

impl Sample {
    fn new() -> Self {
        let singles = (0..1u32 << 16).zip(Bits(2));
        Self {
            hard: (0..RECORDS).map(|at| f64::from_bits(HARD[at * 7 % HARD.len()])).collect(),
            doubles: Bits(1).take(RECORDS * DOUBLES).map(f64::from_bits).collect(),
            singles: singles
                .map(|(high, low)| f32::from_bits(high << 16 | low as u16 as u32))
                .collect(),
        }
    }

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("hard", FieldType::F64),
            Field::new("doubles", FieldType::F64).array([10, 100]),
            Field::new("singles", FieldType::F32).ragged(1),
        ])
        .unwrap()
    }

    /// The singles of a record: 66 at most, none in the last.
    fn singles(&self, at: usize) -> &[f32] {
        self.singles.chunks(66).nth(at).unwrap_or(&[])
    }

    fn record(&self, at: usize) -> [Value<'_>; 3] {
        let doubles = &self.doubles[at * DOUBLES..(at + 1) * DOUBLES];
        let singles = self.singles(at).into();
        [self.hard[at].into(), Array::new(&[10, 100], doubles).into(), singles]
    }

    #[track_caller]
    fn assert_is(&self, recording: &Recording, when: &str) {
        let stream = recording.stream("bits").unwrap();
        assert_eq!(stream.record_count(), RECORDS as u64, "{when}");
        for (field, name) in ["hard", "doubles", "singles"].iter().enumerate() {
            let mut at = 0;
            for column in stream.field(name).unwrap().columns().unwrap() {
                for value in column.unwrap().iter() {
                    assert!(value.same(&self.record(at)[field]), "{when}: {name} of record {at}");
                    at += 1;
                }
            }
            assert_eq!(at, RECORDS, "{when}: {name}");
        }
    }
}

fn options() -> Options {
    let mut limits = Limits::default();
    limits.compact_dead_percent = 1;
    Store::options().limits(limits)
}

/// Does every upper half of a single, and a million doubles of any bits, come back from the
/// journal, from chunks, from a packed store and after compaction?
#[test]
fn rec49_every_bit_of_a_float_survives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let sample = Sample::new();
    let mut schema = Sample::schema().fields().to_vec();
    schema.push(Field::new("junk", FieldType::Bytes));
    let schema = Schema::new(schema).unwrap();
    let fields = ["hard", "doubles", "singles"];
    let store = options().create(&path).unwrap();

    let junk =
        |at: usize| -> Vec<u8> { Bits(at as u64).take(500).map(|bits| bits as u8).collect() };
    let beside = store.record("beside", &schema).stream("bits", fields).stream("junk", ["junk"]);
    let mut beside = beside.start_bulk().unwrap();
    for at in 0..RECORDS {
        beside.push(0, at as i64, &sample.record(at)).unwrap();
        beside.push(1, at as i64, &[Value::Bytes(&junk(at))]).unwrap();
    }
    beside.complete(&[]).unwrap();
    sample.assert_is(&store.recording("beside").unwrap(), "in bulk");

    // All in the journal alone, then in chunks and the journal, then in chunks alone.
    let journal = store.record("journal", &schema).stream("bits", fields).chunk_bytes(1 << 40);
    let journal = journal.start().unwrap();
    let run = store.record("run", &schema).stream("bits", fields).start().unwrap();
    for at in 0..RECORDS {
        journal.append(0, at as i64, &sample.record(at)).unwrap();
        run.append(0, at as i64, &sample.record(at)).unwrap();
    }
    journal.barrier().unwrap();
    let read = store.recording("journal").unwrap();
    assert_eq!(read.stream("bits").unwrap().sealed_record_count(), 0);
    sample.assert_is(&read, "in memory");
    let other = options().open_read_only(&path).unwrap();
    sample.assert_is(&other.recording("journal").unwrap(), "in the journal");
    drop(other);
    let sealed = store.recording("run").unwrap().stream("bits").unwrap().sealed_record_count();
    assert!((1..RECORDS as u64).contains(&sealed), "{sealed} records in chunks");
    sample.assert_is(&store.recording("run").unwrap(), "in chunks and the journal");
    journal.complete().unwrap();
    run.complete().unwrap();
    sample.assert_is(&store.recording("journal").unwrap(), "in one chunk");
    sample.assert_is(&store.recording("run").unwrap(), "in chunks");

    // Its chunks are those of the first recording. What lies beside them dies, and they are moved.
    store.retire_recording("beside", "it made room").unwrap();
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert!(reclaimed.compacted > 0, "{reclaimed:?}");
    sample.assert_is(&store.recording("run").unwrap(), "after compaction");
    store.close().unwrap();

    let packed = dir.path().join("packed.stone");
    options().pack(&path, &packed, &mut |_| ControlFlow::Continue(())).unwrap();
    let store = options().open_read_only(&packed).unwrap();
    sample.assert_is(&store.recording("run").unwrap(), "packed");
    sample.assert_is(&store.recording("journal").unwrap(), "packed");
}
