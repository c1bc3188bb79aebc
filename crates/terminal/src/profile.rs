//! `timer profile`: services by name, in a file that only its owner can read.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::{
    Context, Failure,
    output::{print, say},
    table,
};

#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Name a service
    Add(AddOptions),
    /// Ask this service from now on
    Use(NameOptions),
    /// Show the names
    List,
    /// Forget a name
    Remove(NameOptions),
}

#[derive(Debug, Clone, Args)]
pub struct AddOptions {
    pub name: String,
    #[arg(long)]
    pub url: String,
    /// A file with the API key
    #[arg(long, value_name = "FILE", required_unless_present = "key_command", conflicts_with = "key_command")]
    pub key_file: Option<PathBuf>,
    /// A command that prints the API key, such as that of a password manager
    #[arg(long, value_name = "COMMAND")]
    pub key_command: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct NameOptions {
    pub name: String,
}

/// What the file holds. Keys themselves are never in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_command: Option<String>,
}

impl Profile {
    pub fn api_key(&self) -> Result<String, Failure> {
        match (&self.key_file, &self.key_command) {
            (Some(file), _) => {
                let text = fs::read_to_string(file);
                let text = text.map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
                Ok(text.trim().to_owned())
            }
            (None, Some(command)) => key_of_command(command),
            (None, None) => Err(Failure::usage("the profile has no key: give it a key_file or a key_command")),
        }
    }
}

/// What a command of a password manager prints.
fn key_of_command(command: &str) -> Result<String, Failure> {
    let output = Command::new("sh").args(["-c", command]).stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::usage(format!("the key command cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(Failure::usage(format!("the key command failed: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Profiles {
    /// Those of the file, or none where there is no file.
    pub fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else { return Ok(Self::default()) };
        match fs::read_to_string(file) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error| Failure::usage(format!("{} cannot be read: {}", file.display(), error.message()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Failure::usage(format!("{} cannot be read: {error}", file.display()))),
        }
    }

    /// The one that is named, or the current one, if there is one.
    pub fn chosen(&self, name: Option<&str>) -> Result<Option<&Profile>, Failure> {
        let Some(name) = name.or(self.current.as_deref()) else { return Ok(None) };
        self.profiles.get(name).map(Some).ok_or_else(|| no_such(name))
    }

    fn write(&self, file: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).map_err(|error| Failure::unexpected(error.to_string()))?;
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        replace(file, &text)
    }
}

/// Puts a file there as a whole, which only its owner can read.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    // One that was left behind may have other permissions.
    drop(fs::remove_file(&temporary));
    private(&temporary)?.write_all(text.as_bytes())?;
    Ok(fs::rename(&temporary, file)?)
}

#[cfg(unix)]
fn private(file: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)
}

#[cfg(not(unix))]
fn private(file: &Path) -> std::io::Result<fs::File> {
    fs::File::create_new(file)
}

fn no_such(name: &str) -> Failure {
    Failure::usage(format!("there is no profile {name}: see `timer profile list`"))
}

fn file_of(context: &Context) -> Result<&Path, Failure> {
    let file = context.surroundings.config_file.as_deref();
    file.ok_or_else(|| Failure::usage("there is no directory for the profiles: set HOME or XDG_CONFIG_HOME"))
}

/// A name that can be that of a file, too.
pub fn checked_name(name: &str) -> Result<(), Failure> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_good) {
        return Err(Failure::usage(format!("{name:?} is no name for a profile: use letters, digits, - and .")));
    }
    Ok(())
}

/// Keeps a key in a file of its own, and a profile that uses it, which is the current one from now on.
pub fn keep(name: &str, url: &str, key: &str, context: &Context) -> Result<(), Failure> {
    let file = file_of(context)?;
    let mut profiles = Profiles::read(Some(file))?;
    let keys = file.with_file_name("keys");
    fs::create_dir_all(&keys)?;
    let key_file = keys.join(name);
    replace(&key_file, &format!("{key}\n"))?;
    profiles.profiles.insert(name.to_owned(), Profile { url: url.to_owned(), key_file: Some(key_file), key_command: None });
    profiles.current = Some(name.to_owned());
    profiles.write(file)
}

pub fn run(command: &ProfileCommand, context: &Context) -> Result<(), Failure> {
    let file = file_of(context)?;
    let mut profiles = Profiles::read(Some(file))?;
    match command {
        ProfileCommand::Add(AddOptions { name, url, key_file, key_command }) => {
            // The profile is used in other directories, too.
            let key_file = key_file.as_ref().map(std::path::absolute).transpose()?;
            let profile = Profile { url: url.clone(), key_file, key_command: key_command.clone() };
            client::Client::new(&profile.url, "")?;
            profiles.profiles.insert(name.clone(), profile);
            profiles.current.get_or_insert_with(|| name.clone());
        }
        ProfileCommand::Use(NameOptions { name }) => {
            profiles.profiles.get(name).ok_or_else(|| no_such(name))?;
            profiles.current = Some(name.clone());
        }
        ProfileCommand::Remove(NameOptions { name }) => {
            profiles.profiles.remove(name).ok_or_else(|| no_such(name))?;
            profiles.current = profiles.current.filter(|current| current != name);
        }
        ProfileCommand::List => return list(&profiles),
    }
    profiles.write(file)
}

fn list(profiles: &Profiles) -> Result<(), Failure> {
    if profiles.profiles.is_empty() {
        say(format_args!("There is no profile yet: see `timer profile add --help`."));
        return Ok(());
    }
    let head = ["", "NAME", "URL", "KEY"].map(str::to_owned);
    let rows = profiles.profiles.iter().map(|(name, profile)| {
        let mark = if profiles.current.as_ref() == Some(name) { "*" } else { "" };
        let key = match (&profile.key_file, &profile.key_command) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(command)) => format!("$({command})"),
            (None, None) => "-".to_owned(),
        };
        [mark.to_owned(), name.clone(), profile.url.clone(), key]
    });
    print(format_args!("{}", table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())))
}
