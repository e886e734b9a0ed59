//! A window without traffic: does the seat answer.

use std::time::Duration;

use serde_json::Map;

use super::boot::Stage;
use super::window::Yield;

/// How long a health route may take: it is answered by the event loop that also streams, never by the model.
const DEADLINE: Duration = Duration::from_secs(10);

/// Looks at the health route; a server without one is asked for its models instead.
pub async fn look(stage: &Stage) -> Yield {
    let mut results = Map::new();
    let fault = match stage.client.get("/health", DEADLINE, 1 << 20).await {
        Ok(reply) if (200..300).contains(&reply.status) => None,
        Ok(reply) if reply.status == 404 => {
            match stage.client.get("/v1/models", DEADLINE, 1 << 20).await {
                Ok(reply) if (200..300).contains(&reply.status) => None,
                Ok(reply) => Some(format!("`/v1/models` answers HTTP {}", reply.status)),
                Err(fault) => Some(fault.to_string()),
            }
        }
        Ok(reply) => Some(format!("`/health` answers HTTP {}", reply.status)),
        Err(fault) => Some(fault.to_string()),
    };
    results.insert("health".into(), fault.is_none().into());
    if let Some(fault) = fault {
        results.insert("health_fault".into(), fault.into());
    }
    Yield {
        results,
        ..Yield::default()
    }
}
