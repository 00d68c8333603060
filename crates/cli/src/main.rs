//! `asynctriage`: see the library.

fn main() -> std::process::ExitCode {
    asynctriage_cli::main()
}
