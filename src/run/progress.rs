//! What a run tells while it goes on.

/// Something worth a line or a tick.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The plan stands: windows and boots to come.
    Planned {
        /// Windows.
        windows: usize,
        /// Boots.
        boots: usize,
        /// Folder of the run.
        dir: String,
    },
    /// A build is being started or attached to.
    Booting {
        /// Build.
        build: String,
        /// What is done (`starting`, `attaching to`).
        how: String,
    },
    /// A build answers.
    Ready {
        /// Build.
        build: String,
        /// Seconds that it took.
        seconds: f64,
        /// Dialect, version, model.
        identity: String,
    },
    /// A build did not come up.
    BootFailed {
        /// Build.
        build: String,
        /// Why.
        why: String,
    },
    /// A window opens.
    Opening {
        /// Id.
        window: String,
        /// Case.
        case: String,
        /// Build.
        build: String,
        /// What is done in it.
        task: String,
    },
    /// A window closed.
    Closed {
        /// Id.
        window: String,
        /// Seconds.
        seconds: f64,
        /// Requests that did not end whole.
        failed: usize,
    },
    /// Something that a person should know now.
    Note(String),
    /// A build left the seat.
    Stopped {
        /// Build.
        build: String,
        /// How.
        how: String,
    },
}

/// Who listens.
pub type Listener<'a> = &'a mut (dyn FnMut(Progress) + Send);
