//! JSON Schema.

/// stub until the printer branch lands
pub fn schema() -> serde_json::Value {
    serde_json::json!({})
}
