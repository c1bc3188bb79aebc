//! `timer export`: every timer that matches, with everything that is needed to register it again.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    pin::pin,
};

use clap::Args;
use client::{Client, Filter, Json, PageQuery};
use futures_util::{StreamExt, TryStreamExt};
use indicatif::ProgressBar;

use crate::{ConnectionOptions, Context, Failure, change::progress, filter::filter, output::say};

/// How many timers are read at once: lists have no payloads.
const READS_AT_ONCE: usize = 16;
const PAGE: u32 = 200;

#[derive(Debug, Clone, Args)]
pub struct ExportOptions {
    /// Conditions in the words of `timer list`; everything unless given
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// The file: .ndjson, which `timer import` reads, or .csv, without payloads; NDJSON to standard output unless given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(options: &ExportOptions, context: &Context) -> Result<(), Failure> {
    let client = options.connection.client(context)?;
    let filter = filter(&options.filter, context)?;
    let count = client.timers().count(&filter).await?;
    let bar = progress(context, count.total);
    let Some(path) = &options.output else {
        let count = timers(&client, &filter, &mut std::io::stdout().lock(), &bar).await?;
        return tell(count, None);
    };
    let part = partial(path);
    let cannot_write = |error: std::io::Error| Failure::unexpected(format!("{} cannot be written: {error}", part.display()));
    let mut file = BufWriter::new(File::create(&part).map_err(cannot_write)?);
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let count = if is_csv { csv(&client, &filter, &mut file).await? } else { timers(&client, &filter, &mut file, &bar).await? };
    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(cannot_write)?;
    // A file of this name is whole.
    std::fs::rename(&part, path).map_err(cannot_write)?;
    tell(count, Some(path))
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

async fn timers(client: &Client, filter: &Filter, to: &mut impl Write, bar: &ProgressBar) -> Result<u64, Failure> {
    // In the order of creation, so that what is created meanwhile comes last.
    let query = PageQuery { order: Some("asc".to_owned()), limit: Some(PAGE), ..filter.clone().into() };
    let read = client.timers().list_raw(query).map(|listed| {
        let client = client.clone();
        async move {
            let timer: client::Timer = listed?.parse()?;
            match client.timers().get_raw(&timer.id).await {
                // Removed since it was listed.
                Err(client::Error::NotFound(_)) => Ok(None),
                read => read.map(Some),
            }
        }
    });
    let mut read = Box::pin(read.buffered(READS_AT_ONCE));
    let mut count = 0;
    while let Some(timer) = read.try_next().await? {
        let Some(timer) = timer else { continue };
        write_line(to, &timer)?;
        count += 1;
        bar.set_position(count);
    }
    to.flush()?;
    bar.finish_and_clear();
    Ok(count)
}

fn write_line(to: &mut impl Write, timer: &Json) -> Result<(), Failure> {
    Ok(writeln!(to, "{timer}")?)
}

async fn csv(client: &Client, filter: &Filter, to: &mut impl Write) -> Result<u64, Failure> {
    let mut parts = pin!(client.timers().export(filter, "csv").await?);
    let mut lines = 0;
    while let Some(part) = parts.try_next().await? {
        lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
        to.write_all(&part)?;
    }
    Ok(lines.saturating_sub(1))
}

fn tell(count: u64, file: Option<&Path>) -> Result<(), Failure> {
    if let Some(file) = file {
        let timers = if count == 1 { "1 timer is".to_owned() } else { format!("{count} timers are") };
        say(format_args!("{timers} in {}.", file.display()));
    }
    Ok(())
}
