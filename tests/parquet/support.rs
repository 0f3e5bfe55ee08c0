//! A stage in a directory that goes with the test.

use sealstone::Store;
use sealstone::staging::{
    Batch, ConvertOptions, Converted, Converter, Key, KeyPart, KeyShape, OutputId, PlanOptions,
    Ready, RecordBatch, Stage,
};

pub struct Staged {
    pub stage: Stage,
    pub dir: tempfile::TempDir,
}

impl Staged {
    pub fn new(shape: &KeyShape) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("logs.stone")).unwrap();
        let stage = store.create_stage("logs", shape).unwrap();
        Self { stage, dir }
    }

    /// With keys of one text.
    pub fn by_name() -> Self {
        Self::new(&KeyShape::new().text("name"))
    }

    pub fn lines(&self, name: &str, lines: &str) {
        let batch = Batch::json_lines(lines).unwrap();
        self.stage.append(&key(name), batch, None).unwrap();
    }

    pub fn arrow(&self, name: &str, batch: &RecordBatch) {
        self.stage.append(&key(name), Batch::arrow(batch).unwrap(), None).unwrap();
    }

    /// Converts everything that is there.
    pub fn convert(&self, converter: &dyn Converter) -> Vec<Converted> {
        self.stage.flush(&Ready::All).unwrap();
        let plan = self.stage.plan(&PlanOptions::default()).unwrap();
        plan.convert(converter, &ConvertOptions::default()).unwrap()
    }

    /// The rows of an output.
    pub fn rows_of(&self, id: OutputId) -> Vec<RecordBatch> {
        let view = self.stage.view().unwrap();
        let wanted = sealstone::staging::Origin::Output(id);
        let batch = view.batches().map(Result::unwrap).find(|batch| batch.origin == wanted);
        batch.unwrap().record_batches().unwrap()
    }

    pub fn bytes_of(&self, id: OutputId) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stage.copy_output(id, &mut bytes).unwrap();
        bytes
    }
}

pub fn key(name: &str) -> Key {
    Key::new([KeyPart::Text(name.to_owned())])
}

/// The one output that each group became.
pub fn outputs(converted: &[Converted]) -> Vec<OutputId> {
    let one = |group: &Converted| {
        let made = group.made.as_ref().unwrap();
        assert_eq!(made.outputs.len(), 1);
        made.outputs[0]
    };
    converted.iter().map(one).collect()
}
