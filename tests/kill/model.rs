//! What a writer told before and after each thing that it did, and what a store must hold after it
//! was killed.
//!
//! One line for each, appended to a file with one call, so that none is torn by a kill:
//!
//! | line | before or after | meaning |
//! |---|---|---|
//! | `+ a b` | after | the pair was created |
//! | `t a b n` | before | the pair may have up to n records |
//! | `k a b n` | after | the pair's first n records were acknowledged |
//! | `w a b n`, `W a b n` | before, after | moved back to n |
//! | `r a b`, `R a b` | before, after | retired |
//! | `P lease object seed len` | after | an object was put under a lease |
//! | `l lease`, `L lease` | before, after | the lease was retired |
//! | `C id` | after | a checkpoint was made |

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use sealstone::engine::Store;
use sealstone::ids::{CheckpointId, ObjectId, StreamId};
use sealstone::manifest::{CheckpointRow, LeaseRow, Reading, StateBytes};

use crate::content::{Pair, is_state, noise, pairs, verify};

/// The writer's side.
#[derive(Debug)]
pub struct Log(File);

impl Log {
    pub fn create(path: &Path) -> Self {
        Self(File::create(path).unwrap())
    }

    pub fn line(&mut self, text: &str) {
        self.0.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    pub fn pair(&mut self, mark: char, pair: Pair, n: Option<u64>) {
        let n = n.map(|n| format!(" {n}")).unwrap_or_default();
        self.line(&format!("{mark} {} {}{n}", pair.0, pair.1));
    }
}

/// What is known of one pair.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Acknowledged.
    min: u64,
    /// Tried.
    max: u64,
    /// It may have been moved back to here.
    may_be: Option<u64>,
    may_be_gone: bool,
}

impl Known {
    /// A later writer found the pair, and found an answer to what was in doubt.
    fn tried(&mut self, n: u64) {
        self.may_be_gone = false;
        self.max = match self.may_be.take() {
            Some(may_be) => {
                self.min = self.min.min(may_be);
                self.max.max(n)
            }
            None => n,
        };
    }
}

#[derive(Debug, Clone)]
struct Put {
    lease: u64,
    object: ObjectId,
    seed: u64,
    len: usize,
}

/// What a store must hold.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pairs: BTreeMap<(u64, u64), Known>,
    gone: BTreeSet<(u64, u64)>,
    puts: Vec<Put>,
    leases_in_doubt: BTreeSet<u64>,
    checkpoint: u64,
    /// Acknowledgements that were taken in.
    pub acknowledged: u64,
}

impl Model {
    /// Takes in what a killed writer told.
    pub fn take(&mut self, path: &Path) {
        for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
            let (mark, rest) = line.split_at(1);
            let n: Vec<u64> = rest.split_whitespace().map(|n| n.parse().unwrap()).collect();
            let pair = || (n[0], n[1]);
            match mark {
                "+" => drop(self.pairs.insert(pair(), Known::default())),
                "r" => self.known(pair()).may_be_gone = true,
                "R" => {
                    self.pairs.remove(&pair());
                    self.gone.insert(pair());
                }
                "t" => self.known(pair()).tried(n[2]),
                "k" => {
                    let known = self.known(pair());
                    *known = Known { min: n[2], max: known.max.max(n[2]), ..Known::default() };
                }
                "w" => self.known(pair()).may_be = Some(n[2]),
                "W" => *self.known(pair()) = Known { min: n[2], max: n[2], ..Known::default() },
                "P" => {
                    let (lease, object) = (n[0], ObjectId(n[1]));
                    self.leases_in_doubt.remove(&lease);
                    self.puts.push(Put { lease, object, seed: n[2], len: n[3] as usize });
                }
                "l" => drop(self.leases_in_doubt.insert(n[0])),
                "L" => self.puts.retain(|put| put.lease != n[0]),
                "C" => self.checkpoint = self.checkpoint.max(n[0]),
                _ => panic!("an unknown line: {line}"),
            }
            self.acknowledged += u64::from(mark.chars().all(|c| "+kWRPLC".contains(c)));
        }
    }

    fn known(&mut self, pair: (u64, u64)) -> &mut Known {
        self.pairs.entry(pair).or_default()
    }

    /// Compares a store that was recovered with what it must hold. What was in doubt is decided by
    /// what it holds, and must then stay so.
    pub fn compare(&mut self, store: &Store) -> Result<(), String> {
        let found = pairs(store).map_err(|e| format!("{e:?}"))?;
        let keys: BTreeSet<(u64, u64)> = found.iter().map(|(a, b)| (a.0, b.0)).collect();
        if let Some(back) = keys.intersection(&self.gone).next() {
            return Err(format!("pair {back:?} was retired and is there"));
        }
        for (pair, known) in &self.pairs {
            if !keys.contains(pair) && !known.may_be_gone {
                return Err(format!("pair {pair:?} was acknowledged and is not there"));
            }
        }
        self.pairs.retain(|pair, _| keys.contains(pair));
        for key in keys {
            let records = self.compare_pair(store, key)?;
            *self.known(key) = Known { min: records, max: records, ..Known::default() };
        }
        self.compare_puts(store)?;
        self.compare_checkpoint(store)
    }

    fn compare_pair(&mut self, store: &Store, key: (u64, u64)) -> Result<u64, String> {
        let views = store
            .views(&[StreamId(key.0), StreamId(key.1)])
            .map_err(|e| format!("pair {key:?}: {e:?}"))?;
        let a = verify(store, &views[0]).map_err(|e| format!("stream {}: {e:?}", key.0))?;
        let b = verify(store, &views[1]).map_err(|e| format!("stream {}: {e:?}", key.1))?;
        if a != b {
            return Err(format!(
                "pair {key:?} has {a} and {b} records: an observation is half there"
            ));
        }
        let known = self.pairs.get(&key).cloned().unwrap_or_default();
        if (known.min..=known.max).contains(&a) || known.may_be == Some(a) {
            return Ok(a);
        }
        Err(format!("pair {key:?} has {a} records, that is known: {known:?}"))
    }

    fn compare_puts(&mut self, store: &Store) -> Result<(), String> {
        let rows = store
            .snapshot()
            .and_then(|snapshot| snapshot.list::<LeaseRow>(.., usize::MAX))
            .map_err(|e| format!("{e:?}"))?;
        let leases: BTreeMap<u64, LeaseRow> =
            rows.into_iter().map(|(id, row)| (id.0, row)).collect();
        let in_doubt = std::mem::take(&mut self.leases_in_doubt);
        self.puts.retain(|put| !in_doubt.contains(&put.lease) || leases.contains_key(&put.lease));
        for put in &self.puts {
            if !leases.get(&put.lease).is_some_and(|row| row.objects.contains(&put.object)) {
                return Err(format!("{put:?} was acknowledged, and its lease does not name it"));
            }
            match store.fetch(put.object) {
                Ok(bytes) if bytes == noise(put.seed, put.len) => {}
                Ok(_) => return Err(format!("{put:?} has other bytes")),
                Err(e) => return Err(format!("{put:?} was acknowledged: {e:?}")),
            }
        }
        Ok(())
    }

    fn compare_checkpoint(&mut self, store: &Store) -> Result<(), String> {
        if self.checkpoint == 0 {
            return Ok(());
        }
        let all = (1, CheckpointId(0))..=(1, CheckpointId(u64::MAX));
        let newest = store.snapshot().and_then(|snapshot| snapshot.last::<CheckpointRow>(all));
        let ((_, id), row) = match newest {
            Ok(Some(newest)) => newest,
            other => return Err(format!("checkpoint {} is gone: {other:?}", self.checkpoint)),
        };
        let state = match row.state {
            StateBytes::Inline(bytes) => bytes,
            StateBytes::Object(object) => store.fetch(object).map_err(|e| format!("{e:?}"))?,
        };
        if id.0 < self.checkpoint || !is_state(&state) {
            return Err(format!("checkpoint {id} is not {}", self.checkpoint));
        }
        // One that a rewind went back beyond is there, and passed over.
        if let Err(e) = store.latest_checkpoint(1)
            && e.kind() != sealstone::ErrorKind::NoCheckpoint
        {
            return Err(format!("the latest checkpoint does not read: {e:?}"));
        }
        self.checkpoint = id.0;
        Ok(())
    }
}
