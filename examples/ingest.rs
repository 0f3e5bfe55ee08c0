//! A log service that is killed again and again: four producers and a converter in one process, started
//! anew by its parent until all is done. Then every line is counted.
//!
//! `cargo run --release --example ingest [LINES]`

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sealstone::Store;
use sealstone::staging::{
    Batch, ConvertOptions, Converter, GroupView, Input, Key, KeyPart, KeyShape, Level,
    OutputReader, OutputWriter, PlanOptions, Produced, Ready, Stage,
};

const LINES: u64 = 2_000_000;
const PRODUCERS: u64 = 4;
const BATCH_LINES: u64 = 250;
/// Lines of one producer in one minute.
const MINUTE_LINES: u64 = 20_000;

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Line `n` of a host: what its log would say.
fn line(host: u64, n: u64) -> String {
    format!("host-{host} {n:08} GET /page/{} 200\n", n.wrapping_mul(2_654_435_761) % 1000)
}

/// Lines as they came, one file for each group.
struct Lines;

impl Converter for Lines {
    fn form(&self) -> &str {
        "lines"
    }

    fn convert(
        &self,
        _group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        let mut lines = 0;
        for batch in input {
            let batch = batch?;
            out.put(batch.bytes())?;
            lines += batch.rows();
        }
        Ok(lines)
    }

    fn count_rows(&self, output: &mut OutputReader) -> sealstone::Result<u64> {
        let bytes = output.read_range(0..output.len())?;
        Ok(bytes.iter().filter(|byte| **byte == b'\n').count() as u64)
    }
}

fn shape() -> KeyShape {
    KeyShape::new().text("service").minute("minute")
}

/// Sends the lines of a host from wherever the stage says it is.
fn produce(stage: &Stage, host: u64, lines: u64) -> Done {
    let producer = format!("host-{host}");
    let mut sequence = stage.progress(&producer)?.map_or(0, |progress| progress.sequence);
    while sequence * BATCH_LINES < lines {
        let first = sequence * BATCH_LINES;
        let upto = lines.min(first + BATCH_LINES);
        let bytes: String = (first..upto).map(|n| line(host, n)).collect();
        sequence += 1;
        let minute = KeyPart::Minute((first / MINUTE_LINES) as i64);
        let key = Key::new([KeyPart::Text("web".to_owned()), minute]);
        let produced = Produced::new(&producer, sequence).at(upto.to_le_bytes());
        let batch = Batch::opaque(bytes.into_bytes(), upto - first);
        let appended = stage.append(&key, batch, Some(&produced))?;
        if sequence % 8 == 0 {
            stage.wait(&appended.ticket, Level::Durable)?;
        }
    }
    Ok(stage.barrier()?)
}

/// Converts whatever minute every producer has behind it, and the rest once they are done.
fn convert(stage: &Stage, producing: &AtomicUsize) -> Done {
    loop {
        let is_last = producing.load(Ordering::Acquire) == 0;
        if is_last {
            stage.flush(&Ready::All)?;
        } else {
            let mut passed = i64::MAX;
            for host in 0..PRODUCERS {
                let progress = stage.progress(&format!("host-{host}"))?;
                let line = progress.map_or(0, |progress| progress.sequence * BATCH_LINES);
                passed = passed.min((line / MINUTE_LINES) as i64);
            }
            stage.flush(&Ready::Before("minute", passed))?;
        }
        let plan = stage.plan(&PlanOptions::default())?;
        let is_idle = plan.is_empty();
        for converted in plan.convert(&Lines, &ConvertOptions::default())? {
            converted.made?;
        }
        match (is_idle, is_last) {
            (true, true) => return Ok(()),
            (true, false) => std::thread::sleep(Duration::from_millis(5)),
            _ => {}
        }
    }
}

/// The service: lives until all is done, or until it is killed.
fn serve(root: &Path, lines: u64) -> Done {
    let store = Store::options().wait_millis(10_000).open(root)?;
    let stage = store.stage_or_create("log", &shape())?;
    let producing = AtomicUsize::new(PRODUCERS as usize);
    std::thread::scope(|scope| {
        let (stage, producing) = (&stage, &producing);
        let converter = scope.spawn(move || convert(stage, producing));
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|host| {
                scope.spawn(move || {
                    let done = produce(stage, host, lines / PRODUCERS);
                    producing.fetch_sub(1, Ordering::Release);
                    done
                })
            })
            .collect();
        for thread in producers.into_iter().chain([converter]) {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Done::Ok(())
    })?;
    store.close()?;
    Ok(())
}

/// Starts the service and kills it, until it ends by itself. Returns how often it was killed.
fn kill_until_done(root: &Path, lines: u64) -> Done<u64> {
    for kills in 0.. {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(root)
            .arg(lines.to_string())
            .stdin(Stdio::null())
            .spawn()?;
        // Longer each time, so that it ends on a slow machine too.
        let until = Instant::now() + Duration::from_millis(120 + 37 * (kills % 7) + 25 * kills);
        while Instant::now() < until {
            if let Some(ended) = child.try_wait()? {
                return if ended.success() { Ok(kills) } else { Err("the service failed".into()) };
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill()?;
        child.wait()?;
    }
    Err("it never ended".into())
}

/// Every line of the outputs: those that should be there, each once, and nothing else anywhere.
fn count(root: &Path, lines: u64) -> Done<usize> {
    let store = Store::options().open_read_only(root)?;
    let stage = store.stage("log")?;
    let each = lines / PRODUCERS;
    let mut seen = vec![vec![false; each as usize]; PRODUCERS as usize];
    let outputs = stage.outputs()?;
    for output in &outputs {
        let mut bytes = Vec::new();
        stage.copy_output(output.id, &mut bytes)?;
        for text in std::str::from_utf8(&bytes)?.lines() {
            let mut words = text.split(' ');
            let host = words.next().and_then(|word| word.strip_prefix("host-"));
            let host: u64 = host.ok_or("no host")?.parse()?;
            let n: u64 = words.next().ok_or("no number")?.parse()?;
            if format!("{text}\n") != line(host, n) {
                return Err(format!("another line than was sent: {text}").into());
            }
            let seen = seen.get_mut(host as usize).and_then(|host| host.get_mut(n as usize));
            if std::mem::replace(seen.ok_or("a line that nobody sent")?, true) {
                return Err(format!("twice: {text}").into());
            }
        }
    }
    let missing = seen.iter().flatten().filter(|is_there| !**is_there).count();
    if missing > 0 || !stage.groups()?.is_empty() || stage.view()?.rows() != each * PRODUCERS {
        return Err(format!("{missing} lines are missing, or something is left over").into());
    }
    Ok(outputs.len())
}

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, root, lines] = &arguments[..]
        && role == "serve"
    {
        return serve(Path::new(root), lines.parse()?);
    }
    let lines: u64 = arguments.first().map_or(Ok(LINES), |lines| lines.parse())?;
    let lines = lines - lines % PRODUCERS;
    let (folder, since) = (tempfile::tempdir()?, Instant::now());
    let root = folder.path().join("log.stone");
    Store::create(&root)?.close()?;
    let kills = kill_until_done(&root, lines)?;
    let seconds = since.elapsed().as_secs_f64();
    println!("{lines} lines of {PRODUCERS} producers, killed {kills} times, {seconds:.1} s");
    let outputs = count(&root, lines)?;
    println!("{outputs} outputs hold each line once; no part, no claim is left");
    if kills == 0 {
        println!("(it was done before it could be killed: ask for more lines)");
    }
    Ok(())
}
