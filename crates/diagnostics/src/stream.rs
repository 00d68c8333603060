//! A connection whose reads and writes give up after a limit.

#[cfg(not(unix))]
pub(crate) use elsewhere::Stream;
#[cfg(unix)]
pub(crate) use unix::Stream;

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// A connection to a socket.
    #[derive(Debug)]
    pub(crate) struct Stream(UnixStream);

    impl Stream {
        /// Connects; waits no longer than `limit` for a listener that has stopped to accept.
        pub(crate) fn connect(path: &Path, limit: Duration) -> io::Result<Self> {
            let (send, receive) = channel();
            let path = path.to_path_buf();
            // the standard library has no limit for this; a thread that hangs in it ends with the program
            thread::spawn(move || send.send(UnixStream::connect(path)));
            let stream = receive
                .recv_timeout(limit)
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            Self::new(stream, limit)
        }

        pub(crate) fn new(stream: UnixStream, limit: Duration) -> io::Result<Self> {
            let stream = Self(stream);
            stream.0.set_write_timeout(Some(limit))?;
            stream.limit_reads(limit)?;
            Ok(stream)
        }

        /// How long a read waits from now on before it fails.
        pub(crate) fn limit_reads(&self, limit: Duration) -> io::Result<()> {
            self.0.set_read_timeout(Some(limit))
        }
    }

    impl Read for Stream {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Stream {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.0.write(from)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io::{self, Read, Write};
    use std::path::Path;
    use std::time::Duration;

    /// No connection: there are no such sockets here.
    #[derive(Debug)]
    pub(crate) enum Stream {}

    impl Stream {
        pub(crate) fn connect(_: &Path, _: Duration) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn limit_reads(&self, _: Duration) -> io::Result<()> {
            match *self {}
        }
    }

    impl Read for Stream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            match *self {}
        }
    }

    impl Write for Stream {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            match *self {}
        }

        fn flush(&mut self) -> io::Result<()> {
            match *self {}
        }
    }
}
