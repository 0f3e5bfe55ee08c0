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

/// The path of examples/lorenz.rs: every tenth step of 0.002 by the midpoint rule, three doubles a record.
pub fn lorenz(bytes: u64) -> Outcome<Table> {
    const DT: f64 = 0.002;
    let slope = |[x, y, z]: [f64; 3]| [10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z];
    let mut at = [1.0, 1.0, 1.0];
    let mut values = vec![Vec::new(); 3];
    for _ in 0..bytes / 24 {
        (0..3).for_each(|axis| values[axis].push(at[axis]));
        for _ in 0..10 {
            let a = slope(at);
            let b = slope(std::array::from_fn(|axis| at[axis] + DT / 2.0 * a[axis]));
            (0..3).for_each(|axis| at[axis] += DT * b[axis]);
        }
    }
    Ok(f64s(&["x", "y", "z"].map(str::to_owned), values))
}

/// The path of examples/sweep.rs: every second step of damped pendulums, run after run, an angle and a speed
/// a record.
pub fn sweep(bytes: u64) -> Outcome<Table> {
    let mut values = vec![Vec::new(); 2];
    for task in 0u64.. {
        if values[0].len() as u64 * 16 >= bytes {
            break;
        }
        let point = if task % 5 == 4 { task - 4 } else { task };
        let dt = [0.002, 0.005, 0.01, 0.02][(point % 4) as usize];
        let damping = 0.05 * (point / 4) as f64;
        let (mut step, mut angle, mut speed) = (0, 1.0f64, 0.0);
        while f64::from(step) * dt < 20.0 {
            if step % 2 == 0 {
                values[0].push(angle);
                values[1].push(speed);
            }
            let force = |angle: f64, speed: f64| -angle.sin() - damping * speed;
            if point % 2 == 0 {
                let force = force(angle, speed);
                angle += dt * speed;
                speed += dt * force;
            } else {
                speed += dt / 2.0 * force(angle, speed);
                angle += dt * speed;
                speed += dt / 2.0 * force(angle, speed);
            }
            step += 1;
        }
    }
    Ok(f64s(&["angle", "speed"].map(str::to_owned), values))
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

/// The frames of examples/heat2d.rs: every twentieth of 4,000 steps over a plate of 48 by 64, an array of doubles
/// a record; then again with the warm place elsewhere.
pub fn heat(bytes: u64) -> Outcome<Table> {
    const ROWS: usize = 48;
    const COLUMNS: usize = 64;
    let frames = bytes.div_ceil(8 * (ROWS * COLUMNS) as u64) as usize;
    let mut values = Vec::new();
    let mut plate = Vec::new();
    for frame in 0..frames {
        let (run, at) = (frame / 200, frame % 200);
        if at == 0 {
            plate = vec![0.0; ROWS * COLUMNS];
            for row in ROWS / 4..ROWS / 2 {
                let from = row * COLUMNS + (COLUMNS / 3 + 5 * run) % 50;
                plate[from..from + COLUMNS / 6].fill(100.0);
            }
        }
        values.extend_from_slice(&plate);
        for _ in 0..20 {
            let old = plate.clone();
            for row in 1..ROWS - 1 {
                for column in 1..COLUMNS - 1 {
                    let at = row * COLUMNS + column;
                    let around = old[at - 1] + old[at + 1] + old[at - COLUMNS] + old[at + COLUMNS];
                    plate[at] = old[at] + 0.2 * (around - 4.0 * old[at]);
                }
            }
        }
    }
    let mut column = Column::new("heat", Data::F64(values));
    column.axes = vec![ROWS, COLUMNS];
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
