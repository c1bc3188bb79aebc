//! What stores in SQL databases share, and what names no database.

pub mod columns;
mod statement;

pub use columns::{are_first_columns_of, columns};
pub use statement::Statement;
