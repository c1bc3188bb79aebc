//! Tests against a real server.

mod arrival;
mod breaking;
mod login;
mod outage;
mod permission;
mod proxy;
mod rig;
mod streams;
