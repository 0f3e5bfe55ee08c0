//! Creating and opening stages.

use super::memory::Memory;
use super::stage::{Stage, place};
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Reading, StageRow};
use crate::staging::describing::KeyShape;
use crate::vfs::Step;

/// The longest name of a stage, in bytes of UTF-8.
pub const STAGE_NAME_BYTES_MAX: usize = 256;

impl Store {
    /// Creates a stage whose keys have `shape`, and opens it.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a blank name, or a shape that names a part twice; `LimitExceeded` above
    /// [`STAGE_NAME_BYTES_MAX`]; `DiskFull`.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn create_stage(&self, name: &str, shape: &KeyShape) -> Result<Stage> {
        check_name(name)?;
        shape.check_itself()?;
        let about = shape.encode()?;
        let created = self.wall_nanos();
        let committed = self.transact(Step::StageCommit, |w| {
            if w.get::<StageRow>(&name.to_owned())?.is_some() {
                let cause = "there is one of this name; open it";
                return Err(Error::new(ErrorKind::Exists, "create", place(name), cause));
            }
            let (stage, about) = (w.next_stage_id()?, about.clone());
            let row = StageRow { stage, created, intakes: Vec::new(), schema: Vec::new(), about };
            w.put(&name.to_owned(), &row)?;
            Ok(row)
        })?;
        self.stage_of(name, &committed.value)
    }

    /// Opens the stage called `name`.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` inside a ready rule of the stage; `Damage`.
    pub fn stage(&self, name: &str) -> Result<Stage> {
        match self.snapshot()?.get::<StageRow>(&name.to_owned())? {
            Some(row) => self.stage_of(name, &row),
            None => {
                let cause = "there is no stage of this name; create it";
                Err(Error::new(ErrorKind::NotFound, "open", place(name), cause))
            }
        }
    }

    /// Opens the stage called `name`, or creates it.
    ///
    /// # Errors
    /// `Conflict` when it stands, and its keys have another shape; else as [`Store::create_stage`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn stage_or_create(&self, name: &str, shape: &KeyShape) -> Result<Stage> {
        let stage = match self.stage(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => match self.create_stage(name, shape) {
                // Somebody was faster.
                Err(e) if e.kind() == ErrorKind::Exists => self.stage(name)?,
                created => return created,
            },
            opened => opened?,
        };
        if stage.key_shape() == shape {
            return Ok(stage);
        }
        let cause = format!("its keys are {:?}", stage.key_shape().fields());
        Err(Error::new(ErrorKind::Conflict, "open", place(name), cause))
    }

    fn stage_of(&self, name: &str, row: &StageRow) -> Result<Stage> {
        let shape = KeyShape::decode(&row.about)?;
        let memory = self.kept(row.stage, || Memory::new(row.stage, name, shape.clone()));
        let stage = Stage { store: self.clone(), memory };
        stage.recover()?;
        Ok(stage)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid("create", "stage", "its name is blank"));
    }
    if name.len() > STAGE_NAME_BYTES_MAX {
        let cause = format!("a name of {} bytes, {STAGE_NAME_BYTES_MAX} allowed", name.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "create", "stage", cause));
    }
    Ok(())
}
