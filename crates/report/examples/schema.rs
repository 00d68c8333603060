//! Prints the JSON schema of the report; `schema.json` beside the crate is this text.

fn main() -> std::io::Result<()> {
    use std::io::Write;
    let text =
        asynctriage_report::json(&asynctriage_report::schema()).map_err(std::io::Error::other)?;
    std::io::stdout().write_all(text.as_bytes())
}
