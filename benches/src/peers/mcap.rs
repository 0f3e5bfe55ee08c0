//! MCAP: one file that is complete, and durable, when it is finished; chunks and indexes as its library
//! makes them, its own number of threads for zstd. A record's number is its log time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mcap::records::MessageHeader;
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader, IndexedReaderOptions};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader};
use mcap::{Compression, Summary, WriteOptions, Writer};

use super::{Each, Peer};
use crate::Outcome;
use crate::payload::Source;

pub struct Mcap {
    path: PathBuf,
    state: State,
}

enum State {
    Writing { writer: Box<Writer<BufWriter<File>>>, channel: u16 },
    Reading { file: File, summary: Box<Summary>, chunk: Vec<u8> },
    Nothing,
}

impl Mcap {
    pub fn open(dir: &Path, compressed: bool) -> Outcome<Self> {
        let path = dir.join("peer.mcap");
        if path.exists() {
            let state = reading(&path)?;
            return Ok(Self { path, state });
        }
        let options = WriteOptions::new()
            .compression(compressed.then_some(Compression::Zstd))
            .compression_level(1);
        let mut writer = options.create(BufWriter::new(File::create(&path)?))?;
        let channel = writer.add_channel(0, "r", "", &BTreeMap::new())?;
        Ok(Self { path, state: State::Writing { writer: Box::new(writer), channel } })
    }

    fn messages(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let State::Reading { file, summary, chunk } = &mut self.state else {
            return Err("the file is not finished".into());
        };
        let options =
            IndexedReaderOptions::new().starting_at(numbers.start).ending_before(numbers.end);
        let mut reader = IndexedReader::new_with_options(summary, options)?;
        while let Some(event) = reader.next_event() {
            match event? {
                IndexedReadEvent::ReadChunkRequest { offset, length } => {
                    chunk.resize(length, 0);
                    file.read_exact_at(chunk, offset)?;
                    reader.insert_chunk_record_data(offset, chunk)?;
                }
                IndexedReadEvent::Message { header, data } => each(header.log_time, data)?,
            }
        }
        Ok(())
    }
}

fn reading(path: &Path) -> Outcome<State> {
    let mut file = File::open(path)?;
    let mut reader = SummaryReader::new();
    while let Some(event) = reader.next_event() {
        match event? {
            SummaryReadEvent::ReadRequest(need) => {
                let read = file.read(reader.insert(need))?;
                reader.notify_read(read);
            }
            SummaryReadEvent::SeekRequest(to) => reader.notify_seeked(file.seek(to)?),
        }
    }
    let summary = Box::new(reader.finish().ok_or("the file has no summary")?);
    Ok(State::Reading { file, summary, chunk: Vec::new() })
}

impl Peer for Mcap {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let State::Writing { writer, channel } = &mut self.state else {
            return Err("the file is finished".into());
        };
        for number in numbers {
            let header = MessageHeader {
                channel_id: *channel,
                sequence: number as u32,
                log_time: number,
                publish_time: number,
            };
            writer.write_to_known_channel(&header, source.record(number))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let State::Writing { mut writer, .. } =
            std::mem::replace(&mut self.state, State::Nothing)
        {
            writer.finish()?;
            writer.into_inner().into_inner().map_err(|e| e.into_error())?.sync_all()?;
            self.state = reading(&self.path)?;
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let mut found = None;
        self.messages(number..number + 1, &mut |_, data| {
            found = Some(data.to_vec());
            Ok(())
        })?;
        Ok(found.ok_or_else(|| format!("record {number} is missing"))?)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        self.messages(numbers, each)
    }

    fn count(&mut self) -> Outcome<u64> {
        let State::Reading { summary, .. } = &self.state else {
            return Err("the file is not finished".into());
        };
        Ok(summary.stats.as_ref().map_or(0, |stats| stats.message_count))
    }
}
