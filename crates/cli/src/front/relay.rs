//! Moves bytes where a stream cannot be handed over: terminals, files.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Two threads between our standard streams and a socket.
#[derive(Debug)]
pub(crate) struct Relay {
    outward: JoinHandle<()>,
}

impl Relay {
    /// Begins to move bytes between standard input and output and `near`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(near: UnixStream) -> io::Result<Self> {
        let inward = near.try_clone()?;
        std::thread::Builder::new().spawn(move || bring_in(inward))?;
        let outward = std::thread::Builder::new().spawn(move || bring_out(near))?;
        Ok(Self { outward })
    }

    /// Waits until everything the daemon wrote is out.
    pub(crate) fn finish(self) {
        drop(self.outward.join());
    }
}

fn bring_in(mut near: UnixStream) {
    // Either side may go away; then there is nothing left to move.
    drop(io::copy(&mut io::stdin().lock(), &mut near));
    drop(near.shutdown(Shutdown::Write));
}

fn bring_out(mut near: UnixStream) {
    #[expect(clippy::disallowed_methods, reason = "an MCP client reads it")]
    let mut stdout = io::stdout().lock();
    drop(io::copy(&mut near, &mut Flushed(&mut stdout)));
}

/// Writes through: a client waits for each answer.
struct Flushed<'a>(&'a mut io::StdoutLock<'static>);

impl Write for Flushed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.0.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
