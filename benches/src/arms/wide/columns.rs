//! The disk itself: a file for each field, read where the values lie.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{FIELDS, Wide, name, value};
use crate::Outcome;

pub struct Columns(Vec<File>);

impl Columns {
    pub fn open(dir: &Path) -> Outcome<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let files = (0..FIELDS).map(|field| options.open(dir.join(name(field))));
        Ok(Self(files.collect::<Result<_, _>>()?))
    }
}

impl Wide for Columns {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        for (field, file) in self.0.iter().enumerate() {
            let values = numbers.clone().flat_map(|number| value(number, field).to_le_bytes());
            file.write_all_at(&values.collect::<Vec<u8>>(), numbers.start * 8)?;
        }
        Ok(())
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let mut bytes = vec![0; (numbers.end - numbers.start) as usize * 8];
        self.0[field].read_exact_at(&mut bytes, numbers.start * 8)?;
        let words = bytes.chunks_exact(8).filter_map(|word| word.first_chunk().copied());
        Ok(words.map(f64::from_le_bytes).collect())
    }
}
