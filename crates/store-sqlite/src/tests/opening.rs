use std::{fs, path::Path};

use domain::Status;
use store::{DueStore, Filter, TimerStore};

use super::{Place, claim, create, entry, numbered, one_in_each_status, own};

#[tokio::test]
async fn a_second_process_is_refused_in_one_sentence() {
    let place = Place::new();
    let first = place.open();
    let path = place.path().canonicalize().unwrap();
    assert_eq!(
        place.refusal(),
        format!("another timer process is using {}; stop it first, or give this one a file of its own", path.display())
    );
    create(&first, numbered(0..1)).await;
    drop(first);
    assert_eq!(place.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 1);
}

#[cfg(unix)]
#[test]
fn another_name_for_the_same_file_is_refused_as_well() {
    let place = Place::new();
    let _first = place.open();
    let link = place.directory.path().join("link.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let second = crate::SqliteStore::open(&link, std::sync::Arc::clone(&place.clock) as _);
    assert!(matches!(second, Err(crate::OpenError::InUse { .. })));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_same_file_under_another_name_is_refused() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..1)).await;
    let open = |path: &Path| crate::SqliteStore::open(path, std::sync::Arc::clone(&place.clock) as _);
    let link = place.directory.path().join("link.db");
    fs::hard_link(place.path(), &link).unwrap();
    assert!(matches!(open(&link), Err(crate::OpenError::InUse { .. })), "by a hard link");
    fs::remove_file(&link).unwrap();
    let moved = place.directory.path().join("moved.db");
    fs::rename(place.path(), &moved).unwrap();
    assert!(matches!(open(&moved), Err(crate::OpenError::InUse { .. })), "after a rename");
    fs::rename(&moved, place.path()).unwrap();
    drop(store);

    fs::hard_link(place.path(), &link).unwrap();
    let path = place.path().canonicalize().unwrap();
    assert_eq!(
        place.refusal(),
        format!(
            "{} has 2 names (hard links), so that two processes could use it at once; remove all but one of them",
            path.display()
        )
    );
    fs::remove_file(&link).unwrap();
    assert_eq!(place.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 1);
}

#[tokio::test]
async fn everything_is_there_after_the_store_was_closed_and_opened_again() {
    let place = Place::new();
    let store = place.open();
    let timers = one_in_each_status(&store).await;
    drop(store);
    assert!(!place.directory.path().join("timers.db-wal").exists(), "the log is in the database");

    let store = place.open();

    for timer in timers {
        assert_eq!(store.get(timer.id()).await.unwrap(), Some(timer));
    }
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_crash() {
    let place = Place::new();
    let store = place.open();
    let timers = one_in_each_status(&store).await;
    // What a process that dies leaves behind: the file and its log as they are, nothing brought to an end.
    let after_the_crash = Place::new();
    for name in ["timers.db", "timers.db-wal"] {
        fs::copy(place.directory.path().join(name), after_the_crash.directory.path().join(name)).unwrap();
    }

    let store = after_the_crash.open();

    for timer in timers {
        assert_eq!(store.get(timer.id()).await.unwrap(), Some(timer));
    }
}

#[tokio::test]
async fn after_a_crash_the_next_process_takes_over_at_once() {
    let place = Place::new();
    let store = place.open();
    let before = own(&store, 1).await;
    let timers = create(&store, numbered(0..2)).await;
    claim(&store, &before, &timers[..1]).await;
    drop(store);

    let store = place.open();
    let after = own(&store, 2).await;

    assert!(after[0].epoch > before[0].epoch);
    let left = store.expired_claims(&after, 10).await.unwrap();
    assert_eq!(left.iter().map(|claimed| claimed.entry).collect::<Vec<_>>(), [entry(&timers[0])]);
    assert_eq!(left[0].timer.as_ref().map(|timer| timer.status), Ok(Status::Executing));
    assert_eq!(claim(&store, &before, &timers[1..]).await, [], "the dead process claims nothing any more");
}

#[test]
fn a_foreign_file_is_refused_and_left_untouched() {
    let sqlite = tempfile::NamedTempFile::new().unwrap();
    let other = rusqlite::Connection::open(sqlite.path()).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    drop(other);
    for content in [b"x".to_vec(), b"PNG and so on".repeat(1000), vec![0; 8192], fs::read(sqlite.path()).unwrap()] {
        let place = Place::new();
        fs::write(place.path(), &content).unwrap();

        let path = place.path().canonicalize().unwrap();
        let sentence = "is not a timer database and was left untouched; give the path of another file";
        assert_eq!(place.refusal(), format!("{} {sentence}", path.display()));

        assert_eq!(fs::read(place.path()).unwrap(), content);
        assert_eq!(names(place.directory.path()), ["timers.db", "timers.db.lock"]);
    }
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..1000)).await;
    drop(store);
    let whole = fs::read(place.path()).unwrap();
    let mut overwritten = whole.clone();
    overwritten[100..4096].fill(0xff);
    for content in [&whole[..whole.len() / 2 / 4096 * 4096], &whole[..5000], &overwritten] {
        fs::write(place.path(), content).unwrap();

        let sentence = place.refusal();

        assert!(sentence.contains("timers.db is damaged (") && !sentence.contains('\n'), "{sentence}");
        assert_eq!(fs::read(place.path()).unwrap(), content);
    }
    fs::write(place.path(), whole).unwrap();
    assert_eq!(place.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 1000);
}

#[tokio::test]
async fn a_torn_end_of_the_log_costs_only_what_was_never_acknowledged() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10)).await;
    let torn = Place::new();
    fs::copy(place.path(), torn.path()).unwrap();
    let mut log = fs::read(place.directory.path().join("timers.db-wal")).unwrap();
    log.extend_from_slice(&[0xa5; 5000]);
    fs::write(torn.directory.path().join("timers.db-wal"), log).unwrap();

    assert_eq!(torn.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 10);
}

#[tokio::test]
async fn a_log_whose_database_is_gone_is_not_thrown_away() {
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..10)).await;
    let without_database = Place::new();
    let log = without_database.directory.path().join("timers.db-wal");
    fs::copy(place.directory.path().join("timers.db-wal"), &log).unwrap();
    let content = fs::read(&log).unwrap();

    assert!(without_database.refusal().contains("its log "), "{}", without_database.refusal());

    assert_eq!(fs::read(&log).unwrap(), content);
    fs::copy(place.path(), without_database.path()).unwrap();
    assert_eq!(without_database.open().count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 10);
}

#[test]
fn a_set_up_that_was_stopped_half_way_is_begun_again() {
    let place = Place::new();
    fs::write(place.directory.path().join("timers.db.new"), "half").unwrap();
    fs::write(place.directory.path().join("timers.db.new-journal"), "half").unwrap();
    drop(place.open());
    assert_eq!(names(place.directory.path()), ["timers.db", "timers.db.lock"]);
}

#[test]
fn a_database_of_a_later_program_is_refused() {
    let place = Place::new();
    drop(place.open());
    place.shell().execute("INSERT INTO schema_version VALUES (99, 0)", []).unwrap();
    assert!(place.refusal().ends_with("has schema version 99, which a newer timer wrote; use that one"), "{}", place.refusal());
}

#[test]
fn a_path_that_leads_nowhere_is_refused_in_one_sentence() {
    let place = Place::new();
    let clock = || std::sync::Arc::clone(&place.clock) as _;
    let refusal = |path: &Path| crate::SqliteStore::open(path, clock()).err().map(|error| error.to_string()).unwrap_or_default();

    let missing = place.directory.path().join("missing");
    assert_eq!(
        refusal(&missing.join("timers.db")),
        format!(
            "{} cannot be opened because the directory {} does not exist; create it first",
            missing.join("timers.db").display(),
            missing.display()
        )
    );
    let file = place.directory.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.join("timers.db").as_path(), place.directory.path(), Path::new("/proc/timers.db")] {
        let sentence = refusal(path);
        assert!(sentence.contains("cannot be opened: ") && sentence.contains("may write there"), "{sentence}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn all_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.open();
    create(&store, numbered(0..1)).await;
    let files = names(place.directory.path());
    assert_eq!(files, ["timers.db", "timers.db-shm", "timers.db-wal", "timers.db.lock"]);
    for file in files {
        let mode = fs::metadata(place.directory.path().join(&file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn every_commit_is_synced_before_it_is_answered() {
    let place = Place::new();
    let store = place.open();
    let settings = store.writer.write(super::writing::Settings).await.unwrap().1;
    assert_eq!(settings, [("journal_mode", "wal".to_owned()), ("synchronous", "2".to_owned()), ("page_size", "4096".to_owned())]);
}

pub fn names(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(directory).unwrap().map(name).collect();
    names.sort();
    names
}
