//! Does every codec give back what it was given, of every type, every shape and every pattern of
//! missing values, and take any other bytes for an error or a value?

use super::array::Array;
use super::axes::{Axis, Shape};
use super::block::{bits, stored};
use super::block_decode::{Said, decode};
use super::coding::{BlockCodec, Coding, suits};
use super::compress::Compressor;
use super::plain::fill;
use super::schema::Field;
use super::value::{FieldType, Value};
use super::values::Column;
use crate::error::ErrorKind;

const RECORDS: usize = 70;

/// A number of type `ty`: smooth in `at`, or of any bits.
fn number(ty: FieldType, at: u64, is_smooth: bool) -> Value<'static> {
    let any =
        at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    if is_smooth {
        match ty {
            FieldType::F64 => return Value::F64(1000.0 + (at as f64) * 0.01),
            FieldType::F32 => return Value::F32(1000.0 + (at as f32) * 0.25),
            _ => {}
        }
    }
    let bits = if is_smooth { 1000 + at } else { any };
    let value = ty.of_le_bytes(&bits.to_le_bytes()[..ty.width()]);
    if value.is_missing() { Value::Bool(bits % 3 == 0) } else { value }
}

fn array(column: &mut Column, axes: &[usize], first: u64, is_smooth: bool) {
    macro_rules! of {
        ($($variant:ident)*) => {
            match column.ty {
                $(FieldType::$variant => {
                    let count = axes.iter().product::<usize>() as u64;
                    let elements: Vec<_> = (0..count).map(|n| {
                        match number(column.ty, first + 1000 * n, is_smooth) {
                            Value::$variant(v) => v,
                            other => panic!("{other:?}"),
                        }
                    }).collect();
                    assert!(column.push(Array::new(axes, &elements).into()));
                })*
                other => panic!("no arrays of {other:?}"),
            }
        };
    }
    of!(Bool I8 I16 I32 I64 U8 U16 U32 U64 F32 F64);
}

fn column(ty: FieldType, shape: &Shape, is_missing: fn(usize) -> bool, is_smooth: bool) -> Column {
    let mut column = Column::of(&Field::new("x", ty).axes(shape.axes().iter().copied()));
    for at in 0..RECORDS {
        let text = "é".repeat(at % 5);
        let value = match ty {
            _ if is_missing(at) => Value::Missing,
            FieldType::String => Value::String(&text),
            FieldType::Json => Value::Json(&text),
            FieldType::Bytes => Value::Bytes(text.as_bytes()),
            FieldType::Opaque => Value::Opaque(text.as_bytes()),
            ty if shape.is_scalar() => number(ty, at as u64, is_smooth),
            _ => {
                let len = |axis: &Axis| match axis {
                    Axis::Fixed(len) => *len as usize,
                    Axis::Free => at % 4,
                };
                let axes: Vec<usize> = shape.axes().iter().map(len).collect();
                array(&mut column, &axes, at as u64, is_smooth);
                continue;
            }
        };
        assert!(column.push(value));
    }
    column
}

/// Calls `look` with each column and each coding that suits it.
fn each(mut look: impl FnMut(&Column, Coding, Said<'_>, Vec<u8>)) {
    let shapes = [
        Shape::default(),
        Shape::new([Axis::Fixed(3)]),
        Shape::new([Axis::Free]),
        Shape::new([Axis::Fixed(2), Axis::Free, Axis::Fixed(1)]),
    ];
    let missing: [fn(usize) -> bool; 5] =
        [|_| false, |at| at < 3, |at| at == RECORDS - 1, |at| at % 2 == 0, |at| at != 40];
    let mut zstd = Compressor::new().unwrap();
    for &ty in FieldType::ALL {
        for shape in shapes.iter().filter(|shape| shape.is_scalar() || ty.is_number()) {
            for (is_missing, is_smooth) in missing.iter().flat_map(|m| [(*m, true), (*m, false)]) {
                let column = column(ty, shape, is_missing, is_smooth);
                let missing = column.missing_count();
                let plain = fill(&column, 0..RECORDS);
                let presence = if missing == 0 { Vec::new() } else { bits(0..RECORDS, &column) };
                let raw_len = presence.len() + plain.raw_len();
                for codec in BlockCodec::ALL.into_iter().filter(|c| *c != BlockCodec::Constant) {
                    for is_transposed in [false, true] {
                        let coding = Coding { codec, is_transposed };
                        if !suits(coding, ty, shape) {
                            continue;
                        }
                        let turned = plain.transposed();
                        let plain = if is_transposed { &turned } else { &plain };
                        let bytes = stored(plain, codec, &presence, &mut zstd).unwrap();
                        let Some(bytes) = bytes else {
                            assert_eq!(codec, BlockCodec::Pco);
                            assert!(column.missing_count() == RECORDS - 1, "no number at all");
                            continue;
                        };
                        let said = Said { ty, shape, coding, records: RECORDS, missing, raw_len };
                        look(&column, coding, said, bytes);
                    }
                }
            }
        }
    }
}

/// Does each column come back from each codec, bit for bit?
#[test]
fn rec49_every_codec_gives_back_what_it_was_given() {
    let mut tried = std::collections::BTreeMap::new();
    each(|column, coding, said, bytes| {
        let back = decode(said, &bytes).unwrap();
        assert_eq!(back.len(), RECORDS);
        for at in 0..RECORDS {
            let (given, back) = (column.get(at), back.get(at));
            assert!(given.same(&back), "{coding:?}: {given:?} became {back:?}");
        }
        *tried.entry(coding.tag()).or_insert(0) += 1;
    });
    println!("{tried:?}");
    // Seven codecs, and those of numbers across records as well.
    assert_eq!(tried.len(), 7 + 6);
}

/// Is what was cut or changed, whatever a checksum would say, an error or a value?
#[test]
fn g22_no_codec_believes_its_bytes() {
    let (mut blocks, mut refused, mut at_step) = (0u64, 0u64, 0);
    each(|_, coding, said, bytes| {
        blocks += 1;
        // A part of the places in each block, others in the next.
        at_step += 1;
        for at in (at_step % 61..bytes.len()).step_by(61) {
            for bit in [0x01, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= bit;
                match decode(said, &bytes) {
                    Ok(column) => assert_eq!(column.len(), RECORDS),
                    Err(e) => {
                        refused += 1;
                        assert_eq!(e.kind(), ErrorKind::Damage, "{coding:?}: {e}");
                    }
                }
            }
            if let Ok(column) = decode(said, &bytes[..at]) {
                panic!("{coding:?}: {} records of {at} bytes", column.len());
            }
        }
        let mut long = bytes;
        long.push(0);
        assert!(decode(said, &long).is_err(), "{coding:?}: a byte too many");
    });
    println!("{refused} changes refused in {blocks} blocks");
    assert!(refused > 1000);
}

/// Are forms of pco refused that allocate by what they say: a dictionary, a window, an old version?
#[test]
fn g22_pco_allocates_by_the_count_alone() {
    let shape = Shape::default();
    let coding = Coding::of(BlockCodec::Pco);
    let said = Said {
        ty: FieldType::U64,
        shape: &shape,
        coding,
        records: RECORDS,
        missing: 0,
        raw_len: 8 * RECORDS,
    };
    let refused = |bytes: &[u8]| decode(said, bytes).unwrap_err().chain();
    assert!(refused(&[4, 1, 0xf4, 0xff, 0xff, 0xff]).contains("mode"), "a dictionary of 2^25");
    assert!(refused(&[3, 0, 0, 0]).contains("version"));
    assert!(refused(&[]).contains("version"));
    assert!(refused(&[4, 1]).contains("mode"));
    let huge = Said { records: 1, raw_len: 1 << 27, ..said };
    assert!(decode(huge, &[4, 1, 0]).unwrap_err().chain().contains("raw bytes"));
}
