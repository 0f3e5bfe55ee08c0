//! The command line.

use std::path::PathBuf;

use crate::Outcome;
use crate::rows::{ROWS, Row};

/// What to run.
#[derive(Debug)]
pub struct Args {
    pub rows: Vec<&'static Row>,
    /// Only these arms, and sealstone's.
    pub arms: Vec<String>,
    /// Amount of work, 1 being what docs/BENCHMARKS.md tells.
    pub scale: f64,
    pub rounds: usize,
    /// Where stores are made: on the disk that is to be measured.
    pub dir: PathBuf,
    pub smoke: bool,
}

/// Of one round a median says nothing: that is enough only to see that all works.
const ROUNDS: usize = 5;

const USAGE: &str = "[ROW...] [--scale S] [--rounds N] [--dir D] [--arms A,B] [--smoke]";

pub fn parse(given: &[String]) -> Outcome<Args> {
    let mut args = Args {
        rows: Vec::new(),
        arms: Vec::new(),
        scale: 1.0,
        rounds: ROUNDS,
        // Beside the build, and so on a disk: a temporary directory is memory on many machines.
        dir: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/bench-stores")),
        smoke: false,
    };
    let mut given = given.iter();
    while let Some(one) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{one} wants a value; {USAGE}"));
        match one.as_str() {
            "--scale" => args.scale = value()?.parse()?,
            "--rounds" => args.rounds = value()?.parse()?,
            "--dir" => args.dir = value()?.into(),
            "--arms" => args.arms = value()?.split(',').map(str::to_owned).collect(),
            "--smoke" => (args.smoke, args.rounds) = (true, 1),
            name => {
                let before = args.rows.len();
                args.rows.extend(ROWS.iter().copied().filter(|row| row.is_called(name)));
                if args.rows.len() == before {
                    return Err(format!("{name} is neither a row nor an option; {USAGE}").into());
                }
            }
        }
    }
    if args.rows.is_empty() {
        args.rows = ROWS.to_vec();
    }
    if args.rounds == 0 || args.scale.is_nan() || args.scale <= 0.0 {
        return Err("give at least one round, and a scale above 0".into());
    }
    Ok(args)
}
