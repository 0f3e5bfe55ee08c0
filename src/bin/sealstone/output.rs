//! Where words go: results to stdout, everything else to stderr. A closed pipe ends in silence.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sealstone::Error;
use serde_json::{Map, Value, json};

use super::args::{Global, When};
use super::failure;
use super::words::shown;

/// The version of every JSON object.
const SCHEMA: u32 = 1;

/// What ends a command early.
#[derive(Debug)]
pub enum End {
    /// It failed.
    Failed(Error),
    /// Nobody reads our output any more.
    PipeClosed,
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let broken = cause.downcast_ref::<io::Error>();
            if broken.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
                return Self::PipeClosed;
            }
            source = cause.source();
        }
        Self::Failed(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Failed(Error::io("write", "standard output", error)),
        }
    }
}

/// The two streams and how they are used.
#[derive(Debug)]
pub struct Output {
    pub is_json: bool,
    pub is_quiet: bool,
    pub is_verbose: bool,
    pub allow_shared_root: bool,
    is_coloured: bool,
    shows_progress: bool,
    stdout: io::BufWriter<io::Stdout>,
}

impl Output {
    pub fn new(global: &Global) -> Self {
        let terminal = io::stderr().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let on = |when, otherwise| match when {
            When::Always => true,
            When::Never => false,
            When::Auto => otherwise,
        };
        Self {
            is_json: global.json,
            is_quiet: global.quiet,
            is_verbose: global.verbose,
            allow_shared_root: global.allow_shared_root,
            is_coloured: on(global.color, terminal && !no_colour),
            shows_progress: on(global.progress, terminal && !global.quiet),
            stdout: io::BufWriter::with_capacity(64 << 10, io::stdout()),
        }
    }

    /// How every command opens its store.
    pub fn opening(&self) -> sealstone::Options {
        sealstone::Store::options().allow_shared_root(self.allow_shared_root)
    }

    /// A line of the result.
    pub fn line(&mut self, text: &str) -> Result<(), End> {
        self.stdout.write_all(text.as_bytes())?;
        Ok(self.stdout.write_all(b"\n")?)
    }

    /// A line that `--quiet` leaves out.
    pub fn remark(&mut self, text: &str) -> Result<(), End> {
        if self.is_quiet { Ok(()) } else { self.line(text) }
    }

    /// The one JSON object of a short command.
    pub fn object(&mut self, mut object: Map<String, Value>) -> Result<(), End> {
        object.insert("schema".to_owned(), json!(SCHEMA));
        self.line(&Value::Object(object).to_string())
    }

    /// One of the JSON objects of a long command.
    pub fn message(&mut self, kind: &str, fields: Value) -> Result<(), End> {
        let mut object = Map::new();
        object.insert("message_type".to_owned(), json!(kind));
        object.insert("schema".to_owned(), json!(SCHEMA));
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        self.line(&Value::Object(object).to_string())
    }

    /// Raw bytes of the result.
    pub fn stdout(&mut self) -> &mut impl Write {
        &mut self.stdout
    }

    /// Something that the user should know and that is no failure.
    pub fn warn(&mut self, text: &str) {
        let label = if self.is_coloured { "\x1b[1;33mwarning:\x1b[0m" } else { "warning:" };
        let _ = writeln!(io::stderr(), "{label} {}", shown(text));
    }

    /// Tells a failure, and what can be done about it.
    pub fn fail(&mut self, error: &Error, store_of_environment: bool) -> ExitCode {
        let code = failure::exit_code(error);
        let hint = failure::hint(error, store_of_environment);
        if self.is_json {
            let fields = json!({
                "kind": error.kind().name(), "operation": error.operation(),
                "place": error.place(), "cause": error.cause(), "chain": error.chain(),
                "hint": hint, "exit_code": code,
            });
            let _ = self.message("error", fields);
        }
        let _ = self.stdout.flush();
        let label = if self.is_coloured { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
        let mut stderr = io::stderr().lock();
        let _ = writeln!(stderr, "{label} {}", shown(&error.chain()));
        if let Some(hint) = hint {
            let _ = writeln!(stderr, "hint: {hint}");
        }
        ExitCode::from(code)
    }

    /// Hands everything on.
    pub fn finish(&mut self) -> Result<(), End> {
        Ok(self.stdout.flush()?)
    }

    /// A bar for a length that is known, a spinner for one that is not.
    pub fn progress(&self, what: &str, length: Option<u64>, in_bytes: bool) -> ProgressBar {
        if !self.shows_progress {
            return ProgressBar::hidden();
        }
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(length, target).with_message(what.to_owned());
        let template = match (length.is_some(), in_bytes) {
            (true, true) => "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            (true, false) => "{msg} [{bar:30}] {human_pos}/{human_len} {eta}",
            (false, true) => "{msg} {spinner} {bytes} {bytes_per_sec}",
            (false, false) => "{msg} {spinner} {human_pos}",
        };
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}
