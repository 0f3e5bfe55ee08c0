//! Many files that share their pieces: how long does it take to retire them, at once and one by one?
//!
//! `cargo run --release --example retire -- 1` (a fraction of the files, 1 for all: 50 of 4,096 pieces
//! in ten families that share theirs in other orders, and 500 of one)

use std::error::Error;
use std::time::Instant;

use sealstone::digest::Digest;
use sealstone::engine::NewObject;
use sealstone::ids::{LeaseId, NameGeneration, ObjectId};
use sealstone::manifest::{
    LeaseRow, NameKey, NameRow, Namespace, ObjectRow, Piece, Place, Reading, RecipeRow, Table,
    ValueForm,
};
use sealstone::vfs::Step;
use sealstone::{Limits, Store};

type Outcome<T> = Result<T, Box<dyn Error>>;

const FAMILIES: u64 = 10;
const RECIPES: u64 = 5;
const PIECES: u64 = 4096;
const SMALL: u64 = 500;
const PIECE_BYTES: usize = 48;

fn main() -> Outcome<()> {
    let part: u64 = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    for at_once in [true, false] {
        let folder = tempfile::tempdir_in(".")?;
        let mut limits = Limits::default();
        limits.object_inline_bytes_max = 16;
        let store = Store::options().limits(limits).create(folder.path().join("r.stone"))?;
        let started = Instant::now();
        let names = fill(&store, part.max(1))?;
        let references =
            store.stats()?.rows.iter().find(|(table, _)| table.name() == "edges").map(|r| r.1);
        println!(
            "{} files, {} references, made in {:.2} s",
            names.len(),
            references.unwrap_or(0) - names.len() as u64,
            started.elapsed().as_secs_f64()
        );
        let (started, cpu) = (Instant::now(), cpu_nanos());
        let batches = if at_once { vec![&names[..]] } else { names.chunks(1).collect() };
        for batch in batches {
            store.transact(Step::RetireCommit, |w| {
                for key in batch {
                    w.remove::<NameRow>(key)?;
                }
                Ok(())
            })?;
        }
        let kind = if at_once { "in one transaction" } else { "one by one" };
        let cpu = (cpu_nanos() - cpu) as f64 / 1e9;
        println!(
            "retired {kind} in {:.3} s, {cpu:.3} s of a processor",
            started.elapsed().as_secs_f64()
        );
        assert_eq!(store.snapshot()?.count(Table::Recipes)?, 0);
        store.close()?;
    }
    Ok(())
}

/// What this thread took of a processor, where the system tells.
fn cpu_nanos() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
}

fn fill(store: &Store, part: u64) -> Outcome<Vec<NameKey>> {
    let mut names = Vec::new();
    for family in 0..FAMILIES {
        let pieces = pieces(store, family, PIECES / part)?;
        for n in 0..RECIPES {
            names.push(recipe(store, &pieces, family * RECIPES + n)?);
        }
    }
    let small = pieces(store, FAMILIES, SMALL / part)?;
    for (n, piece) in small.iter().enumerate() {
        names.push(recipe(store, &[*piece], 1000 + n as u64)?);
    }
    // Their lease goes: only recipes keep them now.
    let leases: Vec<LeaseId> =
        store.snapshot()?.list::<LeaseRow>(.., usize::MAX)?.into_iter().map(|l| l.0).collect();
    store.transact(Step::LeaseCommit, |w| {
        leases.iter().try_for_each(|l| w.remove::<LeaseRow>(l).map(drop))
    })?;
    Ok(names)
}

fn pieces(store: &Store, family: u64, count: u64) -> Outcome<Vec<ObjectId>> {
    let content = |n: u64| {
        let mut bytes = vec![0; PIECE_BYTES];
        bytes[..8].copy_from_slice(&family.to_be_bytes());
        bytes[8..16].copy_from_slice(&n.to_be_bytes());
        NewObject { bytes, referrer: None }
    };
    let contents: Vec<NewObject> = (0..count).map(content).collect();
    let made = store.transact_with(Step::LeaseCommit, contents, |w, objects| {
        let lease = w.next_lease_id()?;
        let row = LeaseRow {
            holder: "retire".to_owned(),
            purpose: "until it has a recipe".to_owned(),
            deadline: None,
            objects: objects.to_vec(),
        };
        w.put(&lease, &row)?;
        Ok(objects.to_vec())
    })?;
    Ok(made.value)
}

fn recipe(store: &Store, pieces: &[ObjectId], n: u64) -> Outcome<NameKey> {
    // Another order for each: a step that is no divisor of the count goes round all of them.
    let count = pieces.len();
    let order: Vec<ObjectId> = (0..count)
        .filter_map(|at| pieces.get(at * (2 * n as usize % 97 + 1) % count))
        .copied()
        .collect();
    let key = NameKey { namespace: Namespace::OBJECTS, name: format!("files\0{n:04}") };
    store.transact(Step::LeaseCommit, |w| {
        let object = w.next_object_id()?;
        let len = order.len() as u64 * PIECE_BYTES as u64;
        for (at, part) in order.chunks(1024).enumerate() {
            let pieces =
                part.iter().map(|object| Piece { object: *object, len: PIECE_BYTES as u64 });
            w.put(
                &(object, (at * 1024 * PIECE_BYTES) as u64),
                &RecipeRow { pieces: pieces.collect() },
            )?;
        }
        let digest = Digest::of(&n.to_be_bytes());
        w.put(&object, &ObjectRow { digest, len, stored_len: 0, codec: 0, place: Place::Recipe })?;
        let row = NameRow {
            generation: NameGeneration(1),
            object,
            len,
            commit: w.commit_seq(),
            form: ValueForm::Bytes,
        };
        w.put(&key, &row)
    })?;
    Ok(key)
}
