//! Copies of a database, what may come of them, and logs that are left beside them.

use std::fs;

use domain::Span;
use rusqlite::{Connection, backup::Backup};
use store::{Filter, TimerStore};

use super::{Place, create, numbered, one_in_each_status};
use crate::{SqliteStore, backup, restore, stamp};

const NOT_TOGETHER: &str = "do not belong together";

/// What a process that dies leaves behind, with `file` copied over its database.
fn crashed_with(place: &Place, file: &std::path::Path) -> Place {
    let after = Place::new();
    fs::copy(file, after.path()).unwrap();
    fs::copy(place.directory.path().join("timers.db-wal"), after.directory.path().join("timers.db-wal")).unwrap();
    after
}

fn starts_over(place: &Place) {
    place.shell().query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
}

#[tokio::test]
async fn an_older_copy_is_refused_beside_a_newer_log() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10)).await;
    let copy = |name: &str| place.directory.path().join(name);
    backup(&place.path(), &copy("backup.db")).unwrap();
    let mut shells = Connection::open(copy("shell.db")).unwrap();
    Backup::new(&place.shell(), &mut shells).unwrap().step(-1).unwrap();
    drop(shells);
    fs::copy(place.path(), copy("file.db")).unwrap();
    create(&store, numbered(10..20)).await;

    for name in ["backup.db", "shell.db"] {
        let after = crashed_with(&place, &copy(name));
        let (file, log) = (fs::read(after.path()).unwrap(), fs::read(after.directory.path().join("timers.db-wal")).unwrap());
        assert!(after.refusal().contains(NOT_TOGETHER), "{name}: {}", after.refusal());
        assert_eq!(fs::read(after.path()).unwrap(), file, "{name}");
        assert_eq!(fs::read(after.directory.path().join("timers.db-wal")).unwrap(), log, "{name}");
    }
    // The same log goes on from this file: nothing is missing in it.
    assert_eq!(crashed_with(&place, &copy("file.db")).open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 20);

    starts_over(&place);
    create(&store, numbered(20..30)).await;
    for name in ["backup.db", "shell.db", "file.db"] {
        let after = crashed_with(&place, &copy(name));
        assert!(after.refusal().contains(NOT_TOGETHER), "{name}: {}", after.refusal());
    }
    assert_eq!(crashed_with(&place, &place.path()).open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 30);
}

#[tokio::test]
async fn a_file_from_before_the_start_is_refused_beside_a_newer_log() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10)).await;
    drop(store);
    let copy = place.directory.path().join("copy.db");
    fs::copy(place.path(), &copy).unwrap();
    let store = place.open();
    create(&store, numbered(10..20)).await;

    assert!(crashed_with(&place, &copy).refusal().contains(NOT_TOGETHER));
    assert_eq!(crashed_with(&place, &place.path()).open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 20);
}

#[tokio::test]
async fn a_process_that_dies_at_any_commit_or_checkpoint_starts_again() {
    let place = Place::new();
    let store = place.open();
    for round in 0..20 {
        create(&store, numbered(round..round + 1)).await;
        match round % 4 {
            1 => place.shell().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap(),
            3 => starts_over(&place),
            _ => {}
        }
        let after = crashed_with(&place, &place.path());
        let again = after.open();
        assert_eq!(again.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), round + 1);
        // And once more, from what that one leaves.
        assert_eq!(
            crashed_with(&after, &after.path()).open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(),
            round + 1
        );
    }
}

/// One commit after the other until one leaves the number as it is: some time after the last checkpoint.
async fn create_until_unnumbered(place: &Place, store: &SqliteStore, made: &mut u64) {
    let mut before = None;
    loop {
        // Longer than a tick of any file system.
        place.clock.advance(Span::from_secs(3));
        create(store, numbered(*made..*made + 1)).await;
        *made += 1;
        let number = Some(stamp::read(&place.shell()).unwrap());
        if std::mem::replace(&mut before, number) == number {
            break;
        }
    }
}

/// Copies of the file, of SQLite's online backup and of `VACUUM INTO`, made at different moments, beside each later log: every one is
/// refused, or becomes the newest state. Whatever a copy lacks is in the log then.
#[tokio::test]
async fn no_copy_of_any_moment_is_corrupted_by_a_later_log() {
    let place = Place::new();
    let store = place.open();
    let (mut copies, mut made) = (Vec::new(), 0);
    let (mut refused, mut continued) = (0, 0);
    for round in 0..12 {
        if round % 4 != 1 {
            create_until_unnumbered(&place, &store, &mut made).await;
        }
        match round % 6 {
            2 | 3 => place.shell().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap(),
            5 => starts_over(&place),
            _ => {}
        }
        for kind in ["file", "backup", "vacuum"] {
            let copy = place.directory.path().join(format!("{round}-{kind}.db"));
            match kind {
                "file" => drop(fs::copy(place.path(), &copy).unwrap()),
                "backup" => {
                    let mut copy = Connection::open(&copy).unwrap();
                    Backup::new(&place.shell(), &mut copy).unwrap().step(-1).unwrap();
                }
                _ => drop(place.shell().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap()),
            }
            copies.push((kind, copy));
        }
        create(&store, numbered(made..made + 100)).await;
        made += 100;
        for (kind, copy) in &copies {
            let (after, name) = (crashed_with(&place, copy), copy.display());
            match after.try_open() {
                Ok(opened) => {
                    assert_eq!(*kind, "file", "{name}");
                    assert_eq!(opened.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), made, "{name}");
                    drop(opened);
                    let checked: String = after.shell().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
                    assert_eq!(checked, "ok", "{name}");
                    continued += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains(NOT_TOGETHER), "{name}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100 && continued > 12, "{refused} were refused, {continued} were continued");
}

#[tokio::test]
async fn a_backup_is_restored_as_it_was() {
    let place = Place::new();
    let copy = place.directory.path().join("copy.db");
    let store = place.open();
    let timers = one_in_each_status(&store).await;
    backup(&place.path(), &copy).unwrap();
    create(&store, numbered(500..600)).await;
    let refused = restore(&place.path(), &copy, true).unwrap_err().to_string();
    assert!(refused.contains("another timer process is using"), "{refused}");
    let after = crashed_with(&place, &place.path());
    let refused = restore(&after.path(), &copy, false).unwrap_err().to_string();
    assert!(refused.contains("--replace"), "{refused}");

    restore(&after.path(), &copy, true).unwrap();

    assert_eq!(super::opening::names(after.directory.path()), ["timers.db", "timers.db.lock"]);
    let store = after.open();
    assert_eq!(store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), timers.len() as u64);
    for timer in timers {
        assert_eq!(store.get(timer.id()).await.unwrap(), Some(timer));
    }
    let elsewhere = Place::new();
    restore(&elsewhere.path(), &copy, false).unwrap();
    drop(elsewhere.open());
}

/// As on a machine where systemd gives the service a user and a directory, and an operator restores as root.
#[cfg(unix)]
#[tokio::test]
async fn what_root_restores_belongs_to_the_owner_of_the_directory() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    const SERVICE: u32 = 61_234;
    let [place, after] = [Place::new(), Place::new()];
    let copy = place.directory.path().join("copy.db");
    create(&place.open(), numbered(0..10)).await;
    backup(&place.path(), &copy).unwrap();
    if chown(after.directory.path(), Some(SERVICE), Some(SERVICE)).is_err() {
        println!("skipped: only root can give a file to another user");
        return;
    }

    restore(&after.path(), &copy, false).unwrap();
    restore(&after.path(), &copy, true).unwrap();

    for name in ["timers.db", "timers.db.lock"] {
        let file = fs::metadata(after.directory.path().join(name)).unwrap();
        let (owner, rights) = ((file.uid(), file.gid()), file.permissions().mode() & 0o777);
        assert_eq!((owner, rights), ((SERVICE, SERVICE), 0o600), "{name}");
    }
    // A link to what is not the service's own stays what it is.
    let other = place.directory.path().join("other");
    fs::write(&other, "").unwrap();
    fs::remove_file(after.directory.path().join("timers.db.lock")).unwrap();
    std::os::unix::fs::symlink(&other, after.directory.path().join("timers.db.lock")).unwrap();
    restore(&after.path(), &copy, true).unwrap();
    assert_eq!(fs::metadata(&other).unwrap().uid(), 0);
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..1000)).await;
    let beside = |name: &str| place.directory.path().join(name);
    backup(&place.path(), &beside("good.db")).unwrap();
    let refused = backup(&place.path(), &beside("good.db")).unwrap_err().to_string();
    assert!(refused.contains("good.db exists already"), "{refused}");
    drop(store);
    let whole = fs::read(beside("good.db")).unwrap();
    let mut overwritten = whole.clone();
    overwritten[8192..40960].fill(0xff);
    fs::write(beside("damaged.db"), overwritten).unwrap();
    fs::write(beside("short.db"), &whole[..whole.len() / 2]).unwrap();
    fs::write(beside("text.db"), "hello").unwrap();
    fs::write(beside("empty.db"), "").unwrap();
    fs::write(beside("logged.db"), &whole).unwrap();
    fs::write(beside("logged.db-wal"), "log").unwrap();
    let before = fs::read(place.path()).unwrap();

    for (name, reason) in [
        ("damaged.db", "is damaged"),
        ("short.db", "is damaged"),
        ("text.db", "is not a backup"),
        ("empty.db", "is not a backup"),
        ("missing.db", "cannot be read"),
        (".", "is not a backup"),
        ("logged.db", "has a log beside it"),
    ] {
        let refused = restore(&place.path(), &beside(name), true).unwrap_err().to_string();
        assert!(refused.contains(reason) && !refused.contains('\n'), "{name}: {refused}");
    }
    assert_eq!(fs::read(place.path()).unwrap(), before);
    assert!(!super::opening::names(place.directory.path()).iter().any(|name| name.ends_with(".new")), "no drafts are left");
    let refused = backup(&beside("none.db"), &beside("copy.db")).unwrap_err().to_string();
    assert!(refused.contains("there is no database at"), "{refused}");
}
