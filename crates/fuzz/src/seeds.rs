//! What is changed: files of `testdumps`, an assembly, and made dumps and recordings.

use asynctriage_dump::{Addr, Fault, Memory, OpenOptions, PlainFile};
use asynctriage_dump_synth::Process;
use asynctriage_image::pe::{PeImage, PeLayout};
use std::path::Path;

/// An assembly with methods that await.
pub(crate) const ASSEMBLY: &[u8] = include_bytes!("../seeds/awaits.dll");
/// Symbols of a program.
pub(crate) const SYMBOLS: &[u8] = include_bytes!("../../../testdumps/WebIncident.pdb");
/// Bytes of a real dump's begin that are enough for all that is not memory.
const HEAD: usize = 128 << 10;

/// A file of `testdumps`, unpacked.
#[expect(clippy::expect_used, reason = "the repository has it")]
pub(crate) fn testdump(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let file = PlainFile::open(&folder.join(name), &OpenOptions::default());
    file.expect("a file of testdumps").bytes().to_vec()
}

/// Made processes: chains, circles, a blocked thread, a collection at work.
pub(crate) fn processes() -> Vec<Vec<u8>> {
    let chains = || {
        Process::new()
            .task("tcs")
            .lost_task("lost")
            .method("App.Client.SendAsync", 0, "tcs")
            .method("App.Handler.Run", 2, "App.Client.SendAsync#1")
            .method("App.Handler.Run", 2, "tcs")
            .removed_waiters("tcs", 2)
            .method("App.Lost.Run", 0, "lost")
            .completed("App.Done.Run")
            .blocked_thread("worker", "App.Handler.Run#1")
    };
    let circle = Process::new()
        .method("App.Ping.Run", 0, "App.Pong.Run#1")
        .method("App.Pong.Run", 0, "App.Ping.Run#1")
        .method("App.Outer.Run", 1, "App.Ping.Run#1");
    vec![
        chains().build(),
        circle.build(),
        chains().moving().build(),
        chains().marking().build(),
    ]
}

/// Dumps: made ones, and the begin of a real minidump.
pub(crate) fn dumps() -> Vec<Vec<u8>> {
    let mut all = processes();
    let mut minidump = testdump("semaphore-win-10.0.15.dmp.gz");
    minidump.truncate(HEAD);
    all.push(minidump);
    all
}

/// Made processes and a small real one.
pub(crate) fn living() -> Vec<Vec<u8>> {
    let mut all = processes();
    all.push(testdump("states-10.0.15.dmp.gz"));
    all
}

/// Recordings: real ones, small.
pub(crate) fn recordings() -> Vec<Vec<u8>> {
    vec![
        testdump("norundown-runtimeasync-11.0.0.nettrace.gz"),
        testdump("operations-runtimeasync-11.0.0.nettrace.gz"),
    ]
}

/// The metadata of [`ASSEMBLY`].
#[expect(clippy::expect_used, reason = "the seed has them")]
pub(crate) fn metadata() -> Vec<u8> {
    let file = Assembly;
    let image = PeImage::parse(&file, Addr::NULL, PeLayout::Flat).expect("an image");
    let (at, len) = image.metadata().expect("an assembly");
    file.slice(at, len.into()).expect("the whole file").to_vec()
}

/// [`ASSEMBLY`] as memory from address 0 on.
pub(crate) struct Assembly;

impl Memory for Assembly {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        ASSEMBLY.get(addr.0 as usize..)?.get(..len as usize)
    }

    fn run(&self, addr: Addr) -> u64 {
        (ASSEMBLY.len() as u64).saturating_sub(addr.0)
    }

    fn why_not(&self, _: Addr, _: u64) -> Option<Fault> {
        None
    }
}
