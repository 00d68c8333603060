use super::*;
use crate::test_memory::Pieces;
use proptest::prelude::*;

const BASE: u64 = 0x7ffe_0000_0000;
const NT: usize = 0x80;
pub(crate) const OPTIONAL: usize = NT + 24;
pub(crate) const DIRECTORIES: usize = OPTIONAL + 112;
pub(crate) const SECTIONS: usize = DIRECTORIES + 16 * 8;
/// Where the sections begin in the loaded image and in the file.
pub(crate) const TEXT: (u32, u32) = (0x2000, 0x200);
pub(crate) const DATA: (u32, u32) = (0x4000, 0x1200);

pub(crate) fn put(bytes: &mut [u8], at: usize, values: &[u32]) {
    for (at, value) in (at..).step_by(4).zip(values) {
        bytes[at..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

pub(crate) fn header() -> Vec<u8> {
    let mut page = vec![0; 0x200];
    page[..2].copy_from_slice(b"MZ");
    put(&mut page, 0x3c, &[NT as u32]);
    page[NT..][..4].copy_from_slice(b"PE\0\0");
    put(&mut page, NT + 4, &[0x0002_8664, 0x1234_5678, 0, 0, 240]);
    put(&mut page, OPTIONAL, &[0x20b]);
    put(&mut page, OPTIONAL + 56, &[0x6000, 0x200]);
    put(&mut page, OPTIONAL + 108, &[16]);
    put(&mut page, DIRECTORIES, &[DATA.0, 0x100]);
    put(&mut page, DIRECTORIES + 6 * 8, &[TEXT.0 + 0x100, 84]);
    put(&mut page, DIRECTORIES + 14 * 8, &[TEXT.0, 72]);
    page[SECTIONS..][..5].copy_from_slice(b".text");
    put(
        &mut page,
        SECTIONS + 8,
        &[0x1800, TEXT.0, 0x1000, TEXT.1, 0, 0, 0, EXECUTABLE],
    );
    page[SECTIONS + 40..][..5].copy_from_slice(b".data");
    put(
        &mut page,
        SECTIONS + 48,
        &[0x1000, DATA.0, 0x1000, DATA.1, 0, 0, 0, WRITABLE],
    );
    page
}

pub(crate) fn text() -> Vec<u8> {
    let mut text = vec![0; 0x1000];
    put(
        &mut text,
        0,
        &[72, 0, TEXT.0 + 0x400, 0x321, 13, 0x0600_0001],
    );
    put(&mut text, 64, &[TEXT.0 + 0x300, 220]);
    put(
        &mut text,
        0x100 + 56,
        &[0, 0, 0, EMBEDDED_TYPE, 0x55, TEXT.0 + 0x500, TEXT.1 + 0x500],
    );
    let entry =
        |kind, minor: u32, at: u32| [0, 0, minor << 16, kind, 0x100, TEXT.0 + at, TEXT.1 + at];
    put(&mut text, 0x100, &entry(16, 0, 0));
    put(&mut text, 0x100 + 28, &entry(CODE_VIEW_TYPE, 0x504d, 0x180));
    text[0x180..][..4].copy_from_slice(b"RSDS");
    text[0x184..][..16].copy_from_slice(&[7; 16]);
    put(&mut text, 0x194, &[1]);
    text[0x198..][..5].copy_from_slice(b"a.pdb");
    text[0x400..][..4].copy_from_slice(b"BSJB");
    text
}

const CODE_VIEW_TYPE: u32 = 2;
const EMBEDDED_TYPE: u32 = 17;

/// Exports `a`, `bb` and `bbb`, the last one forwarded.
pub(crate) fn data() -> Vec<u8> {
    let mut data = vec![0; 0x1000];
    put(
        &mut data,
        20,
        &[3, 3, DATA.0 + 0x40, DATA.0 + 0x50, DATA.0 + 0x60],
    );
    put(
        &mut data,
        0x40,
        &[DATA.0 + 0x800, DATA.0 + 0x900, DATA.0 + 0x70],
    );
    put(
        &mut data,
        0x50,
        &[DATA.0 + 0x80, DATA.0 + 0x82, DATA.0 + 0x85],
    );
    put(&mut data, 0x60, &[0x0000_0001, 2]);
    data[0x80..][..9].copy_from_slice(b"a\0bb\0bbb\0");
    data
}

fn loaded() -> Pieces {
    let at = |rva: u32| BASE + u64::from(rva);
    Pieces::default()
        .with(BASE, header())
        .with(at(TEXT.0), text())
        .with(at(DATA.0), data())
}

fn flat() -> Pieces {
    Pieces::default().with(BASE, [header(), text(), data()].concat())
}

fn parse(memory: &Pieces, layout: PeLayout) -> PeImage {
    PeImage::parse(memory, Addr(BASE), layout).unwrap()
}

#[test]
fn the_header_of_a_reduced_minidump_is_enough() {
    let memory = Pieces::default()
        .with(BASE, header()[..64].to_vec())
        .with(BASE + NT as u64, header()[NT..SECTIONS].to_vec())
        .with(BASE + u64::from(DATA.0), data());
    let image = parse(&memory, PeLayout::Loaded);
    assert!(image.sections.is_empty() && image.cli.is_none());
    assert_eq!(image.time_date_stamp, 0x1234_5678);
    let a = image.export(&memory, "a");
    assert_eq!(a, image.rva_to_addr(0x900 + DATA.0));
    assert!(PeImage::parse(&memory, Addr(BASE), PeLayout::Flat).is_err());
}

#[test]
fn both_layouts_tell_the_same() {
    for (memory, layout, shift) in [
        (loaded(), PeLayout::Loaded, 0),
        (flat(), PeLayout::Flat, u64::from(TEXT.0 - TEXT.1)),
    ] {
        let image = parse(&memory, layout);
        assert_eq!(
            (image.machine, image.time_date_stamp, image.size_of_image),
            (0x8664, 0x1234_5678, 0x6000)
        );
        let cli = image.cli.unwrap();
        assert_eq!((cli.flags, cli.entry_point), (13, 0x0600_0001));
        assert_eq!(
            cli.managed_native_header,
            Some(RvaRange {
                rva: TEXT.0 + 0x300,
                size: 220
            })
        );
        let (at, len) = image.metadata().unwrap();
        assert_eq!(
            (at, len),
            (Addr(BASE + u64::from(TEXT.0) + 0x400 - shift), 0x321)
        );
        assert_eq!(
            (&memory as &dyn Memory).u32(at),
            Some(u32::from_le_bytes(*b"BSJB"))
        );
        let expected = CodeView {
            guid: [7; 16],
            age: 1,
            path: "a.pdb".into(),
            portable: true,
        };
        assert_eq!(image.code_view(&memory), Some(expected));
        let embedded = Addr(BASE + u64::from(TEXT.0) + 0x500 - shift);
        assert_eq!(image.embedded_pdb(&memory), Some((embedded, 0x55)));
        let data = image.rva_to_addr(DATA.0).unwrap();
        assert_eq!(image.export(&memory, "a"), Some(data + 0x900));
        assert_eq!(
            image.writable_sections().collect::<Vec<_>>(),
            [(data, 0x1000)]
        );
    }
}

#[test]
fn exports_are_found_by_exact_name() {
    let (memory, image) = (loaded(), parse(&loaded(), PeLayout::Loaded));
    let at = |name| image.export(&memory, name).map(|a| a.0 - BASE);
    assert_eq!(at("a"), Some(0x4900));
    assert_eq!(at("bb"), Some(0x4800));
    assert_eq!(
        [at("bbb"), at("b"), at("bbbb"), at("")],
        [None; 4],
        "the first is forwarded, the others do not exist"
    );
}

#[test]
fn bytes_that_only_loading_adds_have_no_flat_address() {
    let image = parse(&flat(), PeLayout::Flat);
    assert_eq!(image.rva_to_addr(0x1ff), Some(Addr(BASE + 0x1ff)));
    assert_eq!(image.rva_to_addr(0x200), None);
    assert_eq!(image.rva_to_addr(TEXT.0 + 0xfff), Some(Addr(BASE + 0x11ff)));
    assert_eq!(image.rva_to_addr(TEXT.0 + 0x1000), None);
    let image = parse(&loaded(), PeLayout::Loaded);
    assert_eq!(image.rva_to_addr(0x5fff), Some(Addr(BASE + 0x5fff)));
    assert_eq!(image.rva_to_addr(0x6000), None);
}

#[test]
fn the_header_alone_still_tells_what_it_holds() {
    let memory = Pieces::default().with(BASE, header());
    let image = parse(&memory, PeLayout::Loaded);
    let names: Vec<_> = image.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, [".text", ".data"]);
    assert_eq!(
        (
            image.cli,
            image.metadata(),
            image.code_view(&memory),
            image.export(&memory, "a")
        ),
        (None, None, None, None)
    );
}

#[test]
fn what_is_not_such_an_image_is_refused() {
    let parse = |bytes: Vec<u8>| {
        PeImage::parse(
            &Pieces::default().with(BASE, bytes),
            Addr(BASE),
            PeLayout::Flat,
        )
        .unwrap_err()
    };
    let changed = |at: usize, byte| {
        let mut bytes = header();
        bytes[at] = byte;
        parse(bytes)
    };
    assert_eq!(parse(vec![]), ImageError::NotDumped(Addr(BASE)));
    assert_eq!(parse(b"MZ".to_vec()), ImageError::NotDumped(Addr(BASE)));
    assert_eq!(
        parse(vec![0; 0x200]),
        ImageError::WrongMagic(Addr(BASE), "PE")
    );
    assert_eq!(
        changed(0x3f, 0xff),
        ImageError::WrongMagic(Addr(BASE), "PE")
    );
    assert_eq!(changed(NT, 0), ImageError::WrongMagic(Addr(BASE), "PE"));
    assert!(matches!(changed(OPTIONAL, 0), ImageError::Malformed(..)));
    assert!(
        matches!(changed(NT + 7, 0xff), ImageError::Malformed(..)),
        "65,282 sections"
    );
}

/// The image of the other tests with two functions, and with exports that stand in its code.
fn with_functions() -> Pieces {
    let (mut header, mut text, mut data) = (header(), text(), data());
    put(&mut header, DIRECTORIES + 3 * 8, &[TEXT.0 + 0x600, 24]);
    let functions = [[0x700, 0x740, 0], [0x780, 0x7c0, 0]];
    for (at, [begin, end, info]) in (0x600..).step_by(12).zip(functions) {
        put(&mut text, at, &[TEXT.0 + begin, TEXT.0 + end, info]);
    }
    // `a` begins a function, `bb` stands between them, `bbb` inside of the second one
    let exports = [0x700, 0x750, 0x790].map(|rva| TEXT.0 + rva);
    put(&mut data, 0x40, &exports);
    put(&mut data, 0x60, &[0x0001_0000, 2]);
    let at = |rva: u32| BASE + u64::from(rva);
    Pieces::default()
        .with(BASE, header)
        .with(at(TEXT.0), text)
        .with(at(DATA.0), data)
}

#[test]
fn functions_are_found_by_what_is_inside_of_them() {
    let memory = with_functions();
    let table = parse(&memory, PeLayout::Loaded).functions().unwrap();
    let covering = |rva: u32| table.covering(&memory, TEXT.0 + rva).unwrap();
    let begin = |covering: Covering| match covering {
        Covering::Function(f) => Some(f.begin - TEXT.0),
        Covering::Nothing => None,
    };
    let asked = [0x6ff, 0x700, 0x73f, 0x740, 0x780, 0x7c0];
    let found = asked.map(|rva| begin(covering(rva)));
    assert_eq!(
        found,
        [None, Some(0x700), Some(0x700), None, Some(0x780), None]
    );
    assert_eq!((table.len(), table.get(&memory, 2)), (2, None));
    assert!(!table.is_empty());
}

#[test]
fn exports_name_functions_that_begin_there() {
    let memory = with_functions();
    let image = parse(&memory, PeLayout::Loaded);
    let text: &dyn Memory = &memory;
    let named = image.named_functions(&memory).into_iter();
    let named: Vec<_> = named
        .map(|(at, len, name)| (at.0 - BASE, len, text.c_str(name, 8).unwrap()))
        .collect();
    let rva = |at: u32| u64::from(TEXT.0 + at);
    let expected = [
        (rva(0x700), 0x40, "a".to_owned()),
        // up to the next function
        (rva(0x750), 0x30, "bb".to_owned()),
    ];
    assert_eq!(named, expected);
}

#[test]
fn code_stands_in_sections_that_can_be_executed() {
    let memory = with_functions();
    let image = parse(&memory, PeLayout::Loaded);
    let may = |rva: u32| image.may_execute(Addr(BASE + u64::from(rva)));
    assert!(may(TEXT.0) && !may(DATA.0) && !may(0x7000));
    assert!(!image.may_execute(Addr(BASE - 1)));
}

proptest! {
    #[test]
    fn damaged_images_do_no_harm(
        is_flat: bool,
        at in prop_oneof![0usize..0x180, 0x200usize..0x3a0, 0x1200usize..0x1290],
        damage in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let mut bytes = [header(), text(), data()].concat();
        bytes[at..][..damage.len()].copy_from_slice(&damage);
        let layout = if is_flat { PeLayout::Flat } else { PeLayout::Loaded };
        let memory = Pieces::default().with(BASE, bytes);
        if let Ok(image) = PeImage::parse(&memory, Addr(BASE), layout) {
            let _ = image.metadata();
            let _ = image.code_view(&memory);
            let _ = image.export(&memory, "bb");
            let _ = image.writable_sections().count();
        }
    }
}
