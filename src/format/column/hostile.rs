//! Could a footer with right checksums make few stored bytes into many, or lie about a column?

use super::array::Array;
use super::block::{BLOCK_RECORDS_MAX, CHUNK_RAW_BYTES_MAX};
use super::chunk::{ChunkBuilder, Footer, TRAILER_LEN, trailer};
use super::chunk_reader::{Chunk, ColumnId};
use super::coding::BlockCodec;
use super::schema::{Field, Schema};
use super::value::{FieldType, Value};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};

const RECORDS: i64 = 300;

/// A chunk of two constant columns, its footer changed by `lie` and signed again.
fn forged(lie: impl FnOnce(&mut Footer)) -> Vec<u8> {
    let fields = ["a", "b"].map(|name| Field::new(name, FieldType::I64).nullable());
    let mut builder = ChunkBuilder::new(Schema::new(fields.into()).unwrap());
    for at in 0..RECORDS {
        builder.push(at, None, &[Value::I64(1), Value::I64(2)]).unwrap();
    }
    reforged(builder.finish().unwrap().content, lie)
}

fn reforged(mut content: Vec<u8>, lie: impl FnOnce(&mut Footer)) -> Vec<u8> {
    let end = content.len() - TRAILER_LEN;
    let len = u32::from_le_bytes(*content[end..].first_chunk().unwrap()) as usize;
    let mut footer: Footer = codec::decode("chunk footer", &content[end - len..end]).unwrap();
    lie(&mut footer);
    content.truncate(end - len);
    let footer = codec::encode("chunk footer", &footer).unwrap();
    content.extend_from_slice(&footer);
    content.extend_from_slice(&trailer(&footer));
    content
}

fn read(content: &[u8], offset: u64, len: u64) -> Result<Vec<u8>> {
    let bytes = content.get(offset as usize..(offset + len) as usize);
    bytes.map(<[u8]>::to_vec).ok_or_else(|| Error::damage("read", "test", "out of range"))
}

fn open(content: &[u8]) -> Result<Chunk> {
    Chunk::open("a chunk", content.len() as u64, &mut |offset, len| read(content, offset, len))
}

#[track_caller]
fn assert_damage<T: std::fmt::Debug>(result: Result<T>, word: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damage, "{error}");
    assert!(error.chain().contains(word), "{}", error.chain());
}

/// Can many block rows share the same stored bytes?
#[test]
fn g22_no_two_blocks_share_bytes() {
    open(&forged(|_| {})).unwrap();
    let shared = forged(|footer| footer.blocks[2].offset = footer.blocks[1].offset);
    assert_damage(open(&shared), "does not follow");
    let overlapping = forged(|footer| footer.blocks[2].offset -= 1);
    assert_damage(open(&overlapping), "does not follow");
}

/// Can a chunk of few bytes decode to more than the bound?
#[test]
fn g22_a_chunk_decodes_to_no_more_than_the_bound() {
    let per_column = CHUNK_RAW_BYTES_MAX / (8 * BLOCK_RECORDS_MAX as u64) / 3;
    let blown_up = |blocks: u64| {
        forged(move |footer| {
            let records = std::mem::take(&mut footer.blocks);
            for (column, first) in records.into_iter().enumerate() {
                for number in 0..blocks {
                    let mut block = first;
                    block.column = column as u32;
                    block.first_record = number * BLOCK_RECORDS_MAX as u64;
                    block.records = BLOCK_RECORDS_MAX as u32;
                    // Nothing stored: all records are said to be missing.
                    (block.codec, block.stored_len) = (BlockCodec::Constant.tag(), 0);
                    block.raw_len = 0;
                    block.offset = footer.blocks.last().map_or(first.offset, |b| b.offset);
                    footer.blocks.push(block);
                }
            }
            footer.records = blocks * BLOCK_RECORDS_MAX as u64;
        })
    };
    let most = blown_up(per_column);
    open(&most).unwrap();
    let more = blown_up(per_column + 1);
    println!("{} bytes would become more than {CHUNK_RAW_BYTES_MAX}", more.len());
    assert_damage(open(&more), "longer than");
}

/// Is a block whose raw length is a lie refused before it is decoded?
#[test]
fn g22_a_constant_cannot_lie_about_its_length() {
    let lying = forged(|footer| footer.blocks[1].raw_len = 8);
    let chunk = open(&lying).unwrap();
    let column = chunk.column(&mut |o, n| read(&lying, o, n), ColumnId::Field(0), 0..9);
    assert_damage(column, "raw bytes");
}

/// Are iterations that are said to be missing damage, or an empty answer?
#[test]
fn g12_missing_iterations_are_damage() {
    let lying = forged(|footer| footer.blocks[0].missing = 7);
    assert_damage(open(&lying), "without an iteration");
}

/// Do bits of arrays, which are bytes in memory, become more than the bound, and does all that is
/// written come back?
#[test]
fn g22_bits_of_arrays_are_counted_as_what_they_become() {
    let field = Field::new("bits", FieldType::Bool).ragged(1).nullable();
    let schema = Schema::new(vec![field]).unwrap();
    fn noise(n: usize) -> bool {
        (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 1
    }
    // Longer than a block, a block, short, none; noise, and all the same.
    for (lens, bits) in [
        (vec![3 << 20, 1 << 20, 7, 0], noise as fn(usize) -> bool),
        (vec![3 << 20, 1 << 20, 7, 0], |_| true),
        (vec![1; 3000], noise),
    ] {
        let mut builder = ChunkBuilder::new(schema.clone());
        let records: Vec<Vec<bool>> =
            lens.iter().map(|len| (0..*len).map(bits).collect()).collect();
        for (at, row) in records.iter().enumerate() {
            builder.push(2 * at as i64, None, &[Array::from(&row[..]).into()]).unwrap();
            builder.push(2 * at as i64 + 1, None, &[Value::Missing]).unwrap();
        }
        let content = builder.finish().unwrap().content;
        let chunk = open(&content).unwrap();
        let all = 0..2 * records.len() as u64;
        let column = chunk.column(&mut |o, n| read(&content, o, n), ColumnId::Field(0), all);
        let column = column.unwrap();
        for (at, row) in records.iter().enumerate() {
            assert!(column.get(2 * at).same(&Array::from(&row[..]).into()), "{at}");
            assert!(column.get(2 * at + 1).is_missing());
        }
    }
    // A lone value of 2^28 bits takes an eighth of its bytes: five of them are more than a chunk holds.
    let mut builder = ChunkBuilder::new(schema);
    for at in 0..5 {
        builder.push(at, None, &[Array::from(&[true, false][..]).into()]).unwrap();
    }
    let content = builder.finish().unwrap().content;
    let lying = reforged(content, |footer| {
        let mut block = footer.blocks[1];
        block.records = 1;
        (block.raw_len, block.stored_len) = (4 + (1 << 25), 0);
        footer.blocks.truncate(1);
        for at in 0..5 {
            block.first_record = at;
            footer.blocks.push(block);
        }
    });
    assert_damage(open(&lying), "longer than");
}
