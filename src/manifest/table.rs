//! The tables of the manifest, by number and name. A number is on disk (in edges and checksums)
//! and is never given to another table.

use redb::TableDefinition;

/// A table as redb knows it: bytes to bytes, so that no redb encoding is ever on disk.
pub(super) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

macro_rules! tables {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// One table of the manifest.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Table {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Table {
            /// Every table, in the order of their numbers.
            pub const ALL: &'static [Table] = &[$(Table::$variant,)*];

            /// Its name in redb, in dumps and in messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$variant => $name,)*
                }
            }

            /// Its number on disk.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The table with a number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Table::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

tables! {
    /// Format, features, the store's id; the counters.
    Meta = 0, "meta";
    /// Openings of the store.
    Owners = 1, "owners";
    /// Exclusive rights to work on named things.
    Claims = 2, "claims";
    /// Journal files.
    Journals = 3, "journals";
    /// What forbids reclaim from outside.
    Leases = 4, "leases";
    /// Immutable bytes, and where they lie.
    Objects = 5, "objects";
    /// The bytes of small objects.
    Inline = 6, "inline";
    /// The dedupe index.
    Digests = 7, "digests";
    /// Which row refers to which object: the only thing that reclaim reads.
    Edges = 8, "edges";
    /// Sealed files.
    Files = 9, "files";
    /// Which objects lie in which file.
    FileObjects = 10, "file_objects";
    /// Recordings.
    Recordings = 11, "recordings";
    /// Recordings by name.
    RecordingNames = 12, "recording_names";
    /// Streams.
    Streams = 13, "streams";
    /// Schemas.
    Schemas = 14, "schemas";
    /// Sealed runs of records.
    Chunks = 15, "chunks";
    /// Chunks by time.
    ChunkByTime = 16, "chunk_by_time";
    /// States with the cursors to resume from.
    Checkpoints = 17, "checkpoints";
    /// Records that were lost, and are known to be.
    Gaps = 18, "gaps";
    /// Notes of a recording.
    Events = 19, "events";
    /// Stages.
    Stages = 20, "stages";
    /// Groups of a stage.
    Groups = 21, "groups";
    /// Parts of a group.
    Parts = 22, "parts";
    /// Published outputs.
    Outputs = 23, "outputs";
    /// Positions of producers.
    Producers = 24, "producers";
    /// What could not be converted.
    Quarantine = 25, "quarantine";
    /// Names of objects.
    Names = 26, "names";
    /// Publications to an outside system.
    Handoffs = 27, "handoffs";
    /// What was retired or set aside.
    Receipts = 28, "receipts";
    /// Sealed files whose every byte was retired. Follows from the files' rows.
    Condemned = 29, "condemned";
    /// Frames of a journal that lies in the manifest; single-file layout.
    Frames = 30, "frames";
    /// Pages of objects that lie in the manifest; single-file layout.
    Pages = 31, "pages";
    /// Sealed files that hold a snapshot of all rows, or what changed since one.
    Snapshots = 32, "snapshots";
    /// Values of a name that were replaced.
    History = 33, "history";
    /// Files that lie in the manifest, by name; single-file layout.
    Bodies = 34, "bodies";
    /// What recordings were made with.
    Parameters = 35, "parameters";
    /// Recordings by the values of their parameters. Follows from the parameters' rows.
    ParameterOrder = 36, "parameter_order";
    /// Groups that batches come to, by key. Follows from the groups' rows.
    OpenGroups = 37, "open_groups";
    /// Hand-offs by stage, whether they are decided, and output. Follows from the hand-offs' rows.
    HandoffOrder = 38, "handoff_order";
    /// What objects consist of whose bytes are those of others.
    Recipes = 39, "recipes";
    /// Objects that nothing refers to, whose recipes are taken apart piece by piece.
    Retiring = 40, "retiring";
    /// What leases keep, one object a row.
    Leased = 41, "leased";
    /// Preparations, by name.
    Preparations = 42, "preparations";
    /// Snapshots of names.
    ObjectSnapshots = 43, "object_snapshots";
    /// The names in them.
    SnapshotNames = 44, "snapshot_names";
    /// Publications of names that an outside system takes part in.
    NameHandoffs = 45, "name_handoffs";
    /// How far looking through all sealed files has come.
    Scrub = 46, "scrub";
}

impl Table {
    pub(super) const fn definition(self) -> Definition {
        TableDefinition::new(self.name())
    }

    /// Its position in an array of all tables.
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Whether its rows follow from other rows, and are written by [`Write`](super::Write) alone.
    pub(super) const fn is_derived(self) -> bool {
        matches!(
            self,
            Table::Edges
                | Table::Digests
                | Table::FileObjects
                | Table::Condemned
                | Table::ParameterOrder
                | Table::OpenGroups
                | Table::HandoffOrder
        )
    }

    /// Whether snapshots hold its rows: not what follows from others, nor bytes that lie as rows.
    pub const fn is_in_snapshots(self) -> bool {
        !self.is_derived() && !matches!(self, Table::Frames | Table::Pages | Table::Bodies)
    }

    /// Whether its rows tell callers nothing that lasts: who opened the store, and numbers.
    pub(super) const fn is_bookkeeping(self) -> bool {
        matches!(self, Table::Meta | Table::Owners | Table::Claims | Table::Journals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Can a table be taken for another, by number or by name?
    #[test]
    fn numbers_and_names_are_dense_and_distinct() {
        for (position, table) in Table::ALL.iter().enumerate() {
            assert_eq!(usize::from(table.number()), position);
            assert_eq!(table.index(), position);
            assert_eq!(Table::from_number(table.number()), Some(*table));
            assert_eq!(Table::ALL.iter().filter(|t| t.name() == table.name()).count(), 1);
        }
        assert_eq!(Table::from_number(Table::ALL.len() as u8), None);
    }
}
