//! The socket on which a service reports `READY=1` (sd_notify(3)).

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixDatagram;

use crate::readiness::NotifyState;

/// The longest path of a socket, in bytes (unix(7)): with its final NUL it fills the address.
const PATH_BYTES: usize = 107;
/// The bytes of a datagram that are read; the rest is dropped.
const DATAGRAM_BYTES: usize = 4 * 1024;
/// The bytes of a status line that are kept.
const STATUS_CHARS: usize = 200;
/// Its file's name.
const NAME: &str = "notify";

/// A bound notify socket; its file is removed on drop.
///
/// The kernel closes file descriptors in messages, since none are requested; for a sender that uses
/// one as a barrier, this confirms that the message was received.
#[derive(Debug)]
pub(crate) struct NotifySocket {
    socket: UnixDatagram,
    path: PathBuf,
    file: (u64, u64),
}

impl NotifySocket {
    /// The socket path of an execution, for `NOTIFY_SOCKET`.
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join(NAME)
    }

    /// The socket's path.
    pub(crate) fn address(&self) -> &Path {
        &self.path
    }

    /// Binds the socket; an older one is replaced. Only its user can write to it.
    ///
    /// # Errors
    /// As bind(2); `InvalidFilename` where the path is longer than an address holds.
    pub(crate) fn bind(dir: &Path) -> io::Result<Self> {
        let path = Self::path(dir);
        if path.as_os_str().as_bytes().len() > PATH_BYTES {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let file = identity(&fs::symlink_metadata(&path)?);
        Ok(Self { socket, path, file })
    }

    /// The next message with a known key. Cancel safe.
    ///
    /// Pending forever once the socket has failed.
    pub(crate) async fn next(&self) -> NotifyState {
        let mut datagram = [0; DATAGRAM_BYTES];
        while let Ok(read) = self.socket.recv(&mut datagram).await {
            let state = parse(&datagram[..read]);
            if state != NotifyState::default() {
                return state;
            }
        }
        std::future::pending().await
    }
}

impl Drop for NotifySocket {
    /// Leaves the file of a later attempt's socket alone.
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|it| identity(&it) == self.file);
        if ours {
            let _best_effort = fs::remove_file(&self.path);
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Parses `KEY=value` lines; unknown keys and invalid UTF-8 are skipped.
fn parse(datagram: &[u8]) -> NotifyState {
    let mut state = NotifyState::default();
    for line in datagram.split(|byte| *byte == b'\n') {
        match line {
            b"READY=1" => state.ready = true,
            b"STOPPING=1" => state.stopping = true,
            b"WATCHDOG=1" => state.watchdog = true,
            [b'S', b'T', b'A', b'T', b'U', b'S', b'=', status @ ..] => {
                let status = std::str::from_utf8(status).ok();
                state.status = status.map(|text| text.chars().take(STATUS_CHARS).collect());
            }
            [..] => {}
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram as Sender;
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::time::timeout;

    use super::*;

    async fn receive(socket: &NotifySocket) -> NotifyState {
        let next = timeout(Duration::from_secs(10), socket.next()).await;
        next.expect("a word comes")
    }

    fn ready() -> NotifyState {
        NotifyState {
            ready: true,
            ..NotifyState::default()
        }
    }

    #[tokio::test]
    async fn words_come_in_their_order() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = NotifySocket::bind(dir.path()).expect("it binds");
        let sender = Sender::unbound().expect("a socket");
        let say = |word: &[u8]| {
            sender
                .send_to(word, dir.path().join("notify"))
                .expect("sent")
        };
        say(b"MAINPID=1\nFDSTORE=1");
        say(b"");
        say(b"STATUS=half way\nX=y\nREADY=1\n");
        say(b"STOPPING=1\nWATCHDOG=1");
        say(b"READY=10");
        say(b"READY=1");
        let half_way = NotifyState {
            status: Some("half way".to_owned()),
            ..ready()
        };
        assert_eq!(receive(&socket).await, half_way);
        let stopping = NotifyState {
            stopping: true,
            watchdog: true,
            ..NotifyState::default()
        };
        assert_eq!(receive(&socket).await, stopping);
        assert_eq!(receive(&socket).await, ready());
    }

    #[tokio::test]
    async fn a_long_word_is_cut_and_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = NotifySocket::bind(dir.path()).expect("it binds");
        let sender = Sender::unbound().expect("a socket");
        let mut word = b"READY=1\nSTATUS=".to_vec();
        word.resize(3 * DATAGRAM_BYTES, b'x');
        let path = NotifySocket::path(dir.path());
        sender.send_to(&word, &path).expect("sent");
        sender.send_to(b"STOPPING=1", &path).expect("sent");
        let first = receive(&socket).await;
        assert!(first.ready);
        assert_eq!(first.status.map(|text| text.len()), Some(STATUS_CHARS));
        assert!(receive(&socket).await.stopping);
    }

    #[tokio::test]
    async fn descriptors_that_come_along_are_closed() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = NotifySocket::bind(dir.path()).expect("it binds");
        let (mut theirs, ours) = std::io::pipe().expect("a pipe");
        send_with(&ours, &NotifySocket::path(dir.path()));
        drop(ours);
        assert_eq!(receive(&socket).await, ready());
        let gone = tokio::task::spawn_blocking(move || std::io::read_to_string(&mut theirs));
        let gone = timeout(Duration::from_secs(10), gone).await;
        let text = gone.expect("nobody holds it").expect("no panic");
        assert_eq!(text.expect("the end"), "");
    }

    fn send_with(descriptor: &std::io::PipeWriter, path: &Path) {
        use std::io::IoSlice;
        use std::os::fd::AsFd;

        use rustix::net::{
            SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr,
        };

        let sender = Sender::unbound().expect("a socket");
        let descriptors = [descriptor.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let to = SocketAddrUnix::new(path).expect("an address");
        let word = [IoSlice::new(b"READY=1\nBARRIER=1")];
        sendmsg_addr(&sender, &to, &word, &mut control, SendFlags::empty()).expect("sent");
    }

    #[tokio::test]
    async fn a_later_one_replaces_an_older() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = NotifySocket::path(dir.path());
        let first = NotifySocket::bind(dir.path()).expect("it binds");
        let second = NotifySocket::bind(dir.path()).expect("it binds again");
        drop(first);
        let sender = Sender::unbound().expect("a socket");
        sender
            .send_to(b"READY=1", &path)
            .expect("the later one is there");
        assert_eq!(receive(&second).await, ready());
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(second);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn paths_are_as_long_as_an_address_holds() {
        let dir = tempfile::tempdir().expect("a directory");
        let fits = PATH_BYTES - dir.path().as_os_str().len() - "//notify".len();
        let long = dir.path().join("x".repeat(fits));
        fs::create_dir(&long).expect("a directory");
        drop(NotifySocket::bind(&long).expect("it fits"));
        let longer = dir.path().join("x".repeat(fits + 1));
        fs::create_dir(&longer).expect("a directory");
        let error = NotifySocket::bind(&longer).expect_err("it does not");
        assert_eq!(error.kind(), io::ErrorKind::InvalidFilename);
    }

    proptest! {
        #[test]
        fn no_datagram_is_too_strange(datagram in prop::collection::vec(any::<u8>(), 0..256)) {
            let _state = parse(&datagram);
        }
    }
}
