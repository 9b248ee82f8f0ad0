//! Relays bytes of streams that cannot be passed: terminals, files.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Two threads between the standard streams and a socket.
#[derive(Debug)]
pub(crate) struct StreamRelay {
    output_thread: JoinHandle<()>,
}

impl StreamRelay {
    /// Starts to relay between standard input and output and `socket`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(socket: UnixStream) -> io::Result<Self> {
        let input_socket = socket.try_clone()?;
        std::thread::Builder::new().spawn(move || copy_input(input_socket))?;
        let output_thread = std::thread::Builder::new().spawn(move || copy_output(socket))?;
        Ok(Self { output_thread })
    }

    /// Waits until everything that the daemon wrote is relayed.
    pub(crate) fn finish(self) {
        drop(self.output_thread.join());
    }
}

fn copy_input(mut socket: UnixStream) {
    // Either side may close; then there is nothing left to relay.
    drop(io::copy(&mut io::stdin().lock(), &mut socket));
    drop(socket.shutdown(Shutdown::Write));
}

fn copy_output(mut socket: UnixStream) {
    #[expect(clippy::disallowed_methods, reason = "an MCP client reads it")]
    let mut stdout = io::stdout().lock();
    drop(io::copy(&mut socket, &mut FlushingWriter(&mut stdout)));
}

/// Flushes every write: a client waits for each response.
struct FlushingWriter<'a>(&'a mut io::StdoutLock<'static>);

impl Write for FlushingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.0.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
