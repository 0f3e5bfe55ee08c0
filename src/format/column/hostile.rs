//! Could a footer with right checksums make few stored bytes into many, or lie about a column?

use super::block::{BLOCK_ROWS_MAX, CHUNK_RAW_BYTES_MAX};
use super::chunk::{ChunkBuilder, Footer, TRAILER_LEN, trailer};
use super::chunk_reader::{Chunk, ColumnId};
use super::coding::BlockCodec;
use super::schema::{Field, Schema};
use super::value::{FieldType, Value};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};

const ROWS: i64 = 300;

/// A chunk of two constant columns, its footer changed by `lie` and signed again.
fn forged(lie: impl FnOnce(&mut Footer)) -> Vec<u8> {
    let fields = ["a", "b"].map(|name| Field::new(name, FieldType::I64).nullable());
    let mut builder = ChunkBuilder::new(Schema::new(fields.into()).unwrap());
    for at in 0..ROWS {
        builder.push(at, None, &[Value::I64(1), Value::I64(2)]).unwrap();
    }
    let mut content = builder.finish().unwrap().content;
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
    let per_column = CHUNK_RAW_BYTES_MAX / (8 * BLOCK_ROWS_MAX as u64) / 3;
    let blown_up = |blocks: u64| {
        forged(move |footer| {
            let rows = std::mem::take(&mut footer.blocks);
            for (column, first) in rows.into_iter().enumerate() {
                for number in 0..blocks {
                    let mut block = first;
                    block.column = column as u32;
                    block.first_row = number * BLOCK_ROWS_MAX as u64;
                    block.rows = BLOCK_ROWS_MAX as u32;
                    // Nothing stored: all rows are said to be missing.
                    (block.codec, block.stored_len) = (BlockCodec::Constant.tag(), 0);
                    block.raw_len = 0;
                    block.offset = footer.blocks.last().map_or(first.offset, |b| b.offset);
                    footer.blocks.push(block);
                }
            }
            footer.rows = blocks * BLOCK_ROWS_MAX as u64;
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
