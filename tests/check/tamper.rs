//! One way to write rows into the manifest behind a store's back, and to see what a check says of them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use sealstone::check::{CheckOptions, Report, check};
use sealstone::engine::Store;
use sealstone::manifest::*;
use sealstone::vfs::RealDisk;

use crate::support::{names, on, text};

type Bytes = &'static [u8];

/// One transaction on the bare tables.
pub struct Tamper<'t>(&'t WriteTransaction);

impl Tamper<'_> {
    pub fn table(&self, table: Table) -> redb::Table<'_, Bytes, Bytes> {
        let definition: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new(table.name());
        self.0.open_table(definition).unwrap()
    }

    pub fn put<R: Row>(&self, key: &R::Key, row: &R) {
        let key = key.to_bytes();
        let body = sealstone::codec::encode("row", row).unwrap();
        let value = sealstone::format::row::seal(R::TABLE.number(), &key, R::VERSION, &body);
        self.table(R::TABLE).insert(&key[..], &value[..]).unwrap();
    }

    pub fn remove<R: Row>(&self, key: &R::Key) {
        assert!(self.table(R::TABLE).remove(&key.to_bytes()[..]).unwrap().is_some());
    }

    pub fn rows<R: Row>(&self) -> Vec<(R::Key, R)> {
        let table = self.table(R::TABLE);
        let rows = table.iter().unwrap().map(|row| {
            let (key, value) = row.unwrap();
            let key = key.value();
            (R::Key::from_bytes(key).unwrap(), from_value::<R>(key, value.value()).unwrap())
        });
        rows.collect()
    }

    pub fn change<R: Row>(&self, pick: impl Fn(&R) -> bool, change: impl Fn(&mut R)) -> R::Key {
        let (key, mut row) = self.rows::<R>().into_iter().find(|(_, row)| pick(row)).unwrap();
        change(&mut row);
        self.put(&key, &row);
        key
    }

    pub fn counters(&self, change: impl Fn(&mut CountersRow)) {
        let key = CountersKey.to_bytes();
        let mut row = {
            let table = self.table(Table::Meta);
            let value = table.get(&key[..]).unwrap().unwrap();
            from_value::<CountersRow>(&key, value.value()).unwrap()
        };
        change(&mut row);
        self.put(&CountersKey, &row);
    }
}

/// A closed store on a real disk, which each tampering leaves as it was.
pub struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    pub fn of(fill: impl FnOnce(&Store)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.stone");
        let store = on(RealDisk::new()).create(&path).unwrap();
        fill(&store);
        store.close().unwrap();
        Self { dir }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("run.stone")
    }

    pub fn tampered(&self, tamper: impl FnOnce(&Tamper<'_>)) -> Report {
        let manifest = self.root().join("manifest.redb");
        let whole = std::fs::read(&manifest).unwrap();
        let db = Database::open(&manifest).unwrap();
        let txn = db.begin_write().unwrap();
        tamper(&Tamper(&txn));
        txn.commit().unwrap();
        drop(db);
        let report = looked(&self.root());
        std::fs::write(&manifest, whole).unwrap();
        report
    }
}

pub fn looked(root: &Path) -> Report {
    check(root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap()
}

pub fn assert_told(report: &Report, places: &[&str]) {
    for place in places {
        assert!(names(report, place), "nothing about {place:?} in:\n{}", text(report));
    }
}
