//! The one place that starts threads: one that writes what lingered in the queue, and writes and
//! syncs for futures that wait, and wakes them; one that reclaims, where it is asked for; crews that
//! seal; and readers that decode.
//!
//! Wakers run here and nowhere else, as long as the store is open: here no lock is held, whatever
//! the thread holds that found a frame to be durable.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::reclaim::Budget;
use super::reclaim_thread::reclaim_once;
use super::store::{Inner, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::Level;

/// Stops its thread when dropped.
#[derive(Debug)]
pub(super) struct Linger {
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    is_over: bool,
    /// A future waits.
    is_asked: bool,
    /// A future can be woken.
    is_rung: bool,
    /// The queue is to be written now.
    is_full: bool,
}

/// Enough for a barrier, copying forward included, and for a commit of the manifest.
const STACK_BYTES: usize = 2 << 20;

impl Linger {
    /// Starts the thread. It holds the store weakly: the last handle ends it.
    pub(super) fn start(inner: &Arc<Inner>, linger_millis: u64) -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let (seen, weak) = (Arc::clone(&signal), Arc::downgrade(inner));
        let period = Duration::from_millis(linger_millis.max(1));
        if let Some(writer) = &inner.writer {
            let rung = Arc::clone(&signal);
            writer.journal.on_ring(move || {
                rung.tell(|told| told.is_rung = true);
            });
        }
        thread::Builder::new()
            .name("sealstone-linger".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&seen, &weak, period))
            .map_err(|e| Error::io("open", "linger thread", e))?;
        Ok(Self { signal })
    }

    /// Lets the thread look for futures at once; false when it ends and will not.
    pub(super) fn ask(&self) -> bool {
        !self.signal.tell(|told| told.is_asked = true)
    }

    /// Lets the thread write what is queued at once; false when it ends and will not.
    pub(super) fn ask_to_write(&self) -> bool {
        !self.signal.tell(|told| told.is_full = true)
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        self.signal.tell(|told| told.is_over = true);
    }
}

/// A thread that gives bytes back. Dropped, it ends, and is waited for.
#[derive(Debug)]
pub(super) struct Reclaimer {
    signal: Arc<Signal>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Reclaimer {
    /// Starts the thread. It holds the store weakly, and reclaims as `budget` says whenever it is asked.
    pub(super) fn start(inner: &Arc<Inner>, budget: Budget) -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let (seen, weak) = (Arc::clone(&signal), Arc::downgrade(inner));
        let thread = thread::Builder::new()
            .name("sealstone-reclaim".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || reclaim(&seen, &weak, budget))
            .map_err(|e| Error::io("start", "reclaim thread", e))?;
        Ok(Self { signal, thread: Some(thread) })
    }

    /// Lets the thread look whether something is to be given back.
    pub(super) fn ask(&self) {
        self.signal.tell(|told| told.is_asked = true);
    }
}

impl Drop for Reclaimer {
    fn drop(&mut self) {
        self.signal.tell(|told| told.is_over = true);
        // The thread may be the one that lets go of the store's last part.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            drop(thread.join());
        }
    }
}

/// Reclaims until told to end; a store that halted or closed ends it as well.
fn reclaim(signal: &Signal, weak: &Weak<Inner>, budget: Budget) {
    let _over = Over(signal);
    let mut is_more_left = true;
    loop {
        if is_more_left && signal.is_over() {
            return;
        }
        if !is_more_left && !signal.wait_until_asked() {
            return;
        }
        let Some(inner) = weak.upgrade() else { return };
        let mut is_working = true;
        survive(&Store::within(&inner), |store| {
            (is_working, is_more_left) = reclaim_once(store, budget);
        });
        if !is_working || inner.core.check_write("reclaim").is_err() {
            return;
        }
    }
}

/// Threads that do the same work.
#[derive(Debug)]
pub(super) struct Crew {
    threads: Vec<thread::JoinHandle<()>>,
}

impl Crew {
    /// Starts `count` threads that each run `work` once.
    pub(super) fn start(
        name: &str,
        count: usize,
        work: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self> {
        let start = |_| {
            let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
            builder.spawn(work.clone()).map_err(|e| Error::io("start", name, e))
        };
        Ok(Self { threads: (0..count).map(start).collect::<Result<_>>()? })
    }

    /// Returns when all have ended. A panic was told by whoever panicked.
    pub(super) fn join(self) {
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// The most threads that read at once.
const READERS_MAX: usize = 8;

/// What readers have done and what was taken of it.
struct Line<T> {
    /// The next one to be worked on.
    next: u64,
    /// How many were taken, in order.
    taken: u64,
    done: BTreeMap<u64, Result<T>>,
    is_over: bool,
}

/// Says that nothing more is wanted, however taking ends.
struct Enough<'l, T>(&'l Mutex<Line<T>>, &'l Condvar);

impl<T> Drop for Enough<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.1.notify_all();
    }
}

impl Store {
    /// Does `work` for each number below `count` and hands the results on, in order; the first
    /// error ends it. Where the store may run threads several are at work at once, and twice as
    /// many results as threads are held at most.
    pub(crate) fn in_order<T: Send>(
        &self,
        count: u64,
        work: &(dyn Fn(u64) -> Result<T> + Sync),
        take: &mut dyn FnMut(T) -> Result<()>,
    ) -> Result<()> {
        // How many processors there are is asked of files: not for one piece of work.
        let threads = match count > 1 && self.core().limits.background {
            true => thread::available_parallelism().map_or(1, |n| n.get().min(READERS_MAX)),
            false => 1,
        };
        if threads < 2 || count < 2 {
            return (0..count).try_for_each(|at| take(work(at)?));
        }
        in_order(threads.min(usize::try_from(count).unwrap_or(threads)), count, work, take)
    }
}

fn in_order<T: Send>(
    threads: usize,
    count: u64,
    work: &(dyn Fn(u64) -> Result<T> + Sync),
    take: &mut dyn FnMut(T) -> Result<()>,
) -> Result<()> {
    let line = Line { next: 0, taken: 0, done: BTreeMap::new(), is_over: false };
    let (line, changed) = (Mutex::new(line), Condvar::new());
    let held_max = 2 * threads as u64;
    let turns = || {
        loop {
            let mut now = line.lock();
            while !now.is_over && now.next < count && now.next >= now.taken + held_max {
                changed.wait(&mut now);
            }
            if now.is_over || now.next >= count {
                return;
            }
            let at = now.next;
            now.next += 1;
            drop(now);
            let done = catch_unwind(AssertUnwindSafe(|| work(at))).unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Halted, "read", "a reader", "a panic interrupted it"))
            });
            line.lock().done.insert(at, done);
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        let _enough = Enough(&line, &changed);
        for n in 0..threads {
            let builder = thread::Builder::new().name("sealstone-read".to_owned());
            match builder.stack_size(STACK_BYTES).spawn_scoped(scope, turns) {
                Ok(_) => {}
                // Fewer do as well; without any nobody would come.
                Err(e) if n == 0 => return Err(Error::io("start", "a reader", e)),
                Err(_) => break,
            }
        }
        for at in 0..count {
            let mut now = line.lock();
            let done = loop {
                match now.done.remove(&at) {
                    Some(done) => break done,
                    None => changed.wait(&mut now),
                }
            };
            now.taken = at + 1;
            drop(now);
            changed.notify_all();
            take(done?)?;
        }
        Ok(())
    })
}

impl Store {
    /// Does `work` for each number below `count`, at most `threads` at once, and hands the results on as
    /// they come, errors too; where the store may run no threads one after the other, here. A panic is
    /// an error of that one.
    pub(crate) fn at_once<T: Send>(
        &self,
        threads: usize,
        count: u64,
        work: &(dyn Fn(u64) -> Result<T> + Sync),
        take: &mut dyn FnMut(u64, Result<T>),
    ) {
        let surely = |at| {
            catch_unwind(AssertUnwindSafe(|| work(at))).unwrap_or_else(|_| {
                let cause = "a panic interrupted it; nothing of it was kept";
                Err(Error::new(ErrorKind::CallerPanicked, "work", format!("number {at}"), cause))
            })
        };
        let threads = threads.min(usize::try_from(count).unwrap_or(threads));
        if threads < 2 || !self.core().limits.background {
            return (0..count).for_each(|at| take(at, surely(at)));
        }
        at_once(threads, count, &surely, take);
    }
}

fn at_once<T: Send>(
    threads: usize,
    count: u64,
    work: &(dyn Fn(u64) -> Result<T> + Sync),
    take: &mut dyn FnMut(u64, Result<T>),
) {
    let line = Line { next: 0, taken: 0, done: BTreeMap::new(), is_over: false };
    let (line, changed) = (Mutex::new(line), Condvar::new());
    let turns = || {
        loop {
            let mut now = line.lock();
            if now.is_over || now.next >= count {
                return;
            }
            let at = now.next;
            now.next += 1;
            drop(now);
            let done = work(at);
            line.lock().done.insert(at, done);
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        let _enough = Enough(&line, &changed);
        let start = |_: &usize| {
            let builder = thread::Builder::new().name("sealstone-work".to_owned());
            builder.stack_size(STACK_BYTES).spawn_scoped(scope, turns).is_ok()
        };
        if (0..threads).take_while(start).count() == 0 {
            turns();
        }
        for _ in 0..count {
            let mut now = line.lock();
            let (at, done) = loop {
                match now.done.pop_first() {
                    Some(done) => break done,
                    None => changed.wait(&mut now),
                }
            };
            drop(now);
            take(at, done);
        }
    });
}

impl Signal {
    /// Tells the thread something; returns whether it is over.
    fn tell(&self, what: impl FnOnce(&mut Told)) -> bool {
        let mut told = self.told.lock();
        what(&mut told);
        self.changed.notify_all();
        told.is_over
    }

    /// Waits until something is to be done, `period` at most; whether the queue is to be written now,
    /// or nothing when it is over.
    fn wait(&self, period: Duration) -> Option<bool> {
        let mut told = self.told.lock();
        if !told.is_over && !told.is_asked && !told.is_rung && !told.is_full {
            self.changed.wait_for(&mut told, period);
        }
        let is_full = told.is_full;
        (told.is_asked, told.is_rung, told.is_full) = (false, false, false);
        (!told.is_over).then_some(is_full)
    }
}

impl Signal {
    fn is_over(&self) -> bool {
        self.told.lock().is_over
    }

    /// Waits until it is asked, however long; false when it is over.
    fn wait_until_asked(&self) -> bool {
        let mut told = self.told.lock();
        while !told.is_over && !told.is_asked {
            self.changed.wait(&mut told);
        }
        told.is_asked = false;
        !told.is_over
    }
}

/// Says that the thread is over, however it ends: then nobody relies on it.
struct Over<'a>(&'a Signal);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.tell(|told| told.is_over = true);
    }
}

/// Lets others go on.
pub(super) fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

fn run(signal: &Signal, weak: &Weak<Inner>, period: Duration) {
    let _over = Over(signal);
    while let Some(is_full) = signal.wait(period) {
        let Some(inner) = weak.upgrade() else { return };
        survive(&Store::within(&inner), |store| linger(store, is_full));
    }
}

/// Does a piece of work that may panic: nobody would do it again, so the store halts, which tells
/// everybody who waits.
fn survive(store: &Store, work: impl FnOnce(&Store)) {
    if catch_unwind(AssertUnwindSafe(|| work(store))).is_err() {
        if let Some(cause) = store.inner.writer.as_ref().and_then(|w| w.journal.poisoned()) {
            // What those who waited for the journal were told.
            store.core().halt(&cause);
        }
        let cause = "a panic interrupted it";
        store.core().halt(&Error::new(ErrorKind::Halted, "write", "linger thread", cause));
    }
}

fn linger(store: &Store, is_full: bool) {
    let Some(writer) = &store.inner.writer else { return };
    writer.journal.wake();
    if store.core().check_write("linger").is_err() {
        // Closed, or halted: nobody waits any more.
        return writer.journal.wake();
    }
    let mut is_idle = true;
    // Whoever asked for less need not wait for the sync.
    for level in [Level::Written, Level::Durable] {
        if writer.journal.is_wanted(level) {
            is_idle = false;
            // A failure reaches each future that it is about; there is nobody else to tell.
            match writer.journal.serve(level).inspect_err(|e| store.note_journal_failure(e)) {
                Ok(()) if level == Level::Durable => {
                    let kept = store.core().check_not_taken_over();
                    store.core().note_untidy(kept.and_then(|()| store.keep_budget()));
                }
                _ => {}
            }
            writer.journal.wake();
            store.core().bell.ring();
        }
    }
    let is_due = is_idle && writer.journal.linger_due(store.core().disk.monotonic_nanos());
    if !is_full && !is_due {
        return;
    }
    let written = match store.core().manifest.meta().single_file {
        // There only a commit takes a record out of memory.
        true => writer.journal.barrier(),
        false => writer.journal.flush(),
    };
    store.core().bell.ring();
    if let Err(e) = written {
        store.note_journal_failure(&e);
        store.core().condition.warn(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Append;
    use crate::journal::Seat;
    use crate::limits::Limits;
    use std::task::{Poll, Waker};

    /// Is work that panics the end of whoever waits for it, or told to them?
    #[test]
    fn p8_a_panic_in_the_thread_halts_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { linger_millis: 3_600_000, ballast_bytes: 0, ..Limits::default() };
        let store = Store::options().limits(limits).create(dir.path().join("s")).unwrap();
        let stream = store.create_stream("s").unwrap();
        let ticket = store.append(vec![Append { stream, payload: vec![1] }]).unwrap().ticket;
        let journal = &store.inner.writer.as_ref().unwrap().journal;
        let (mut seat, waker) = (Seat::default(), Waker::noop());
        assert!(journal.poll(&ticket, Level::Durable, &mut seat, waker).is_pending());
        survive(&store, |_| panic!("in the thread"));
        let told = journal.poll(&ticket, Level::Durable, &mut seat, waker);
        assert!(matches!(told, Poll::Ready(Err(e)) if e.kind() == ErrorKind::Halted));
        assert!(store.health().halted.is_some());
    }

    /// Do results come in order, few at a time, whoever is slow; and does the first error end it?
    #[test]
    fn rec45_readers_hand_on_in_order_and_hold_few() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (begun, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut seen = Vec::new();
        let work = |at: u64| {
            let ahead = begun.fetch_add(1, Ordering::SeqCst) - taken.load(Ordering::SeqCst);
            assert!(ahead <= 3 * 2 + 1, "{ahead} are held");
            Ok(at * 2)
        };
        in_order(3, 1000, &work, &mut |twice| {
            seen.push(twice);
            taken.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, (0..1000).map(|at| at * 2).collect::<Vec<_>>());
        let mut seen = 0;
        let refuse = |at: u64| match at {
            500 => Err(Error::invalid("read", "here", "no")),
            700 => panic!("after the first error"),
            at => Ok(at),
        };
        let ended = in_order(3, 1_000_000_000, &refuse, &mut |_| {
            seen += 1;
            Ok(())
        });
        assert_eq!((ended.unwrap_err().kind(), seen), (ErrorKind::Invalid, 500));
        let ended = in_order(2, 9, &|_| -> Result<()> { panic!("here") }, &mut |()| Ok(()));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Halted);
        let full = |_| Err(Error::invalid("read", "taker", "enough"));
        assert!(in_order(2, 1_000_000_000, &|at| Ok(at), &mut { full }).is_err());
    }

    /// Is each piece of work done once and handed on, few at a time, whatever becomes of others?
    #[test]
    fn stg22_work_at_once_is_bounded_and_each_has_its_own_end() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (busy, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |at: u64| {
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(1));
            busy.fetch_sub(1, Ordering::SeqCst);
            match at {
                7 => Err(Error::invalid("work", "here", "no")),
                at => Ok(at * 2),
            }
        };
        let mut ends = BTreeMap::new();
        at_once(3, 100, &work, &mut |at, done| {
            let done = done.map_err(|e| e.kind());
            assert!(ends.insert(at, done).is_none());
        });
        assert_eq!(ends.len(), 100);
        let is_right = |(at, done): (&u64, &std::result::Result<u64, ErrorKind>)| match at {
            7 => *done == Err(ErrorKind::Invalid),
            at => *done == Ok(at * 2),
        };
        assert!(ends.iter().all(is_right));
        assert!((2..=3).contains(&most.load(Ordering::SeqCst)), "{most:?}");
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { ballast_bytes: 0, ..Limits::default() };
        let store = Store::options().limits(limits).create(dir.path().join("s")).unwrap();
        for threads in [1, 4] {
            let mut panics = 0;
            let work = |at: u64| if at.is_multiple_of(2) { panic!("at {at}") } else { Ok(()) };
            store.at_once(threads, 10, &work, &mut |at, done| {
                let panicked = done.is_err_and(|e| e.kind() == ErrorKind::CallerPanicked);
                assert_eq!(panicked, at % 2 == 0);
                panics += u64::from(panicked);
            });
            assert_eq!(panics, 5);
        }
    }

    /// Does a thread that ended go on promising that it will look?
    #[test]
    fn a_thread_that_ended_is_not_relied_on() {
        let signal = Arc::new(Signal::default());
        let linger = Linger { signal: Arc::clone(&signal) };
        assert!(linger.ask());
        run(&signal, &Weak::new(), Duration::from_millis(1));
        assert!(!linger.ask());
    }
}
