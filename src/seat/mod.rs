//! The build under test: started by command or attached to, waited for, and taken away without leaving orphans.

pub mod launch;
pub mod placeholder;
