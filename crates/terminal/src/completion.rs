//! `timer completion` and `timer man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use crate::{Context, Failure};

#[derive(Debug, Clone, Args)]
pub struct CompletionOptions {
    pub shell: Shell,
}

#[derive(Debug, Clone, Args)]
pub struct ManOptions {
    /// The directory that the pages are written to
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,
}

pub fn completion(options: &CompletionOptions, context: &Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut context.command_line.clone(), "timer", &mut script);
    crate::output::print(format_args!("{}", String::from_utf8_lossy(&script).trim_end()))
}

pub fn man(options: &ManOptions, context: &Context) -> Result<(), Failure> {
    std::fs::create_dir_all(&options.directory)?;
    Ok(clap_mangen::generate_to(context.command_line.clone(), &options.directory)?)
}
