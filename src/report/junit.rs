//! JUnit
