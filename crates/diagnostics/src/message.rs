//! Messages: a header of 20 bytes, then the payload; all numbers little-endian.
//!
//! Header: 14 bytes `DOTNET_IPC_V1` and a zero, u16 size of the whole message, u8 set of commands, u8 command, u16 zero.
//! Texts are u32 count of UTF-16 units with the closing zero, then the units; nothing at all is count 0.

use crate::{Error, ErrorCode};
use std::io::{Read, Write};
use std::time::Duration;

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const HEADER: usize = 20;
/// The set of answers; within it, 0 means done and 0xff means refused.
const ANSWERS: u8 = 0xff;
const DONE: u8 = 0;
const REFUSED: u8 = 0xff;
/// Largest message: its size is 16 bits wide.
const MAX_MESSAGE: usize = u16::MAX as usize;

/// A command of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) set: u8,
    pub(crate) id: u8,
}

impl Command {
    pub(crate) const fn new(name: &'static str, set: u8, id: u8) -> Self {
        Self { name, set, id }
    }
}

/// The payload of a command.
#[derive(Debug, Default)]
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return self.u32(0);
        }
        let units = text.encode_utf16().chain([0]);
        // a text of 4 billion units is refused as too long, whatever its count says
        self.u32(u32::try_from(units.clone().count()).unwrap_or(u32::MAX));
        self.0.extend(units.flat_map(u16::to_le_bytes));
    }

    /// The whole message.
    pub(crate) fn message(self, command: Command) -> Result<Vec<u8>, Error> {
        let size = HEADER.saturating_add(self.0.len());
        let size = u16::try_from(size).map_err(|_| Error::TooLong(MAX_MESSAGE))?;
        let mut message = Vec::with_capacity(usize::from(size));
        message.extend(MAGIC);
        message.extend(size.to_le_bytes());
        message.extend([command.set, command.id, 0, 0]);
        message.extend(self.0);
        Ok(message)
    }
}

/// Sends a command and reads what it is answered with: the payload of an answer that says it is done.
///
/// `limit` is only for the message of an error: the stream itself gives up after it.
pub(crate) fn exchange(
    stream: &mut (impl Read + Write),
    command: Command,
    payload: Payload,
    limit: Duration,
) -> Result<Answer, Error> {
    let message = payload.message(command)?;
    stream
        .write_all(&message)
        .and_then(|()| stream.flush())
        .map_err(|e| Error::from_io("sending a command", limit, e))?;
    answer(stream, command, limit)
}

fn answer(stream: &mut impl Read, command: Command, limit: Duration) -> Result<Answer, Error> {
    let mut read = |into: &mut [u8]| {
        stream
            .read_exact(into)
            .map_err(|e| Error::from_io("waiting for the answer", limit, e))
    };
    let mut header = [0_u8; HEADER];
    read(&mut header)?;
    let mut fields = Answer::new(header.to_vec());
    if fields.array::<14>()? != *MAGIC {
        return Err(Error::Protocol("it begins with other bytes".into()));
    }
    let size = usize::from(fields.u16()?);
    let (set, id) = (fields.u8()?, fields.u8()?);
    let len = size
        .checked_sub(HEADER)
        .ok_or_else(|| Error::Protocol(format!("a message of {size} bytes")))?;
    let mut body = vec![0; len];
    read(&mut body)?;
    let mut body = Answer::new(body);
    match (set, id) {
        (ANSWERS, DONE) => Ok(body),
        (ANSWERS, REFUSED) => Err(Error::Refused {
            command: command.name,
            code: ErrorCode::new(body.u32()?),
        }),
        _ => Err(Error::Protocol(format!("a message of kind {set}, {id}"))),
    }
}

/// The payload of an answer, read from its front.
#[derive(Debug)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    at: usize,
}

impl Answer {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, len: usize) -> Result<&[u8], Error> {
        let end = self.at.saturating_add(len);
        let taken = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| Error::Protocol(format!("it ends after {} bytes", self.bytes.len())))?;
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A text without its closing zero; what is not Unicode in it is replaced.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let units = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        let bytes = self.take(units.saturating_mul(2))?;
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| pair.iter().rev().fold(0, |n, b| n << 8 | u16::from(*b)))
            .collect();
        let text = units.strip_suffix(&[0]).unwrap_or(&units);
        Ok(String::from_utf16_lossy(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    const COMMAND: Command = Command::new("Test", 4, 1);

    /// What arrives, and what was written.
    struct Pipe(Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Pipe {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Pipe {
        fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
            self.1.write(from)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn ask(answer: Vec<u8>) -> Result<Answer, Error> {
        let mut pipe = Pipe(Cursor::new(answer), Vec::new());
        exchange(
            &mut pipe,
            COMMAND,
            Payload::default(),
            Duration::from_secs(1),
        )
    }

    fn message(set: u8, id: u8, payload: &[u8]) -> Vec<u8> {
        let size = u16::try_from(20 + payload.len()).expect("small");
        [&MAGIC[..], &size.to_le_bytes(), &[set, id, 0, 0], payload].concat()
    }

    #[test]
    fn a_command_is_a_header_and_its_payload() {
        let mut payload = Payload::default();
        payload.u8(1);
        payload.u32(2);
        payload.text("ab");
        payload.text("");
        let message = payload.message(COMMAND).expect("short");
        let expected =
            b"DOTNET_IPC_V1\0\x27\0\x04\x01\0\0\x01\x02\0\0\0\x03\0\0\0a\0b\0\0\0\0\0\0\0";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_command_that_is_too_long_is_not_sent() {
        let mut payload = Payload::default();
        payload.text(&"x".repeat(40_000));
        let error = payload.message(COMMAND).expect_err("80,000 bytes");
        assert!(matches!(error, Error::TooLong(65_535)));
    }

    #[test]
    fn answers_are_read() {
        let mut done = ask(message(
            0xff,
            0,
            &[5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'x', 0],
        ))
        .expect("an answer");
        assert_eq!(done.u64().expect("a number"), 5);
        assert_eq!(done.text().expect("a text without a zero"), "x");
        assert!(matches!(done.u8(), Err(Error::Protocol(_))));
        let refused = ask(message(0xff, 0xff, &[0x85, 0x13, 0x13, 0x80])).expect_err("refused");
        assert!(refused.is_unknown_command());
    }

    #[test]
    fn wrong_answers_are_refused() {
        let mut magic = message(0xff, 0, &[]);
        magic[0] = b'X';
        let mut short = message(0xff, 0, &[]);
        short[14] = 19;
        for (bytes, says) in [
            (magic, "other bytes"),
            (short, "19 bytes"),
            (message(4, 0, &[]), "kind 4, 0"),
            (message(0xff, 0xff, &[1]), "ends after 1"),
        ] {
            let error = ask(bytes).expect_err(says);
            assert!(
                matches!(&error, Error::Protocol(text) if text.contains(says)),
                "{error}"
            );
        }
        let cut = ask(message(0xff, 0, &[1, 2])[..21].to_vec()).expect_err("cut");
        assert!(matches!(cut, Error::Io { .. }));
    }

    #[test]
    fn a_text_longer_than_its_message_is_refused() {
        let mut answer = Answer::new(vec![0xff, 0xff, 0xff, 0xff, b'a', 0]);
        assert!(matches!(answer.text(), Err(Error::Protocol(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = ask(bytes.clone());
            let framed = message(0xff, 0, &bytes);
            let mut answer = ask(framed).expect("the frame is right");
            let _ = answer.text().and_then(|_| answer.text());
        }
    }
}
