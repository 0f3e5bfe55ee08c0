//! The data sets of B12, each from a seed or from the repository: so many bytes of values at least, unless
//! there are no more.

use crate::Outcome;
use crate::columns::{Column, Data, Table, Texts};
use crate::text::{self, Random};

const WEATHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/nyc-weather-2013.csv");

fn f64s(names: &[String], values: Vec<Vec<f64>>) -> Table {
    let columns = names.iter().zip(values).map(|(name, v)| Column::new(name, Data::F64(v)));
    Table { columns: columns.collect() }
}

/// The Lorenz attractor by RK4 with a step of 0.005: three doubles a record, every bit of them used.
pub fn lorenz(bytes: u64) -> Outcome<Table> {
    let rates = |[x, y, z]: [f64; 3]| [10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z];
    let along = |at: [f64; 3], by: [f64; 3], step: f64| {
        [at[0] + step * by[0], at[1] + step * by[1], at[2] + step * by[2]]
    };
    let step = 0.005;
    let mut at = [1.0, 1.0, 1.0];
    let mut values = vec![Vec::new(); 3];
    for _ in 0..bytes / 24 {
        let a = rates(at);
        let b = rates(along(at, a, step / 2.0));
        let c = rates(along(at, b, step / 2.0));
        let d = rates(along(at, c, step));
        for axis in 0..3 {
            at[axis] += step / 6.0 * (a[axis] + 2.0 * b[axis] + 2.0 * c[axis] + d[axis]);
            values[axis].push(at[axis]);
        }
    }
    Ok(f64s(&["x", "y", "z"].map(str::to_owned), values))
}

/// Eight bodies around a heavy one by leapfrog: twenty-four doubles a record.
pub fn bodies(bytes: u64) -> Outcome<Table> {
    const BODIES: usize = 8;
    let mut random = Random::new(8);
    let mut at = [[0.0f64; 3]; BODIES];
    let mut speed = [[0.0f64; 3]; BODIES];
    for n in 0..BODIES {
        let (radius, angle) = (1.0 + 0.4 * n as f64, random.unit() * std::f64::consts::TAU);
        at[n] = [radius * angle.cos(), radius * angle.sin(), 0.05 * random.unit()];
        let around = (1.0 / radius).sqrt();
        speed[n] = [-around * angle.sin(), around * angle.cos(), 0.01 * random.unit()];
    }
    let pull = |at: &[[f64; 3]; BODIES], n: usize| {
        let mut sum = [0.0; 3];
        let mut add = |from: [f64; 3], mass: f64| {
            let d: [f64; 3] = std::array::from_fn(|axis| from[axis] - at[n][axis]);
            let near = d.iter().map(|x| x * x).sum::<f64>() + 1e-4;
            (0..3).for_each(|axis| sum[axis] += mass * d[axis] / (near * near.sqrt()));
        };
        add([0.0; 3], 1.0);
        (0..BODIES).filter(|m| *m != n).for_each(|m| add(at[m], 1e-3));
        sum
    };
    let step = 0.01;
    let mut values = vec![Vec::new(); 3 * BODIES];
    for _ in 0..bytes / (24 * BODIES as u64) {
        for (n, speed) in speed.iter_mut().enumerate() {
            let force = pull(&at, n);
            (0..3).for_each(|axis| speed[axis] += step * force[axis]);
        }
        for n in 0..BODIES {
            for axis in 0..3 {
                at[n][axis] += step * speed[n][axis];
                values[3 * n + axis].push(at[n][axis]);
            }
        }
    }
    let names = |n: usize| ["x", "y", "z"].map(|axis| format!("{axis}{n}"));
    Ok(f64s(&(0..BODIES).flat_map(names).collect::<Vec<_>>(), values))
}

/// Heat that spreads over a plate of 64 by 64, from a few warm places: an array of doubles a record.
pub fn heat(bytes: u64) -> Outcome<Table> {
    const SIDE: usize = 64;
    let mut random = Random::new(64);
    let mut plate = vec![20.0; SIDE * SIDE];
    for _ in 0..12 {
        plate[random.next() as usize % (SIDE * SIDE)] += 500.0 * random.unit();
    }
    let mut values = Vec::new();
    for _ in 0..bytes.div_ceil(8 * (SIDE * SIDE) as u64) {
        let before = plate.clone();
        for y in 1..SIDE - 1 {
            for x in 1..SIDE - 1 {
                let n = y * SIDE + x;
                let around = before[n - 1] + before[n + 1] + before[n - SIDE] + before[n + SIDE];
                plate[n] += 0.2 * (around - 4.0 * before[n]);
            }
        }
        values.extend_from_slice(&plate);
    }
    let mut column = Column::new("temperature", Data::F64(values));
    column.axes = vec![SIDE, SIDE];
    Ok(Table { columns: vec![column] })
}

/// Eight sensors that wander, each read to two decimals, and a counter that rises unevenly.
pub fn sensors(bytes: u64) -> Outcome<Table> {
    const SENSORS: usize = 8;
    let mut random = Random::new(2);
    let mut at: Vec<f64> = (0..SENSORS).map(|n| 15.0 + 10.0 * n as f64).collect();
    let mut values = vec![Vec::new(); SENSORS];
    let (mut count, mut counter) = (0, Vec::new());
    for _ in 0..bytes / (8 * SENSORS as u64 + 8) {
        for n in 0..SENSORS {
            at[n] += 0.2 * (random.unit() - 0.5);
            values[n].push((at[n] * 100.0).round() / 100.0);
        }
        count += (random.next() % 5) as i64;
        counter.push(count);
    }
    let names: Vec<String> = (0..SENSORS).map(|n| format!("sensor{n}")).collect();
    let mut table = f64s(&names, values);
    table.columns.push(Column::new("counter", Data::I64(counter)));
    Ok(table)
}

/// A year of weather at three airports, as typed columns, `NA` missing. As long as it is.
pub fn weather(_: u64) -> Outcome<Table> {
    let file = std::fs::read_to_string(WEATHER)?;
    let mut lines = file.lines();
    let names: Vec<&str> = lines.next().ok_or("no header")?.split(',').collect();
    let mut cells: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    for line in lines {
        for (column, cell) in cells.iter_mut().zip(line.split(',')) {
            column.push(cell);
        }
    }
    let columns = names.iter().zip(&cells).map(|(name, cells)| typed(name, cells));
    Ok(Table { columns: columns.collect() })
}

/// Integers where all are, else doubles, else text.
fn typed(name: &str, cells: &[&str]) -> Column {
    let given = || cells.iter().map(|cell| Some(*cell).filter(|cell| *cell != "NA"));
    let integers: Option<Vec<i64>> =
        given().map(|cell| cell.map_or(Some(0), |cell| cell.parse().ok())).collect();
    let doubles: Option<Vec<f64>> =
        given().map(|cell| cell.map_or(Some(0.0), |cell| cell.parse().ok())).collect();
    let data = match (integers, doubles) {
        (Some(values), _) => Data::I64(values),
        (_, Some(values)) => Data::F64(values),
        _ => {
            let mut texts = Texts::default();
            given().for_each(|cell| texts.push(cell.unwrap_or_default().as_bytes()));
            Data::Text(texts)
        }
    };
    let is_missing = cells.contains(&"NA");
    let present = is_missing.then(|| given().map(|cell| cell.is_some()).collect());
    Column { present, ..Column::new(name, data) }
}

/// Lines as a service logs them, one a record.
pub fn logs(bytes: u64) -> Outcome<Table> {
    let mut random = Random::new(3);
    let mut texts = Texts::default();
    let mut line = [0; 256];
    while (texts.bytes.len() as u64) < bytes {
        let len = text::line(&mut random, &mut line);
        texts.push(&line[..len - 1]);
    }
    Ok(Table { columns: vec![Column::new("line", Data::Text(texts))] })
}
