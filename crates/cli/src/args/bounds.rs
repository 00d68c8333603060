//! What reading a dump or recording may take.

use clap::Args;
use std::time::Duration;

/// Limits of the analysis; when one is reached, what is known by then is reported.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct BoundArgs {
    /// End the analysis after TIME (90s, 10m, 1h; 0 for no limit) and report what is known by then: gaps tell what was not
    /// looked at, nothing is called certain, and the exit status is 7. Ctrl-C does the same, with the exit status 130; twice
    /// it ends every part at once, three times without a report
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    pub(crate) max_time: Duration,
    /// The same when asynctriage has taken SIZE of memory (500M, 4G; 0 for no limit) besides the mapped dump [default: three
    /// quarters of what the machine or container has free; other systems than Linux do not tell, and have no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_memory: Option<u64>,
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("a time is 90s, 10m or 1h".into()),
    };
    let number: u64 = number.parse().map_err(|_| "no number")?;
    let seconds = number.checked_mul(scale).ok_or("too long")?;
    Ok(Duration::from_secs(seconds))
}

fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("a size is 500M or 4G".into()),
    };
    let number: u64 = number.parse().map_err(|_| "no number")?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert!(
            time("m").is_err() && time("3d").is_err() && time("99999999999999999999h").is_err()
        );
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("7"), Ok(7));
        assert!(size("4X").is_err() && size("-1").is_err() && size("99999999T").is_err());
    }
}
