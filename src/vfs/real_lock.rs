//! Byte-range locks that belong to the open file description: they end with the handle, and
//! closing another handle of the same file leaves them alone, as classic POSIX locks do not.

use std::fs;
use std::io;

use super::disk::{LockRange, Sharing};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod description {
    use super::{LockRange, Sharing, fs, io};
    use crate::vfs::disk::signed_range;
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::{self, c_int, flock};

    fn request(range: LockRange, kind: c_int) -> io::Result<flock> {
        let (start, len) = signed_range(range)?;
        let narrow = |what: c_int| libc::c_short::try_from(what).map_err(io::Error::other);
        Ok(flock {
            l_type: narrow(kind)?,
            l_whence: narrow(libc::SEEK_SET)?,
            l_start: start,
            l_len: len,
            // The kernel insists on 0 for locks of a description.
            l_pid: 0,
        })
    }

    fn wanted(sharing: Sharing) -> c_int {
        match sharing {
            Sharing::Shared => libc::F_RDLCK,
            Sharing::Exclusive => libc::F_WRLCK,
        }
    }

    pub(in crate::vfs) fn try_lock(
        file: &fs::File,
        range: LockRange,
        sharing: Sharing,
    ) -> io::Result<bool> {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&request(range, wanted(sharing))?)) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    pub(in crate::vfs) fn lock(
        file: &fs::File,
        range: LockRange,
        sharing: Sharing,
    ) -> io::Result<()> {
        let request = request(range, wanted(sharing))?;
        loop {
            match fcntl(file, FcntlArg::F_OFD_SETLKW(&request)) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    pub(in crate::vfs) fn unlock(file: &fs::File, range: LockRange) -> io::Result<()> {
        fcntl(file, FcntlArg::F_OFD_SETLK(&request(range, libc::F_UNLCK)?))?;
        Ok(())
    }

    pub(in crate::vfs) fn is_locked(file: &fs::File, range: LockRange) -> io::Result<bool> {
        let mut asked = request(range, libc::F_WRLCK)?;
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
        Ok(c_int::from(asked.l_type) != libc::F_UNLCK)
    }
}

/// Where such locks cannot be had safely, a lock of the whole file stands in, and a lock of a
/// part is refused.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod description {
    use super::{LockRange, Sharing, fs, io};

    fn whole(range: LockRange) -> io::Result<()> {
        if range == LockRange::WHOLE {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "no byte-range locks on this platform"))
    }

    pub(in crate::vfs) fn try_lock(
        file: &fs::File,
        range: LockRange,
        sharing: Sharing,
    ) -> io::Result<bool> {
        whole(range)?;
        let locked = match sharing {
            Sharing::Shared => file.try_lock_shared(),
            Sharing::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    pub(in crate::vfs) fn lock(
        file: &fs::File,
        range: LockRange,
        sharing: Sharing,
    ) -> io::Result<()> {
        whole(range)?;
        match sharing {
            Sharing::Shared => file.lock_shared(),
            Sharing::Exclusive => file.lock(),
        }
    }

    pub(in crate::vfs) fn unlock(file: &fs::File, range: LockRange) -> io::Result<()> {
        whole(range)?;
        file.unlock()
    }

    pub(in crate::vfs) fn is_locked(_file: &fs::File, _range: LockRange) -> io::Result<bool> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "locks cannot be asked for here"))
    }
}

pub(super) use description::{is_locked, lock, try_lock, unlock};
