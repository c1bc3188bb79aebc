//! Migrations have the same number and the same meaning in every store.
#![expect(clippy::unwrap_used, reason = "these are tests: a panic is how they fail")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The folders of the stores that have migrations, by their names.
fn stores() -> BTreeMap<String, PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let with_migrations = folders.filter(|folder| folder.join("migrations").is_dir());
    with_migrations.map(|folder| (folder.file_name().unwrap().to_string_lossy().into_owned(), folder)).collect()
}

fn migrations(store: &Path) -> Vec<String> {
    let files = fs::read_dir(store.join("migrations")).unwrap();
    let mut names: Vec<_> = files.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn every_store_has_the_same_migrations() {
    let stores = stores();
    assert!(["store-mysql", "store-postgres", "store-sqlite"].iter().all(|store| stores.contains_key(*store)), "{stores:?}");
    let mut lists = stores.iter().map(|(name, folder)| (name, migrations(folder)));
    let (first, expected) = lists.next().unwrap();
    for (name, list) in lists {
        assert_eq!(list, expected, "{name} and {first} differ: a store that needs nothing has a file that says why");
    }
}

#[test]
fn migrations_are_numbered_without_gaps_and_all_of_them_are_applied() {
    for (name, folder) in stores() {
        let applied = fs::read_to_string(folder.join("src/migrate.rs")).unwrap();
        for (number, file) in (1..).zip(migrations(&folder)) {
            assert!(file.starts_with(&format!("{number:04}_")), "{name}: {file} should have the number {number}");
            assert!(applied.contains(&format!("../migrations/{file}")), "{name} does not apply {file}");
        }
    }
}
