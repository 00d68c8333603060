//! What a process says of itself.

use crate::Error;
use crate::message::Answer;

/// What a process says of itself; texts are the process's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its number, as it sees it: in a container another one than outside.
    pub pid: u64,
    /// A number that no other run of the runtime has.
    pub cookie: [u8; 16],
    /// Its command line.
    pub command_line: String,
    /// Its operating system, such as `Linux`.
    pub os: String,
    /// Its processor, such as `x64`.
    pub arch: String,
    /// The assembly with its entry point; empty before managed code runs.
    pub entry_assembly: String,
    /// Version of the runtime, such as `11.0.0`, perhaps with `-suffix` or `+commit`.
    pub version: String,
}

impl ProcessInfo {
    /// The answer to `ProcessInfo2`, which .NET 6 to 11 know.
    pub(crate) fn read(answer: &mut Answer) -> Result<Self, Error> {
        Ok(Self {
            pid: answer.u64()?,
            cookie: answer.array()?,
            command_line: answer.text()?,
            os: answer.text()?,
            arch: answer.text()?,
            entry_assembly: answer.text()?,
            version: answer.text()?,
        })
    }

    /// The first number of the version; `None` when there is none.
    #[must_use]
    pub fn major(&self) -> Option<u32> {
        self.version.split(['.', '-', '+']).next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_a_number_or_nothing() {
        for (version, major) in [
            ("11.0.0", Some(11)),
            ("10.0.15-servicing.1+abc", Some(10)),
            ("9", Some(9)),
            ("", None),
            ("eleven", None),
        ] {
            let info = ProcessInfo {
                pid: 1,
                cookie: [0; 16],
                command_line: String::new(),
                os: String::new(),
                arch: String::new(),
                entry_assembly: String::new(),
                version: version.into(),
            };
            assert_eq!(info.major(), major, "{version}");
        }
    }
}
