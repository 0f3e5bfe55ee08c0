//! Could a chunk change a value, read too much, or believe hostile bytes?

use sealstone::format::column::{
    Array, Axis, BlockCodec, Chunk, ChunkBuilder, Column, ColumnId, Field, FieldType, Schema,
    TRAILER_LEN, Value, row_payload,
};
use sealstone::{Error, ErrorKind, Result};

/// A seeded source of test values (splitmix64).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[derive(Debug, Clone)]
enum Owned {
    Missing,
    Number(Value<'static>),
    Text(FieldType, String),
    Bytes(FieldType, Vec<u8>),
    /// As the one value of a column.
    Array(Column),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Missing => Value::Missing,
            Self::Number(v) => *v,
            Self::Text(FieldType::Json, v) => Value::Json(v),
            Self::Text(_, v) => Value::String(v),
            Self::Bytes(FieldType::Opaque, v) => Value::Opaque(v),
            Self::Bytes(_, v) => Value::Bytes(v),
            Self::Array(column) => column.get(0),
        }
    }
}

/// A number of type `ty`: of style 0 smooth in `at`, of style 1 few or any bits, else any.
fn random_number(rng: &mut Rng, ty: FieldType, style: u64, at: u64) -> Value<'static> {
    let bits = match style {
        0 => at * 1000,
        1 => 7u64.wrapping_neg(),
        _ => rng.next(),
    };
    match (ty, style) {
        (FieldType::Bool, 0) => Value::Bool(true),
        (FieldType::Bool, _) => Value::Bool(rng.below(2) == 1),
        (FieldType::F64, 0) => Value::F64((at as f64 * 0.01).sin()),
        (FieldType::F64, 1) => Value::F64(f64::from_bits(rng.next())),
        (FieldType::F64, _) => Value::F64([-0.0, f64::INFINITY, 1e-310][rng.below(3) as usize]),
        (FieldType::F32, 0) => Value::F32((at as f32 * 0.01).sin()),
        (FieldType::F32, 1) => Value::F32(f32::from_bits(rng.next() as u32)),
        (FieldType::F32, _) => Value::F32([-0.0, f32::INFINITY, 1e-40][rng.below(3) as usize]),
        (FieldType::I8, _) => Value::I8(bits as i8),
        (FieldType::I16, _) => Value::I16(bits as i16),
        (FieldType::I32, _) => Value::I32(bits as i32),
        (FieldType::I64, _) => Value::I64(bits as i64),
        (FieldType::U8, _) => Value::U8(bits as u8),
        (FieldType::U16, _) => Value::U16(bits as u16),
        (FieldType::U32, _) => Value::U32(bits as u32),
        (FieldType::U64, _) => Value::U64(bits),
        (ty, _) => panic!("{ty:?} is no number"),
    }
}

fn random_array(rng: &mut Rng, field: &Field, style: u64, at: u64) -> Column {
    let axes: Vec<usize> = field
        .shape
        .axes()
        .iter()
        .map(|axis| match axis {
            Axis::Fixed(len) => *len as usize,
            Axis::Free => rng.below(4) as usize,
        })
        .collect();
    let count: usize = axes.iter().product();
    macro_rules! of {
        ($($variant:ident)*) => {
            match field.ty {
                $(FieldType::$variant => {
                    let elements: Vec<_> = (0..count as u64).map(|n| {
                        match random_number(rng, field.ty, style, at + 100 * n) {
                            Value::$variant(v) => v,
                            other => panic!("{other:?}"),
                        }
                    }).collect();
                    let mut column = Column::of(field);
                    assert!(column.push(Array::new(&axes, &elements).into()));
                    column
                })*
                ty => panic!("no arrays of {ty:?}"),
            }
        };
    }
    of!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F32 F64)
}

fn random_value(rng: &mut Rng, field: &Field, style: u64, at: u64) -> Owned {
    match (field.ty, style) {
        _ if !field.shape.is_scalar() => Owned::Array(random_array(rng, field, style, at)),
        (ty, _) if ty.is_number() => Owned::Number(random_number(rng, ty, style, at)),
        (ty @ (FieldType::Bytes | FieldType::Opaque), _) => {
            Owned::Bytes(ty, (0..rng.below(20)).map(|_| rng.next() as u8).collect())
        }
        (ty, 0) => Owned::Text(ty, "same".into()),
        (ty, _) => Owned::Text(ty, "é".repeat(rng.below(9) as usize)),
    }
}

fn random_field(rng: &mut Rng, number: u64) -> Field {
    let ty = FieldType::ALL[rng.below(FieldType::ALL.len() as u64) as usize];
    let field = match ty {
        FieldType::Opaque => Field::opaque::<Vec<u8>>(format!("f{number}")).unwrap(),
        ty => Field::new(format!("f{number}"), ty),
    };
    match rng.below(8) {
        _ if !ty.is_number() => field,
        0 => field.array([3]),
        1 => field.array([2, 5]),
        2 => field.ragged(1),
        3 => field.axes([Axis::Free, Axis::Fixed(3), Axis::Free]),
        _ => field,
    }
}

struct Sample {
    schema: Schema,
    iterations: Vec<i64>,
    times: Vec<Option<f64>>,
    records: Vec<Vec<Owned>>,
}

fn sample(seed: u64, records: u64) -> Sample {
    let mut rng = Rng(seed);
    let mut fields = Vec::new();
    let mut styles = Vec::new();
    for number in 0..1 + rng.below(9) {
        let field = random_field(&mut rng, number);
        let missing = [0, 0, 1, 3, 4][rng.below(5) as usize];
        fields.push(if missing > 0 { field.nullable() } else { field });
        styles.push((fields[number as usize].clone(), rng.below(3), missing));
    }
    let mut iteration = rng.next() as i64 / 2;
    let schema = Schema::new(fields).unwrap();
    let schema = if seed % 2 == 1 { schema.timed() } else { schema };
    let mut sample = Sample { schema, iterations: vec![], times: vec![], records: vec![] };
    for at in 0..records {
        let row = styles.iter().map(|(field, style, missing)| {
            if rng.below(4) < *missing {
                Owned::Missing
            } else {
                random_value(&mut rng, field, *style, at)
            }
        });
        sample.records.push(row.collect());
        sample.iterations.push(iteration);
        // Some records share their time.
        sample.times.push(sample.schema.is_timed().then_some((at / 3) as f64 * 0.25 - 1.0));
        iteration += 1 + rng.below(3) as i64;
    }
    sample
}

fn encode(sample: &Sample) -> Vec<u8> {
    let mut builder = ChunkBuilder::new(sample.schema.clone());
    let moments = sample.iterations.iter().zip(&sample.times);
    for ((iteration, time), row) in moments.zip(&sample.records) {
        let values: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
        builder.push(*iteration, *time, &values).unwrap();
    }
    builder.finish().unwrap().content
}

fn open(content: &[u8]) -> Result<Chunk> {
    Chunk::open("a chunk", content.len() as u64, &mut reader(content))
}

fn reader(content: &[u8]) -> impl FnMut(u64, u64) -> Result<Vec<u8>> + '_ {
    move |offset, len| {
        let range = offset as usize..(offset + len) as usize;
        let bytes = content.get(range);
        bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::damage("read", "test", "out of range"))
    }
}

/// Does every value come back bit for bit, over any records, from bytes that are a function of the
/// records alone?
#[test]
fn no_value_changes_by_being_encoded() {
    for seed in 0..150 {
        println!("seed {seed}");
        let sample = sample(seed, 1 + seed * 7);
        let content = encode(&sample);
        assert_eq!(content, encode(&sample), "the same records gave other bytes");
        let chunk = open(&content).unwrap();
        assert_eq!(chunk.schema(), &sample.schema);
        let records = sample.records.len() as u64;
        let mut rng = Rng(seed);
        let from = rng.below(records);
        for range in [0..records, from..records, 0..from, from..from + 1] {
            let at = range.start as usize..range.end as usize;
            let iterations =
                chunk.column(&mut reader(&content), ColumnId::Iteration, range.clone()).unwrap();
            assert_eq!(iterations.as_i64().unwrap(), &sample.iterations[at.clone()]);
            let times = chunk.column(&mut reader(&content), ColumnId::Time, range.clone());
            match sample.schema.is_timed() {
                true => assert!(
                    times
                        .unwrap()
                        .iter()
                        .eq(sample.times[at.clone()].iter().map(|t| Value::from(*t)))
                ),
                false => assert_eq!(times.unwrap_err().kind(), ErrorKind::Invalid),
            }
            for field in 0..sample.schema.fields().len() {
                let id = ColumnId::Field(field);
                let column = chunk.column(&mut reader(&content), id, range.clone()).unwrap();
                assert_eq!(column.len(), at.len());
                for (value, row) in column.iter().zip(&sample.records[at.clone()]) {
                    assert!(value.same(&row[field].value()), "{value:?} for {row:?}");
                }
            }
        }
        let wanted = sample.iterations[from as usize]..sample.iterations[records as usize - 1];
        let found = chunk.records_of(&mut reader(&content), wanted).unwrap();
        assert_eq!(found, from..(records - 1).max(from));
        if let Some(time) = sample.times[from as usize] {
            let first = sample.times.iter().position(|t| *t >= Some(time)).unwrap() as u64;
            let last = sample.times[records as usize - 1].unwrap();
            let end = sample.times.iter().position(|t| *t >= Some(last)).unwrap() as u64;
            let found = chunk.records_between_times(&mut reader(&content), time..last).unwrap();
            assert_eq!(found, first..end.max(first));
            assert_eq!(chunk.times(), Some((sample.times[0].unwrap(), last)));
        }
    }
}

/// Is every flipped byte noticed, and every truncation, without a panic?
#[test]
fn g12_a_flipped_byte_is_the_same_value_or_an_error() {
    let sample = sample(11, 40);
    let content = encode(&sample);
    let records = sample.records.len() as u64;
    let all = |content: &[u8]| -> Result<Vec<Column>> {
        let chunk = open(content)?;
        (0..chunk.schema().fields().len())
            .map(|at| chunk.column(&mut reader(content), ColumnId::Field(at), 0..records))
            .collect()
    };
    let whole = all(&content).unwrap();
    let mut refused = 0;
    for at in 0..content.len() {
        for bit in [0x01, 0x80, 0xff] {
            let mut bytes = content.clone();
            bytes[at] ^= bit;
            match all(&bytes) {
                Ok(columns) => assert!(
                    columns.iter().zip(&whole).all(|(a, b)| {
                        a.iter().zip(b.iter()).all(|(a, b)| a.same(&b)) && a.len() == b.len()
                    }),
                    "byte {at} changed a value"
                ),
                Err(e) => {
                    refused += 1;
                    assert!(matches!(e.kind(), ErrorKind::Damage | ErrorKind::NewerFormat), "{e}");
                }
            }
        }
        assert!(open(&content[..at]).is_err());
    }
    assert!(refused > 2 * content.len());
}

/// Does a hostile footer with right checksums get past the bounds?
#[test]
fn g22_a_hostile_footer_with_right_checksums_is_refused() {
    let sample = sample(3, 500);
    let content = encode(&sample);
    let trailer = content.len() - TRAILER_LEN;
    let len = u32::from_le_bytes(content[trailer..trailer + 4].try_into().unwrap()) as usize;
    let mut opened = 0;
    for at in trailer - len..trailer {
        for bit in [0x01, 0x40, 0xff] {
            let mut bytes = content.clone();
            bytes[at] ^= bit;
            let crc = sealstone::digest::checksum(&bytes[trailer - len..trailer]).to_le_bytes();
            bytes[trailer + 4..trailer + 8].copy_from_slice(&crc);
            let crc = sealstone::digest::checksum(&bytes[trailer..trailer + 12]).to_le_bytes();
            bytes[trailer + 12..trailer + 16].copy_from_slice(&crc);
            let Ok(chunk) = open(&bytes) else { continue };
            opened += 1;
            for field in 0..chunk.schema().fields().len() {
                let _ = chunk.column(&mut reader(&bytes), ColumnId::Field(field), 0..u64::MAX);
            }
            let _ = chunk.records_of(&mut reader(&bytes), i64::MIN..i64::MAX);
        }
    }
    println!("{opened} of {} hostile footers opened", 3 * len);
    assert!(opened > 100, "only {opened} hostile footers got as far as decoding");
}

/// Does reading few records of one field read few bytes?
#[test]
fn few_records_of_one_field_read_few_bytes() {
    let fields = (0..20).map(|n| Field::new(format!("f{n}"), FieldType::F64)).collect();
    let mut builder = ChunkBuilder::new(Schema::new(fields).unwrap());
    let mut rng = Rng(5);
    for at in 0..300_000 {
        let row: Vec<f64> = (0..20).map(|_| f64::from_bits(rng.next())).collect();
        let values: Vec<Value<'_>> = row.iter().map(|v| Value::F64(*v)).collect();
        builder.push(at, None, &values).unwrap();
    }
    let content = builder.finish().unwrap().content;
    let mut bytes = 0;
    let mut inner = reader(&content);
    let mut counted = |offset, len| {
        bytes += len;
        inner(offset, len)
    };
    let chunk = Chunk::open("a chunk", content.len() as u64, &mut counted).unwrap();
    let column = chunk.column(&mut counted, ColumnId::Field(7), 140_000..141_000).unwrap();
    assert_eq!(column.len(), 1000);
    println!("{bytes} of {} bytes read", content.len());
    // The footer, and the blocks of 64 KiB over 1,000 numbers: nothing gains here.
    assert!(bytes < 200_000, "{bytes} bytes read");
    assert!(chunk.blocks(ColumnId::Field(7)).iter().all(|block| block.stored_len <= 64 << 10));
}

/// Is what is stored raw read record by record, what is compressed kept in large blocks, and what lies
/// together read at once?
#[test]
fn rec44_raw_blocks_are_small_and_read_together() {
    let fields = vec![Field::new("hard", FieldType::Bytes), Field::new("easy", FieldType::Bytes)];
    let mut builder = ChunkBuilder::new(Schema::new(fields).unwrap());
    let mut rng = Rng(9);
    let mut hard = Vec::new();
    for at in 0..2000i64 {
        hard.push((0..1024).map(|_| rng.next() as u8).collect::<Vec<u8>>());
        let easy = [at as u8; 512];
        builder
            .push(5 + at, None, &[Value::Bytes(&hard[at as usize]), Value::Bytes(&easy)])
            .unwrap();
    }
    let content = builder.finish().unwrap().content;
    let chunk = open(&content).unwrap();
    assert_eq!(chunk.blocks(ColumnId::Field(1)).len(), 1);
    let blocks = chunk.blocks(ColumnId::Field(0));
    assert!(blocks.iter().all(|block| block.codec == BlockCodec::Raw && block.raw_len <= 16 << 10));

    let mut reads = Vec::new();
    let mut inner = reader(&content);
    let mut counted = |offset, len| {
        reads.push(len);
        inner(offset, len)
    };
    // Iterations without a gap are not looked up.
    assert_eq!(chunk.records_of(&mut counted, 905..906).unwrap(), 900..901);
    let one = chunk.column(&mut counted, ColumnId::Field(0), 900..901).unwrap();
    assert_eq!(one.get(0), Value::Bytes(&hard[900]));
    let all = chunk.column(&mut counted, ColumnId::Field(0), 0..2000).unwrap();
    assert!(all.iter().zip(&hard).all(|(value, given)| value == Value::Bytes(given)));
    assert!(reads[0] <= 16 << 10, "{reads:?}");
    assert!(reads.len() <= 4, "{reads:?}");
}

/// Does each codec, when it is asked for, store what it applies to and leave the rest raw, and does
/// everything come back?
#[test]
fn rec49_one_codec_can_be_asked_for() {
    for codec in BlockCodec::ALL {
        for is_across in [false, true] {
            let sample = sample(7, 300);
            let builder = ChunkBuilder::new(sample.schema.clone());
            let mut builder = match is_across {
                true => builder.with_codec_across(codec),
                false => builder.with_codec(codec),
            };
            let mut encoded = Vec::new();
            for _ in 0..2 {
                for (at, row) in sample.records.iter().enumerate() {
                    let values: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
                    builder.push(sample.iterations[at], sample.times[at], &values).unwrap();
                }
                encoded.push(builder.finish().unwrap().content);
            }
            assert_eq!(encoded[0], encoded[1], "the codec stays, and the bytes");
            let chunk = open(&encoded[0]).unwrap();
            for (number, _) in sample.schema.fields().iter().enumerate() {
                let id = ColumnId::Field(number);
                let column = chunk.column(&mut reader(&encoded[0]), id, 0..300).unwrap();
                for (value, row) in column.iter().zip(&sample.records) {
                    assert!(value.same(&row[number].value()), "{codec:?} {number}");
                }
                for block in chunk.blocks(id) {
                    let is_empty = block.missing == block.records.end - block.records.start;
                    let is_asked = block.codec == codec && block.is_transposed == is_across;
                    let is_raw = block.codec == BlockCodec::Raw && !block.is_transposed;
                    assert!(is_asked || is_raw || is_empty, "{codec:?}: {block:?}");
                }
            }
        }
    }
    let stored = |codec| {
        let field = Field::new("x", FieldType::F64).array([3]);
        let mut builder =
            ChunkBuilder::new(Schema::new(vec![field]).unwrap()).with_codec_across(codec);
        for at in 0..100i64 {
            let elements = [at as f64, 2.0 * at as f64, -at as f64];
            builder.push(at, None, &[Array::new(&[3], &elements).into()]).unwrap();
        }
        let content = builder.finish().unwrap().content;
        let block = open(&content).unwrap().blocks(ColumnId::Field(0))[0].clone();
        (block.codec, block.is_transposed)
    };
    use BlockCodec::{Constant, Delta1, Delta2, Delta3, Pco, Raw, ShuffleZstd, Zstd};
    for codec in [Zstd, ShuffleZstd, Delta1, Delta2, Delta3, Pco] {
        assert_eq!(stored(codec), (codec, true));
    }
    assert_eq!((stored(Raw), stored(Constant)), ((Raw, false), (Raw, false)));
}

/// Is each codec chosen where it suits, and does each win something?
#[test]
fn each_codec_is_chosen_somewhere() {
    let block_of = |field: Field, value: &dyn Fn(u64) -> Owned| {
        let mut builder = ChunkBuilder::new(Schema::new(vec![field.nullable()]).unwrap());
        for at in 0..5000u64 {
            builder.push(at as i64, None, &[value(at).value()]).unwrap();
        }
        let content = builder.finish().unwrap().content;
        let block = open(&content).unwrap().blocks(ColumnId::Field(0))[0].clone();
        println!("{:?}: {} bytes as {}", block.codec, block.raw_len, block.stored_len);
        assert!(block.stored_len <= block.raw_len);
        block
    };
    let codec_of = |ty, value: &dyn Fn(u64) -> Owned| block_of(Field::new("x", ty), value).codec;
    let number = |value: Value<'static>| Owned::Number(value);
    let noise = |at| Rng(at).next();
    use BlockCodec::{Constant, Delta1, Delta2, Delta3, Pco, Raw, ShuffleZstd, Zstd};
    use FieldType::{Bool, F32, F64, I64, String as Text, U8, U16};
    assert_eq!(codec_of(I64, &|_| number(3i64.into())), Constant);
    assert_eq!(codec_of(I64, &|_| Owned::Missing), Constant);
    assert_eq!(codec_of(Text, &|_| Owned::Text(Text, "EWR".into())), Constant);
    assert_eq!(codec_of(I64, &|at| number((noise(at) as i64).into())), Raw);
    assert_eq!(codec_of(U16, &|at| number((noise(at) as u16).into())), Raw);
    assert_eq!(codec_of(Bool, &|at| number((at % 10 == 0).into())), Zstd);
    let lengths = |at| Owned::Text(Text, "ab".repeat((noise(at) % 40) as usize));
    assert!(matches!(codec_of(Text, &lengths), Zstd | ShuffleZstd));
    // Few bits of many: bins fit better than bytes.
    assert_eq!(codec_of(I64, &|at| number(((noise(at) % 1000) as i64).into())), Pco);
    assert_eq!(codec_of(U16, &|at| number(((noise(at) % 700) as u16).into())), Pco);
    let mut place = 0i64;
    let mut steps = Vec::new();
    for at in 0..5000 {
        place += (noise(at) % 200) as i64 - 100;
        steps.push(place * 1000);
    }
    let walk = |at: u64| number(steps[at as usize].into());
    assert!(matches!(codec_of(I64, &walk), Delta1 | Pco));
    let small = |at: u64| number(((steps[at as usize] / 8000) as u8).into());
    assert!(matches!(codec_of(U8, &small), Delta1 | Delta2 | Zstd));
    let curve = |at: u64| number(((at * at * 50) as i64 + (noise(at) % 8) as i64).into());
    assert!(matches!(codec_of(I64, &curve), Delta2 | Delta3 | Pco));
    for (ty, value) in [
        (F64, &(|at: u64| number((1e6 + at as f64 * 0.25).into())) as &dyn Fn(u64) -> Owned),
        (F32, &|at: u64| number((1e3 + at as f32 * 0.25).into())),
    ] {
        let codec = codec_of(ty, value);
        assert!(codec.tag() >= Delta1.tag(), "{codec:?}");
    }
    // Each element goes its own way: smooth from record to record, and not within one.
    let own_ways = |at: u64| {
        let way = |n: u64| (noise(n) % 1000) as f32 * 1e3 + at as f32 * (n as f32 + 1.0) * 0.125;
        let elements: Vec<f32> = (0..16).map(way).collect();
        let mut column = Column::of(&Field::new("x", F32).array([4, 4]));
        assert!(column.push(Array::new(&[4, 4], &elements).into()));
        Owned::Array(column)
    };
    let block = block_of(Field::new("x", F32).array([4, 4]), &own_ways);
    assert!(block.is_transposed && block.stored_len * 4 < block.raw_len, "{block:?}");
}

/// Does the footer say of each block what is in it: least, greatest, NaN, missing, and when?
#[test]
fn the_footer_knows_what_is_in_a_block() {
    let fields = vec![
        Field::new("i8", FieldType::I8).nullable(),
        Field::new("u64", FieldType::U64),
        Field::new("f32", FieldType::F32).ragged(1).nullable(),
    ];
    let mut builder = ChunkBuilder::new(Schema::new(fields).unwrap().timed());
    let arrays: [&[f32]; 3] = [&[1.0, f32::NAN, -0.0], &[], &[0.0, f32::NAN, -2.5]];
    for (at, array) in arrays.into_iter().enumerate() {
        let small = if at == 1 { Value::Missing } else { Value::I8(at as i8 - 5) };
        let values = [small, Value::U64(u64::MAX - at as u64), array.into()];
        builder.push(at as i64 * 10, Some(at as f64 * 0.5), &values).unwrap();
    }
    builder.push(40, Some(1.0), &[Value::I8(7), Value::U64(1), Value::Missing]).unwrap();
    let chunk = builder.finish().unwrap();
    assert_eq!(chunk.times, Some((0.0, 1.0)));
    let read = open(&chunk.content).unwrap();
    let block = |field| read.blocks(ColumnId::Field(field))[0].clone();
    assert_eq!(block(0).bounds, Some(((-5i64) as u64, 7)));
    assert_eq!((block(0).missing, block(0).nan), (1, 0));
    assert_eq!(block(1).bounds, Some((1, u64::MAX)));
    let (least, greatest) = block(2).bounds.unwrap();
    assert_eq!((f32::from_bits(least as u32), f32::from_bits(greatest as u32)), (-2.5, 1.0));
    assert_eq!((block(2).missing, block(2).nan), (1, 2));
    assert_eq!((block(2).iterations, block(2).times), ((0, 40), Some((0.0, 1.0))));
}

/// Does one huge value, easy or hard to compress, survive alone and among small ones?
#[test]
fn rec24_a_huge_value_sits_in_a_block_of_its_own() {
    let schema = Schema::new(vec![Field::new("x", FieldType::Bytes)]).unwrap();
    let mut rng = Rng(1);
    let hard: Vec<u8> = (0..3 << 20).map(|_| rng.next() as u8).collect();
    let easy = vec![7; 5 << 20];
    let mut builder = ChunkBuilder::new(schema);
    let values = [b"a".as_slice(), &hard, b"b", &easy, b"", &easy[..1 << 20]];
    for (at, value) in values.iter().enumerate() {
        builder.push(at as i64, None, &[Value::Bytes(value)]).unwrap();
    }
    let content = builder.finish().unwrap().content;
    let chunk = open(&content).unwrap();
    let column = chunk.column(&mut reader(&content), ColumnId::Field(0), 0..6).unwrap();
    for (value, expected) in column.iter().zip(values) {
        assert_eq!(value, Value::Bytes(expected));
    }
}

/// Does a record in the journal come back whole, and is every other byte string refused?
#[test]
fn no_record_changes_in_the_journal() {
    for seed in 0..60 {
        println!("seed {seed}");
        let sample = sample(seed, 5);
        let moments = sample.iterations.iter().zip(&sample.times);
        for ((iteration, time), row) in moments.zip(&sample.records) {
            let mut values = Vec::new();
            let given: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
            let bytes = row_payload::encode(&sample.schema, *iteration, *time, &given);
            assert_eq!(bytes.len() as u64, row_payload::encoded_len(&sample.schema, &given));
            assert_eq!(
                row_payload::decode(&sample.schema, &bytes, &mut values).unwrap(),
                (*iteration, *time)
            );
            assert!(values.iter().zip(&given).all(|(a, b)| a.same(b)));
            for cut in 0..bytes.len() {
                let short = row_payload::decode(&sample.schema, &bytes[..cut], &mut Vec::new());
                assert_eq!(short.unwrap_err().kind(), ErrorKind::Damage);
            }
            let mut long = bytes.clone();
            long.push(0);
            assert!(row_payload::decode(&sample.schema, &long, &mut Vec::new()).is_err());
        }
    }
}

/// Are iterations that do not grow, and records of another shape, refused with nothing added?
#[test]
fn rec15_a_lower_iteration_is_refused_with_both_numbers() {
    let schema = Schema::new(vec![Field::new("x", FieldType::I64)]).unwrap();
    let mut builder = ChunkBuilder::new(schema);
    builder.push(5, None, &[Value::I64(1)]).unwrap();
    let error = builder.push(5, None, &[Value::I64(1)]).unwrap_err();
    assert_eq!(error.to_string(), "append record: iteration 5 does not follow 5");
    assert!(builder.push(6, None, &[Value::Missing]).is_err());
    assert_eq!(builder.record_count(), 1);
    builder.push(6, None, &[Value::I64(2)]).unwrap();
    assert_eq!(builder.finish().unwrap().records, 2);
    assert!(builder.finish().is_err());
}

/// P9: are bytes that are no record, or no chunk, an error and nothing worse, whatever the schema, and
/// does every record come back?
#[test]
fn g22_any_bytes_of_any_schema_decode_or_are_refused() {
    use proptest::prelude::*;
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) };
    let hostile = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let noise = proptest::collection::vec(any::<u8>(), 0..300);
    proptest!(config, |(seed in any::<u64>(), hostile in hostile, noise in noise)| {
        let sample = sample(seed, 6);
        let moments = sample.iterations.iter().zip(&sample.times);
        for ((iteration, time), row) in moments.zip(&sample.records) {
            let row: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
            let bytes = row_payload::encode(&sample.schema, *iteration, *time, &row);
            let mut values = Vec::new();
            let decoded = row_payload::decode(&sample.schema, &bytes, &mut values).unwrap();
            prop_assert_eq!(decoded, (*iteration, *time));
            prop_assert!(values.iter().zip(&row).all(|(a, b)| a.same(b)));
            let mut wrong = bytes.clone();
            for (at, byte) in &hostile {
                *at.get_mut(&mut wrong) = *byte;
            }
            for bytes in [&wrong[..], &noise, &bytes[..hostile[0].0.index(bytes.len())]] {
                let mut values = Vec::new();
                if row_payload::decode(&sample.schema, bytes, &mut values).is_ok() {
                    // What decodes is a record of the schema.
                    prop_assert!(sample.schema.check_row(&values).is_ok());
                }
            }
        }
        let content = encode(&sample);
        let mut wrong = content.clone();
        for (at, byte) in &hostile {
            *at.get_mut(&mut wrong) = *byte;
        }
        for bytes in [&wrong[..], &noise] {
            let Ok(chunk) = open(bytes) else { continue };
            for field in 0..chunk.schema().fields().len() {
                let records = 0..chunk.record_count();
                if let Ok(column) = chunk.column(&mut reader(bytes), ColumnId::Field(field), records) {
                    prop_assert_eq!(column.len() as u64, chunk.record_count());
                }
            }
        }
    });
}
