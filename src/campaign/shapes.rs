//! The shapes of operations, each with the letter that stands for it in a history.

macro_rules! shapes {
    ($($variant:ident = $code:literal: $doc:literal,)*) => {
        /// The shape of an operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Shape {
            $(#[doc = $doc] $variant,)*
        }

        impl Shape {
            /// Every shape.
            pub const ALL: &'static [Shape] = &[$(Shape::$variant,)*];

            /// Its letter.
            pub fn code(self) -> char {
                match self {
                    $(Shape::$variant => $code,)*
                }
            }

            /// What a letter stands for.
            pub fn of_code(code: char) -> Option<Self> {
                Self::ALL.iter().copied().find(|shape| shape.code() == code)
            }
        }
    };
}

shapes! {
    Birth = '!': "Create the store.",
    Stream = 'N': "Create a stream.",
    Append = 'A': "Append a record.",
    Group = 'G': "Append a group over several streams.",
    Large = 'L': "Append a record whose payload is sealed first.",
    Fill = '1': "Append so much that the journal rolls over and copies forward.",
    Written = 'W': "Wait until the last group is written.",
    Durable = 'D': "Wait until the last group is durable.",
    Barrier = 'B': "Make everything durable.",
    Checkpoint = 'C': "Make a checkpoint.",
    LargeState = 'T': "Make a checkpoint with a large state.",
    Rewind = 'R': "Move back to the newest checkpoint.",
    Publish = 'P': "Seal and publish the tail of a stream.",
    PublishMany = 'Q': "Seal and publish half the tail of every stream.",
    Direct = 'X': "Publish a chunk whose records were never appended.",
    SealStore = 'S': "Seal a chunk, store the same content under a lease, publish.",
    SealGone = 'Y': "Seal a chunk that is stored already, retire and reclaim what stored it, publish.",
    SealDrop = 'Z': "Seal a chunk and drop it.",
    Objects = 'O': "Store objects under a new lease.",
    Same = 'E': "Store objects again under another lease.",
    RetireLease = 'F': "Retire a lease.",
    RetireCheckpoint = 'K': "Retire a checkpoint.",
    RetireStream = 'U': "Retire a stream.",
    Reclaim = 'V': "Reclaim, compaction included.",
    Names = 'n': "Put, compare and set, and remove values under names, in one batch.",
    Claim = 'H': "Claim something.",
    Release = 'J': "Release a claim.",
    Reopen = 'c': "Close and open.",
    Kill = 'k': "End the process and open in another.",
    Fence = 'f': "End the owner's row, see it refused, and open in another process.",
    Compact = 'M': "Close, compact the manifest, open.",
    Backup = 'b': "Back up, onto nothing or onto the backup before.",
    BackupBeside = 'm': "Back up, and retire and reclaim meanwhile.",
    Snapshot = 's': "Write a snapshot of the rows.",
    Full = 'd': "Fill the disk until intake is refused, then give space back.",
}

/// Whether the shape takes part in every pair: what is done to a whole store has pairs of its own.
pub(super) fn is_paired(shape: Shape) -> bool {
    is_shape(shape) && !matches!(shape, Shape::Compact | Shape::Backup | Shape::BackupBeside)
}

/// Whether the shape takes part in random histories, and is cut alone.
pub(super) fn is_shape(shape: Shape) -> bool {
    !matches!(shape, Shape::Birth | Shape::Full | Shape::LargeState)
}
