//! Lists of suspension points that the user adds: `asynctriage symbols`.
//!
//! Each assembly has a file of its own in the user's data folder, named by its module version id, so that nothing is ever
//! rewritten: what is there is either the same or foreign, and foreign files are kept.

use crate::args::{AddArgs, SymbolsAction, SymbolsArgs};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::new_file::{self, Existing};
use asynctriage_clr::{ImageFile, PointLists};
use asynctriage_report::printable;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How the names of the files end.
const EXTENSION: &str = "points";
/// Files of a folder that are looked at.
const MAX_FILES: usize = 4096;
/// Bytes of such a file at most; those of .NET 11 have some kilobytes.
const MAX_BYTES: u64 = 16 << 20;

pub(crate) fn symbols(args: &SymbolsArgs) -> Result<Exit, CliError> {
    let text = match &args.action {
        SymbolsAction::Add(args) => add(args)?,
        SymbolsAction::List => list(),
    };
    // a reader that stops reading is no error
    let _ = anstream::stdout().write_all(text.as_bytes());
    Ok(Exit::Written)
}

/// All lists that a run uses: those of the user's data folder, and those in the folders for symbols or named as such.
pub(crate) fn lists(symbols: &[PathBuf]) -> PointLists {
    let mut lists = PointLists::default();
    let named = symbols.iter().filter(|p| p.is_file()).cloned();
    let folders = symbols.iter().filter(|p| p.is_dir()).cloned();
    let inside = data_folder().into_iter().chain(folders);
    for file in named.chain(inside.flat_map(|f| files_in(&f, EXTENSION))) {
        if let Ok(bytes) = read(&file) {
            lists.add(&bytes);
        }
    }
    lists
}

fn add(args: &AddArgs) -> Result<String, CliError> {
    let images = images_in(&args.folder)?;
    let points: usize = images.iter().map(|i| i.points.len()).sum();
    let found = format!(
        "{} assemblies with {points} suspension points",
        images.len()
    );
    if let Some(file) = &args.into {
        let bytes = PointLists::file(&images).map_err(|e| cannot_write(file, e))?;
        new_file::write(file, Existing::Keep, |out| out.write_all(&bytes))
            .map_err(|e| cannot_write(file, e))?;
        let file = printable(&file.display().to_string());
        return Ok(format!("{found} in {file}\n"));
    }
    let folder = data_folder().ok_or_else(no_folder)?;
    fs::create_dir_all(&folder).map_err(|e| cannot_write(&folder, e))?;
    let mut known: usize = 0;
    for image in &images {
        let file = folder.join(file_name(image));
        let bytes =
            PointLists::file(std::slice::from_ref(image)).map_err(|e| cannot_write(&file, e))?;
        match new_file::write(&file, Existing::Keep, |out| out.write_all(&bytes)) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && is_list(&file) => {
                known = known.saturating_add(1);
            }
            Err(e) => return Err(cannot_write(&file, e)),
        }
    }
    let folder = printable(&folder.display().to_string());
    Ok(format!("{found} in {folder}; {known} of them were known\n"))
}

fn images_in(folder: &Path) -> Result<Vec<ImageFile>, CliError> {
    fs::read_dir(folder).map_err(|e| {
        let message = format!("{} cannot be read", folder.display());
        CliError::new(Exit::Usage, message, "give a folder of assemblies").because(e)
    })?;
    let files = files_in(folder, "dll");
    let images = files
        .iter()
        .filter_map(|file| ImageFile::read(&fs::read(file).ok()?));
    let images: Vec<ImageFile> = images.filter(|i| !i.points.is_empty()).collect();
    if images.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            format!(
                "{} holds no assembly with suspension points",
                folder.display()
            ),
            "give a folder with compiled assemblies of .NET 11, as shared/Microsoft.NETCore.App/11.0.1",
        ));
    }
    Ok(images)
}

fn list() -> String {
    let Some(folder) = data_folder() else {
        return "No data folder: neither XDG_DATA_HOME, HOME nor LOCALAPPDATA is set.\n".into();
    };
    let mut out = String::new();
    for file in files_in(&folder, EXTENSION) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut lists = PointLists::default();
        let is_list = read(&file).is_ok_and(|bytes| lists.add(&bytes));
        let points: usize = lists.images().iter().map(|(_, points)| points).sum();
        let about = if is_list {
            format!("{points:>6} points")
        } else {
            "not a list of suspension points".to_owned()
        };
        out.push_str(&format!("{about}  {}\n", printable(&name)));
    }
    if out.is_empty() {
        let folder = folder.display().to_string();
        return format!(
            "Nothing was added to {}; .NET 11.0.0 is built in.\n",
            printable(&folder)
        );
    }
    out
}

/// `System.Net.Http-0123..ef.points`. A name from an assembly is not to be trusted with a path.
fn file_name(image: &ImageFile) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = image.name.chars().filter(|c| plain(*c)).take(100).collect();
    let id: String = image.mvid.iter().map(|b| format!("{b:02x}")).collect();
    format!("{name}-{id}.{EXTENSION}")
}

/// Where data of this user's programs belongs.
fn data_folder() -> Option<PathBuf> {
    let folder = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    let base = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else {
        folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")))
    };
    Some(base?.join("asynctriage").join("points"))
}

/// The files of a folder with an extension, by name; none when it is not there.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|p| p.extension() == Some(OsStr::new(extension)) && p.is_file())
        .take(MAX_FILES)
        .collect();
    files.sort();
    files
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_list(file: &Path) -> bool {
    read(file).is_ok_and(|bytes| PointLists::default().add(&bytes))
}

fn cannot_write(file: &Path, error: io::Error) -> CliError {
    let message = format!("cannot write {}", file.display());
    let remedy = match error.kind() {
        io::ErrorKind::AlreadyExists => "existing files are kept: name another one, or remove it",
        _ => "check the folder and its permissions, or name a file with --into",
    };
    CliError::new(Exit::Usage, message, remedy).because(error)
}

fn no_folder() -> CliError {
    CliError::new(
        Exit::Usage,
        "there is no folder for the user's data",
        "set HOME or XDG_DATA_HOME (LOCALAPPDATA on Windows), or name a file with --into",
    )
}
