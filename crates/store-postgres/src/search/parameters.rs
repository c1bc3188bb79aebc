use sqlx::{Arguments, Encode, Postgres, Type, postgres::PgArguments};

use crate::failure::{Failure, Step};

/// The values that a text names as `$1`, `$2`…
#[derive(Default)]
pub struct Parameters {
    values: PgArguments,
    failed: Option<sqlx::error::BoxDynError>,
}

impl Parameters {
    pub fn bind<'q, T: Encode<'q, Postgres> + Type<Postgres> + 'q>(&mut self, value: T) -> String {
        if let Err(error) = self.values.add(value) {
            self.failed = Some(error);
        }
        format!("${}", self.values.len())
    }

    /// All of them, in their order.
    pub fn values(self) -> Result<PgArguments, Failure> {
        match self.failed {
            Some(error) => Err(sqlx::Error::Encode(error)).or_not_done(),
            None => Ok(self.values),
        }
    }
}
