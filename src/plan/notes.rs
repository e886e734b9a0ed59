//! What a plan can say in advance.
