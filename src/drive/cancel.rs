//! A stop sign that every request watches.

use tokio::sync::watch;

/// The hand that stops a run; dropping it does not stop anything.
#[derive(Debug)]
pub struct CancelSource {
    sender: watch::Sender<bool>,
}

/// What a request watches; cheap to clone.
#[derive(Debug, Clone)]
pub struct Cancel {
    receiver: watch::Receiver<bool>,
}

impl CancelSource {
    /// Stops everything that watches; may be called again.
    pub fn cancel(&self) {
        self.sender.send_replace(true);
    }

    /// A new watcher.
    pub fn watcher(&self) -> Cancel {
        Cancel {
            receiver: self.sender.subscribe(),
        }
    }
}

impl Default for CancelSource {
    fn default() -> Self {
        Self {
            sender: watch::Sender::new(false),
        }
    }
}

impl Cancel {
    /// A watcher that never sees a stop.
    pub fn never() -> Self {
        CancelSource::default().watcher()
    }

    /// Whether the stop was given.
    pub fn is_cancelled(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Waits until the stop is given; waits for ever if it never is.
    pub async fn cancelled(&self) {
        let mut receiver = self.receiver.clone();
        if receiver.wait_for(|stopped| *stopped).await.is_err() {
            // The source is gone: nobody can stop us any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_reaches_those_who_watch_and_those_who_come_late() {
        let source = CancelSource::default();
        let early = source.watcher();
        assert!(!early.is_cancelled());
        source.cancel();
        early.cancelled().await;
        source.watcher().cancelled().await;
        assert!(early.is_cancelled());
    }
}
