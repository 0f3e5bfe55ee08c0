//! Lengths: what the code of a caller says goes into rows, and is bounded before it gets there.

use std::cell::Cell;

use sealstone::staging::{
    Converter, GroupView, Input, Offer, OutputReader, OutputWriter, Ready, Target,
};
use sealstone::{Error, ErrorKind, Result};

use crate::support::{each, put};
use crate::words::{Words, convert, convert_well, is_tidy};

/// A target that says as much as a test wants.
#[derive(Default)]
struct Says {
    name: usize,
    intent: usize,
    evidence: usize,
    refuses: bool,
    is_there: Cell<bool>,
}

impl Target for Says {
    fn name(&self) -> String {
        "t".repeat(self.name.max(1))
    }
    fn intent(&self, _: &Offer) -> Result<Vec<u8>> {
        Ok(vec![1; self.intent])
    }
    fn put(&self, _: &[u8], _: u32, _: &mut OutputReader) -> Result<()> {
        if self.refuses {
            return Err(Error::new(ErrorKind::Input, "put", "there", "ü".repeat(100_000)));
        }
        self.is_there.set(true);
        Ok(())
    }
    fn evidence(&self, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.is_there.get().then(|| vec![2; self.evidence]))
    }
    fn remove(&self, _: &[u8]) -> Result<()> {
        self.is_there.set(false);
        Ok(())
    }
}

/// Is a target refused that says more than a row holds; and of an error that is long, is the beginning kept?
#[test]
fn stg20_what_a_target_says_is_bounded() {
    each(81, |_, _, store, stage| {
        put(&stage, "a", 1, "one two");
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        let output = stage.outputs().unwrap()[0].id;
        let refused = |target: &Says| stage.hand_off(output, target).unwrap_err().kind();
        let name = Says { name: 4097, ..Says::default() };
        assert_eq!(refused(&name), ErrorKind::LimitExceeded);
        let intent = Says { intent: (64 << 10) + 1, ..Says::default() };
        assert_eq!(refused(&intent), ErrorKind::LimitExceeded);
        assert!(stage.handoffs().unwrap().is_empty());
        let mut target = Says { evidence: (64 << 10) + 1, refuses: true, ..Says::default() };
        assert_eq!(refused(&target), ErrorKind::Input);
        let failure = stage.handoffs().unwrap()[0].failure.clone().unwrap();
        assert!(failure.contains("ü") && (1000..=1024).contains(&failure.len()));
        target.refuses = false;
        assert_eq!(refused(&target), ErrorKind::LimitExceeded);
        target.evidence = 64 << 10;
        assert_eq!(stage.hand_off(output, &target).unwrap().evidence.len(), 64 << 10);
        is_tidy(&store, &stage);
    });
}

/// A converter whose form and schemas are as long as a test wants.
struct Long {
    words: Words<'static>,
    form: String,
    schema: usize,
    union: usize,
}

impl Converter for Long {
    fn form(&self) -> &str {
        &self.form
    }
    fn convert(
        &self,
        group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        self.words.convert(group, input, out)
    }
    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        Converter::count_rows(&self.words, output)
    }
    fn schema(&self, _: &mut OutputReader) -> Result<Vec<u8>> {
        Ok(vec![b's'; self.schema])
    }
    fn merge_schema(&self, _: &[u8], _: &[u8]) -> Result<Vec<u8>> {
        Ok(vec![b'u'; self.union])
    }
}

/// Is a converter refused whose form or schema is longer than a row holds, or that makes of short ones a long
/// one for the stage; and does the group stay, to be converted by another?
#[test]
fn stg28_what_a_converter_says_is_bounded() {
    each(82, |_, _, store, stage| {
        put(&stage, "a", 1, "one two");
        stage.flush(&Ready::All).unwrap();
        let most = 1 << 20;
        for (form, schema, union) in [(257, 1, 1), (256, most + 1, 1), (256, most, most + 1)] {
            let form = "f".repeat(form);
            let long = Long { words: Words::plain(), form, schema, union };
            let made = convert(&stage, &long).remove(0).made;
            assert_eq!(made.unwrap_err().kind(), ErrorKind::LimitExceeded);
            assert!(stage.outputs().unwrap().is_empty() && stage.schema().unwrap().is_empty());
        }
        let form = "f".repeat(256);
        let long = Long { words: Words::plain(), form, schema: most, union: most };
        convert(&stage, &long).remove(0).made.unwrap();
        assert_eq!(stage.schema().unwrap().len(), most);
        is_tidy(&store, &stage);
    });
}
