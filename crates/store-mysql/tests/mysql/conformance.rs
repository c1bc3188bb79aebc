//! The contract of every store, on a database of its own for each behaviour.

use super::database::Database;

mod mariadb {
    use super::*;

    store_conformance::suite!(Database::on(throwaway::mariadb()));
}

mod mysql {
    use super::*;

    store_conformance::suite!(Database::on_mysql());
}
