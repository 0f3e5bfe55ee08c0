//! Outputs: read, merged and retired.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use sealstone::engine::Budget;
use sealstone::staging::{DirectoryTarget, MergeOptions, OutputReader, Ready};
use sealstone::vfs::sim::{Fault, FaultKind};
use sealstone::vfs::{Disk, Operation};
use sealstone::{ErrorKind, Result};

use crate::support::{each, put};
use crate::words::{
    At, Do, Words, all, claims, convert, convert_well, is_tidy, long, published, words,
};

/// Does a reader give any part of an output, keep its bytes while it stands, and end with the call that it
/// was given for?
#[test]
fn an_output_is_read_from_any_byte_on() {
    each(61, |_, _, store, stage| {
        put(&stage, "a", 1, &long("long", 200));
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        let output = stage.outputs().unwrap().remove(0);
        let mut reader = stage.read_output(output.id).unwrap();
        assert_eq!((reader.len(), output.rows), (1000, 200));
        let mut other = reader.clone();
        assert_eq!(reader.seek(SeekFrom::End(-5)).unwrap(), 995);
        let (mut end, mut whole) = (String::new(), String::new());
        reader.read_to_string(&mut end).unwrap();
        other.read_to_string(&mut whole).unwrap();
        assert_eq!((end.as_str(), whole.len()), ("long\n", 1000));
        assert_eq!(other.read_range(5..10).unwrap(), b"long ");
        assert_eq!(other.read_range(999..1001).unwrap_err().kind(), ErrorKind::Invalid);
        assert!(reader.seek(SeekFrom::Current(-2000)).is_err());
        stage.retire_outputs(&[output.id], "test").unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(other.read_range(0..5).unwrap(), b"long ");
        drop((reader, other));
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(stage.read_output(output.id).unwrap_err().kind(), ErrorKind::NotFound);
        is_tidy(&store, &stage);
    });
}

/// A converter that keeps the reader of its validation.
struct Keeping(Mutex<Option<OutputReader>>);

impl sealstone::staging::Converter for Keeping {
    fn form(&self) -> &str {
        "kept"
    }
    fn convert(
        &self,
        _: &sealstone::staging::GroupView,
        input: &mut sealstone::staging::Input<'_>,
        out: &mut sealstone::staging::OutputWriter<'_>,
    ) -> Result<u64> {
        for batch in input.by_ref() {
            out.put(batch?.bytes())?;
        }
        Ok(input.rows())
    }
    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        *self.0.lock() = Some(output.clone());
        Ok(1)
    }
}

/// Does a reader that is kept beyond its call hold nothing up?
#[test]
fn a_reader_ends_with_its_call() {
    each(62, |_, _, _, stage| {
        put(&stage, "a", 1, "x");
        stage.flush(&Ready::All).unwrap();
        let keeping = Keeping(Mutex::new(None));
        convert(&stage, &keeping).remove(0).made.unwrap();
        let kept = keeping.0.into_inner().unwrap();
        assert_eq!(kept.read_range(0..1).unwrap_err().kind(), ErrorKind::Closed);
    });
}

/// Are many outputs of a key made one by the same protocol: the same rows, nothing else touched, and a
/// merge that loses some refused?
#[test]
fn stg3_stg24_merged_outputs_hold_the_same_rows() {
    each(63, |_, _, store, stage| {
        for round in 0..5 {
            put(&stage, "a", 1, &format!("a {round}"));
            put(&stage, "b", 1, &format!("b {round}"));
            stage.flush(&Ready::All).unwrap();
            convert_well(&stage);
        }
        let texts = published(&stage);
        let before = stage.outputs().unwrap();
        assert_eq!(before.len(), 10);
        let bad = words(|at| Ok(if at == At::Batch(2) { Do::Lose } else { Do::GoOn }));
        let refused = stage.merge(&MergeOptions::default(), &bad).unwrap();
        assert_eq!(refused.len(), 2);
        for merged in refused {
            assert_eq!(merged.output.unwrap_err().kind(), ErrorKind::Damage);
        }
        assert_eq!(stage.outputs().unwrap(), before);
        let options = MergeOptions { inputs_max: 3, ..MergeOptions::default() };
        let merged = stage.merge(&options, &Words::plain()).unwrap();
        let mut sizes: Vec<usize> = merged.iter().map(|one| one.inputs.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 2, 3, 3]);
        for one in merged {
            let id = one.output.unwrap();
            let view = stage.outputs().unwrap().into_iter().find(|view| view.id == id).unwrap();
            assert_eq!((view.merged, view.groups.len()), (one.inputs.clone(), one.inputs.len()));
        }
        assert_eq!((published(&stage), all(&stage)), (texts.clone(), texts));
        assert_eq!(stage.outputs().unwrap().len(), 4);
        is_tidy(&store, &stage);
    });
}

/// Do hand-offs of outputs that were merged go with these, so that none is listed whose output is gone?
#[test]
fn stg3_a_merge_forgets_what_was_rolled_back() {
    each(65, |disk, _, store, stage| {
        for round in 0..2 {
            put(&stage, "a", 1, &format!("a {round}"));
            stage.flush(&Ready::All).unwrap();
            convert_well(&stage);
        }
        let to = DirectoryTarget::new("/out").disk(Arc::new(disk.clone()));
        disk.mkdir(Path::new("/out")).unwrap();
        disk.inject(Fault::new(0, FaultKind::Eio).on("/out").only(Operation::Unlink));
        stage.hand_off(stage.outputs().unwrap()[0].id, &to).unwrap_err();
        stage.roll_back(stage.handoffs().unwrap()[0].id, &to).unwrap();
        assert_eq!(stage.handoffs().unwrap().len(), 1);
        let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
        assert!(merged.len() == 1 && merged[0].output.is_ok(), "{merged:?}");
        assert!(stage.handoffs().unwrap().is_empty());
        is_tidy(&store, &stage);
    });
}

/// Are outputs retired all or none, once, and not while somebody has them?
#[test]
fn outputs_are_retired_by_nobody_but_who_has_them() {
    each(64, |_, _, store, stage| {
        for minute in 0..3 {
            put(&stage, "a", minute, &format!("m {minute}"));
        }
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        let ids: Vec<_> = stage.outputs().unwrap().iter().map(|view| view.id).collect();
        let resource = sealstone::manifest::ResourceKey::of_output(stage.id(), ids[1]);
        let claim = store.claim(&resource, sealstone::manifest::ClaimKind::Output).unwrap();
        assert_eq!(stage.retire_outputs(&ids, "x").unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!((stage.outputs().unwrap().len(), claims(&store).len()), (3, 1));
        drop(claim);
        let retired = stage.retire_outputs(&ids[..2], "x").unwrap();
        assert!(retired.outputs == 2 && retired.bytes > 0 && retired.unknown.is_empty());
        let again = stage.retire_outputs(&ids, "x").unwrap();
        assert_eq!((again.outputs, again.unknown), (1, ids[..2].to_vec()));
        assert!(all(&stage).is_empty());
        is_tidy(&store, &stage);
    });
}
