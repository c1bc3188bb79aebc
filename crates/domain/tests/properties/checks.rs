//! What must hold for any text that a client may send. The fuzz targets (`fuzz/`) call these, too.

pub mod callback;
pub mod duration;
pub mod metadata_path;
