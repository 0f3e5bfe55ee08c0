//! A process that reads all the while, whoever writes or dies.

use std::collections::HashMap;
use std::path::Path;

use sealstone::ErrorKind;
use sealstone::engine::Store;
use sealstone::ids::{Generation, StreamId};
use sealstone::vfs::RealDisk;

use crate::content::{Wrong, options, pairs, verify};

/// Rounds with one opening.
const ROUNDS: usize = 4;

/// What the reader saw last of a stream.
type Seen = HashMap<StreamId, (Generation, u64)>;

/// Reads until told to stop; leaves how often it did.
pub fn run(root: &Path, out: &Path) {
    let (mut reads, mut turned_away) = (0u64, 0u64);
    let mut seen = Seen::new();
    while !out.join("stop").exists() {
        match options(RealDisk::new()).open_read_only(root) {
            Ok(store) => {
                for _ in 0..ROUNDS {
                    reads += look(&store, &mut seen);
                }
            }
            // A store that is being born or opened by a writer; nothing else is an excuse.
            Err(e) if matches!(e.kind(), ErrorKind::NoStore | ErrorKind::InUse) => turned_away += 1,
            Err(e) => panic!("the reader could not open: {e:?}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(12));
    }
    std::fs::write(out.join("reads"), format!("{reads} {turned_away}")).unwrap();
}

fn look(store: &Store, seen: &mut Seen) -> u64 {
    let mut reads = 0;
    for (a, b) in pairs(store).unwrap_or_else(|e| panic!("the reader could not list: {e:?}")) {
        let views = match store.views(&[a, b]) {
            Ok(views) => views,
            // Retired since it was listed, or on the move.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => continue,
            Err(e) => panic!("the reader could not read {a} and {b}: {e:?}"),
        };
        let mut rows = Vec::new();
        for view in &views {
            let stream = view.stream;
            match verify(store, view) {
                Ok(n) => rows.push(n),
                Err(Wrong::Torn(e)) => panic!("a torn state of stream {stream}: {e}"),
                // An object went since the view was taken: then the stream moved on, too.
                Err(Wrong::Stale(e)) => match store.view(stream) {
                    Err(gone) if gone.kind() == ErrorKind::NotFound => break,
                    Ok(now) if now.row != view.row => break,
                    now => panic!("stream {stream} lost something: {e}; now {now:?}"),
                },
            }
            let now = (view.row.generation, *rows.last().unwrap_or(&0));
            let before = seen.insert(stream, now).unwrap_or_default();
            let is_forward = now.0 > before.0 || (now.0 == before.0 && now.1 >= before.1);
            assert!(is_forward, "stream {stream} went from {before:?} to {now:?}");
            reads += 1;
        }
        if let [a, b] = rows[..] {
            assert_eq!(a, b, "the reader saw an observation that is half there: {views:?}");
        }
    }
    reads
}
