//! Stores for tests: the contract as a program in memory, and a decorator that makes calls fail on purpose.
//!
//! Only tests may use this crate; `scripts/check_arrows.py` refuses it as a normal dependency.

mod faulty;
mod model;

pub use faulty::{Fault, Faulty, Odds};
pub use model::Model;
