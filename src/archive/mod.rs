//! Run directories: what is written while a run goes on, and read back to judge it.
//!
//! `reports/<gate>/<utc>-<build>/` holds `gate.toml` as it was in effect, `evidence/` and the rendered reports. The
//! evidence is a journal of one JSON record a line, flushed as each thing happens, beside the raw scrapes, logs and
//! scores that it names. A run is judged from what this room reads back, never from memory: `sekimon judge` sees
//! exactly what `sekimon run` saw.

pub mod attempts;
pub mod journal;
pub mod reading;
pub mod record;
pub mod rundir;
