//! A session with the server. It knows which dialect the server speaks, and translates what TiDB lacks, so that a call is written once.

use std::borrow::Cow;

use futures_util::{future::BoxFuture, stream::BoxStream};
use serde::Serialize;
use sqlx::{
    AssertSqlSafe, Connection, Either, Execute, Executor, MySql, MySqlConnection, SqlSafeStr, SqlStr,
    error::BoxDynError,
    mysql::{MySqlArguments, MySqlQueryResult, MySqlRow, MySqlStatement, MySqlTypeInfo},
};
use store_sql::sql;

use crate::{
    dialect::Dialect,
    failure::{Failure, Step},
    rows::json,
    tidb,
};

const LOCK_GENERATION: &str = sql!("sql/lock_generation.sql");

#[derive(Debug)]
pub struct Session {
    connection: MySqlConnection,
    dialect: Dialect,
    /// Which stripe its transactions lock, on TiDB: chosen with the first of them that records events.
    stripe: Option<u32>,
}

impl Session {
    pub const fn new(connection: MySqlConnection, dialect: Dialect) -> Self {
        Self { connection, dialect, stripe: None }
    }

    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The statement with which a transaction that records events begins: a reader of events waits for what it locks.
    pub fn event_lock(&mut self) -> Cow<'static, str> {
        match self.dialect {
            Dialect::Mysql => Cow::Borrowed(LOCK_GENERATION),
            Dialect::Tidb => Cow::Owned(tidb::lock(*self.stripe.get_or_insert_with(tidb::next_stripe))),
        }
    }

    /// Gives the server the rows that the next statement is about. What comes back is bound in the place of its JSON text.
    pub async fn given<T: Serialize + Sync>(&mut self, rows: &[T]) -> Result<String, Failure> {
        let json = json(rows)?;
        if self.dialect == Dialect::Mysql {
            return Ok(json);
        }
        let text = tidb::staged(&json)?;
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut self.connection).await.or_not_done()?;
        Ok(String::new())
    }

    pub async fn close(self) {
        // The server notices a closed connection by itself.
        drop(self.connection.close().await);
    }
}

/// A statement in the words of TiDB, with the arguments that it had.
struct Translated {
    text: SqlStr,
    arguments: Option<Result<Option<MySqlArguments>, BoxDynError>>,
    is_persistent: bool,
}

impl Translated {
    fn of<'q>(mut statement: impl Execute<'q, MySql>) -> Self {
        let arguments = Some(statement.take_arguments());
        let is_persistent = statement.persistent();
        let text = statement.sql();
        let text = tidb::translated(text.as_str()).map_or(text, |translated| AssertSqlSafe(translated).into_sql_str());
        Self { text, arguments, is_persistent }
    }
}

impl Execute<'_, MySql> for Translated {
    fn sql(self) -> SqlStr {
        self.text
    }

    fn statement(&self) -> Option<&MySqlStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<MySqlArguments>, BoxDynError> {
        self.arguments.take().unwrap_or(Ok(None))
    }

    fn persistent(&self) -> bool {
        self.is_persistent
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = MySql;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<MySqlQueryResult, MySqlRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, MySql>,
    {
        match self.dialect {
            Dialect::Mysql => self.connection.fetch_many(query),
            Dialect::Tidb => self.connection.fetch_many(Translated::of(query)),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<MySqlRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, MySql>,
    {
        match self.dialect {
            Dialect::Mysql => self.connection.fetch_optional(query),
            Dialect::Tidb => self.connection.fetch_optional(Translated::of(query)),
        }
    }

    fn prepare_with<'e>(self, text: SqlStr, parameters: &'e [MySqlTypeInfo]) -> BoxFuture<'e, Result<MySqlStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(text, parameters)
    }
}
