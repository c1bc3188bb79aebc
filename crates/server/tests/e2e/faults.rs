//! Everything that goes wrong with real processes and a real database, under load: nothing is lost, nothing is early, no
//! receiver is called again but for what was under way, and the work goes on. See `trial`; what SIGSTOP and SIGTERM do is in `nodes`.

mod churn;
mod database;
mod galera;
mod kills;
mod links;
mod mysql;
mod races;
mod storm;
