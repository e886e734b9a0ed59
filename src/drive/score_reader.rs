//! Prompt logprobs out of a body that is read as it comes; each value is looked up by the id that was sent.

use super::json_scan::{JsonFault, JsonScanner, Piece};
use super::prompt_logprobs::{ScoreFault, Scores, TokenScore};
use super::score_path::{Key, Level, Opened, Zone};
use crate::dialect::PromptLogprobs;
use crate::evidence::exchange::Usage;

/// Reads one body.
#[derive(Debug)]
pub(super) struct ScoreReader<'a> {
    scanner: JsonScanner,
    fold: Fold<'a>,
}

#[derive(Debug)]
struct Fold<'a> {
    route: PromptLogprobs,
    sent: &'a [u32],
    levels: Vec<Level>,
    tokens: Vec<TokenScore>,
    /// Entries of the list of logprobs, once it has ended.
    entries: Option<usize>,
    /// Ids that were returned outside the logprobs, and were those sent.
    ids_checked: usize,
    /// The position that is open: the entry of the id sent, and the first other id.
    found: Option<TokenScore>,
    best: Option<f64>,
    other: Option<u32>,
    /// The entry that is open.
    logprob: Option<f64>,
    rank: Option<u32>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

/// What a server tells of a place beside the logprob.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    rank: Option<u32>,
    best: Option<f64>,
}

impl<'a> ScoreReader<'a> {
    pub(super) fn new(route: PromptLogprobs, sent: &'a [u32]) -> Self {
        Self {
            scanner: JsonScanner::default(),
            fold: Fold {
                route,
                sent,
                levels: Vec::new(),
                tokens: Vec::with_capacity(sent.len()),
                entries: None,
                ids_checked: 0,
                found: None,
                best: None,
                other: None,
                logprob: None,
                rank: None,
                prompt_tokens: None,
                completion_tokens: None,
                cached_tokens: None,
            },
        }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), ScoreFault> {
        let fold = &mut self.fold;
        self.scanner.feed(chunk, &mut |piece| fold.take(piece))
    }

    /// The scores, if the body was whole and held one for each position but the first.
    pub(super) fn finish(self) -> Result<Scores, ScoreFault> {
        let body_bytes = self.scanner.bytes();
        if !self.scanner.is_whole() {
            return Err(ScoreFault::Cut(format!(
                "the body ended after {body_bytes} bytes in the middle of its JSON"
            )));
        }
        let fold = self.fold;
        let field = match fold.route {
            PromptLogprobs::Vllm => "choices[0].prompt_logprobs",
            PromptLogprobs::Echo => "choices[0].logprobs.token_logprobs",
            _ => "meta_info.input_token_logprobs",
        };
        let sent = fold.sent.len();
        let entries = fold.entries.ok_or(ScoreFault::MissingField(field))?;
        // An echo may end with the token that was generated.
        let generated = fold.route == PromptLogprobs::Echo && entries == sent + 1;
        if entries != sent && !generated {
            return Err(ScoreFault::WrongCount {
                what: field,
                sent,
                got: entries,
            });
        }
        if fold.route == PromptLogprobs::Echo && fold.ids_checked < sent {
            return Err(ScoreFault::IdsNotReturned);
        }
        if let Some(prompt) = fold.prompt_tokens
            && prompt != sent as u64
        {
            return Err(ScoreFault::WrongCount {
                what: "the server's count of prompt tokens",
                sent,
                got: prompt as usize,
            });
        }
        let usage = fold.prompt_tokens.zip(fold.completion_tokens);
        Ok(Scores {
            tokens: fold.tokens,
            usage: usage.map(|(prompt, completion)| Usage {
                prompt,
                completion,
                cached: fold.cached_tokens,
            }),
            body_bytes,
        })
    }
}

impl Fold<'_> {
    fn take(&mut self, piece: Piece<'_>) -> Result<(), ScoreFault> {
        match piece {
            Piece::OpenObject | Piece::OpenArray => {
                let opened = match piece {
                    Piece::OpenArray => Opened::Array,
                    _ => Opened::Object,
                };
                let zone = self
                    .levels
                    .last()
                    .map_or(Zone::Root, |outer| outer.inside(opened, self.route));
                self.levels.push(Level {
                    zone,
                    key: Key::Other,
                    index: 0,
                });
                Ok(())
            }
            Piece::CloseObject | Piece::CloseArray => {
                if let Some(level) = self.levels.pop() {
                    self.closed(level)?;
                }
                self.ended();
                Ok(())
            }
            Piece::Key(key) => {
                if let Some(level) = self.levels.last_mut() {
                    level.key = Key::of(key, level.zone);
                }
                Ok(())
            }
            scalar => {
                self.scalar(scalar)?;
                self.ended();
                Ok(())
            }
        }
    }

    /// The value of an element has ended.
    fn ended(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.index += 1;
        }
    }

    fn scalar(&mut self, piece: Piece<'_>) -> Result<(), ScoreFault> {
        let Some(level) = self.levels.last().copied() else {
            return Ok(());
        };
        match (level.zone, level.key) {
            (Zone::Positions | Zone::TokenLogprobs, _) => self.bare(level.index, piece),
            (Zone::Entry, Key::Logprob) => {
                self.logprob = decimal(piece);
                Ok(())
            }
            (Zone::Triple, _) if level.index == 0 => {
                self.logprob = decimal(piece);
                Ok(())
            }
            (Zone::Entry, Key::Rank) => {
                self.rank = count(piece).and_then(|rank| u32::try_from(rank).ok());
                Ok(())
            }
            (Zone::Triple, _) if level.index == 1 => {
                self.other = count(piece).and_then(|id| u32::try_from(id).ok());
                Ok(())
            }
            (Zone::PromptIds, _) => {
                let id = count(piece).and_then(|id| u32::try_from(id).ok());
                self.returned(level.index, id)
            }
            (Zone::Tokens, _) if level.index < self.sent.len() => match piece {
                Piece::String(text) => match text.strip_prefix("token_id:") {
                    Some(id) => self.returned(level.index, id.parse().ok()),
                    None => Ok(()),
                },
                _ => Ok(()),
            },
            (Zone::Usage | Zone::Meta, Key::PromptTokens) => {
                self.prompt_tokens = count(piece);
                Ok(())
            }
            (Zone::Usage | Zone::Meta, Key::CompletionTokens) => {
                self.completion_tokens = count(piece);
                Ok(())
            }
            (Zone::UsageDetails | Zone::Meta, Key::CachedTokens) => {
                self.cached_tokens = count(piece);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A number or null in the list of logprobs itself.
    fn bare(&mut self, position: usize, piece: Piece<'_>) -> Result<(), ScoreFault> {
        match piece {
            Piece::Null if position == 0 => Ok(()),
            // The token that an echo generated is not the prompt's.
            _ if position >= self.sent.len() => Ok(()),
            Piece::Null => Err(ScoreFault::NullInside(position)),
            Piece::Number(_) => self.keep(position, decimal(piece), Told::default()),
            _ => Err(ScoreFault::NotFinite(position)),
        }
    }

    /// An id that was returned for a position.
    fn returned(&mut self, position: usize, id: Option<u32>) -> Result<(), ScoreFault> {
        let sent = self.sent.get(position).copied();
        if sent.is_none() || sent != id {
            return Err(ScoreFault::IdMismatch {
                position,
                sent,
                got: id,
            });
        }
        self.ids_checked = self.ids_checked.max(position + 1);
        Ok(())
    }

    fn closed(&mut self, level: Level) -> Result<(), ScoreFault> {
        let parent = self.levels.last().copied();
        let position = parent.map_or(0, |p| p.index);
        match level.zone {
            Zone::Entry => self.entry_closed(parent.map(|p| p.key)),
            Zone::Position => {
                let found = self.found.take();
                let best = self.best.take();
                let other = self.other.take();
                let Some(score) = found else {
                    return Err(ScoreFault::IdMismatch {
                        position,
                        sent: self.sent.get(position).copied(),
                        got: other,
                    });
                };
                let told = Told {
                    rank: score.rank,
                    best,
                };
                self.keep(position, Some(score.logprob), told)
            }
            Zone::Triple => {
                let id = self.other.take();
                self.returned(position, id)?;
                match self.logprob.take() {
                    None if position == 0 => Ok(()),
                    None => Err(ScoreFault::NullInside(position)),
                    some => self.keep(position, some, Told::default()),
                }
            }
            Zone::Positions | Zone::TokenLogprobs | Zone::Triples => {
                self.entries = Some(level.index);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An id of a position has ended: it is kept if it is the one that was sent.
    fn entry_closed(&mut self, key: Option<Key>) -> Result<(), ScoreFault> {
        // Entry, then Position, then Positions: the list is now the last but one.
        let list = self.levels.len().checked_sub(2);
        let position = list.map_or(0, |i| self.levels[i].index);
        let (logprob, rank) = (self.logprob.take(), self.rank.take());
        let Some(Key::Id(id)) = key else {
            return Ok(());
        };
        if rank == Some(1) {
            self.best = logprob.filter(|l| l.is_finite());
        }
        if self.sent.get(position) == Some(&id) {
            let logprob = logprob.ok_or(ScoreFault::NullInside(position))?;
            self.found = Some(TokenScore {
                id,
                logprob,
                rank,
                best: None,
            });
        } else {
            self.other = self.other.or(Some(id));
        }
        Ok(())
    }

    fn keep(
        &mut self,
        position: usize,
        logprob: Option<f64>,
        told: Told,
    ) -> Result<(), ScoreFault> {
        let logprob = logprob.filter(|l| l.is_finite());
        let logprob = logprob.ok_or(ScoreFault::NotFinite(position))?;
        if logprob <= SENTINEL {
            return Err(ScoreFault::Sentinel(position));
        }
        if logprob > 0.0 {
            return Err(ScoreFault::Positive { position, logprob });
        }
        match self.sent.get(position) {
            Some(_) if position == 0 => Err(ScoreFault::FirstScored),
            Some(id) => {
                self.tokens.push(TokenScore {
                    id: *id,
                    logprob,
                    rank: told.rank,
                    best: told.best,
                });
                Ok(())
            }
            None => Err(ScoreFault::WrongCount {
                what: "positions with a logprob",
                sent: self.sent.len(),
                got: position + 1,
            }),
        }
    }
}

/// vLLM writes this for minus infinity.
const SENTINEL: f64 = -9999.0;

/// A number; NaN and the infinities become such floats, null and other values none.
fn decimal(piece: Piece<'_>) -> Option<f64> {
    match piece {
        // The standard library reads `NaN`, `Infinity` and `-Infinity` as what they say.
        Piece::Number(text) => text.parse().ok(),
        _ => None,
    }
}

fn count(piece: Piece<'_>) -> Option<u64> {
    match piece {
        Piece::Number(text) => text.parse().ok(),
        _ => None,
    }
}

impl From<JsonFault> for ScoreFault {
    fn from(fault: JsonFault) -> Self {
        Self::Malformed(fault.to_string())
    }
}
