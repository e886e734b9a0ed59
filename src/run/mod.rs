//! The conductor: walks a plan, boot by boot and window by window, and writes down what happens.
//!
//! It judges nothing. Whatever goes wrong with one build or one window is recorded, and the rest goes on where it can.

pub mod audit;
pub mod boot;
pub mod conduct;
pub mod count;
pub mod external;
pub mod gauges;
pub mod host;
pub mod load;
pub mod look;
pub mod needle;
pub mod pack;
pub mod progress;
pub mod references;
pub mod residents;
pub mod score;
pub mod survey;
pub mod window;
