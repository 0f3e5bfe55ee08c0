//! JSON lines: one object a record. There is no index, so lines are read from the first on, and only those
//! that are asked for are looked into; the file is sorted, so reading ends behind them.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{FIELDS, Wide, name, value};
use crate::Outcome;

pub struct Lines {
    path: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl Lines {
    pub fn open(dir: &Path) -> Outcome<Self> {
        let path = dir.join("records.jsonl");
        let writer = if path.exists() { None } else { Some(BufWriter::new(File::create(&path)?)) };
        Ok(Self { path, writer })
    }
}

impl Wide for Lines {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        let writer = self.writer.as_mut().ok_or("the file is finished")?;
        for number in numbers {
            write!(writer, "{{\"n\":{number}")?;
            for field in 0..FIELDS {
                write!(writer, ",\"{}\":{}", name(field), value(number, field))?;
            }
            writer.write_all(b"}\n")?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.flush()?;
            writer.get_ref().sync_all()?;
        }
        Ok(())
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let mut reader = BufReader::with_capacity(256 << 10, File::open(&self.path)?);
        let key = format!("\"{}\":", name(field));
        let mut values = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(values);
            }
            let number: u64 = cell(&line, "\"n\":")?.parse()?;
            if number >= numbers.end {
                return Ok(values);
            }
            if number >= numbers.start {
                values.push(cell(&line, &key)?.parse()?);
            }
        }
    }
}

/// What stands behind `key`, up to the next comma or the end.
fn cell<'a>(line: &'a [u8], key: &str) -> Outcome<&'a str> {
    let key = key.as_bytes();
    let at = line.windows(key.len()).position(|part| part == key).ok_or("no such key")?;
    let rest = &line[at + key.len()..];
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}')).ok_or("no end")?;
    Ok(std::str::from_utf8(&rest[..end])?)
}
