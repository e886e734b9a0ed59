//! A closed loop of streams: each sends its next request when its last one has ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Barrier, mpsc};

use super::cancel::Cancel;
use super::fetch::{Line, fetch};
use super::request::Request;
use crate::evidence::exchange::Exchange;

/// Which stream sends which requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    /// So many streams, each taking the next request of the one list.
    Shared {
        /// Concurrent streams; at least one runs.
        streams: u32,
        /// The list.
        requests: Vec<Request>,
    },
    /// One list for each stream.
    PerStream(Vec<Vec<Request>>),
}

/// A request and its number in the window.
type Numbered = (u32, Request);

/// The lists of the streams; one list stands for all of them when it is shared.
struct Queues {
    lists: Vec<Mutex<VecDeque<Numbered>>>,
}

impl Queues {
    fn next(&self, stream: usize) -> Option<Numbered> {
        let list = self.lists.get(stream).or(self.lists.first())?;
        list.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

/// Drives the streams until their lists are empty or the run is cancelled; all of them start at the same moment.
///
/// Each exchange is handed to `sink` as soon as it has ended, in that order; the answer is sorted by request number.
/// Numbers run from `first_id` in the order of the lists. A request that was never sent has no exchange.
pub async fn drive<F>(
    line: &Line,
    assignment: Assignment,
    first_id: u32,
    cancel: &Cancel,
    mut sink: F,
) -> Vec<Exchange>
where
    F: FnMut(&Exchange),
{
    let mut next_id = first_id;
    let mut number = |list: Vec<Request>| {
        let numbered: VecDeque<Numbered> = (next_id..).zip(list).collect();
        next_id += numbered.len() as u32;
        Mutex::new(numbered)
    };
    let (streams, lists) = match assignment {
        Assignment::Shared { streams, requests } => (streams.max(1), vec![number(requests)]),
        Assignment::PerStream(lists) => {
            (lists.len() as u32, lists.into_iter().map(number).collect())
        }
    };
    let queues = Arc::new(Queues { lists });
    let barrier = Arc::new(Barrier::new(streams as usize));
    let (sender, mut ended) = mpsc::unbounded_channel();
    let mut tasks = tokio::task::JoinSet::new();
    for stream in 0..streams {
        let (queues, barrier, sender) = (queues.clone(), barrier.clone(), sender.clone());
        let (line, cancel) = (line.clone(), cancel.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            while !cancel.is_cancelled() {
                let Some((id, request)) = queues.next(stream as usize) else {
                    break;
                };
                let exchange = fetch(&line, &request, id, stream, &cancel).await;
                if sender.send(exchange).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let mut exchanges = Vec::new();
    while let Some(exchange) = ended.recv().await {
        sink(&exchange);
        exchanges.push(exchange);
    }
    while tasks.join_next().await.is_some() {}
    exchanges.sort_by_key(|e| e.id);
    exchanges
}
