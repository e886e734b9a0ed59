//! Tokens are the bytes of UTF-8, the characters that Japanese text is written in, and three marks.
//!
//! A character of its own costs one token where its bytes would cost three; any other text is spelt in bytes, so every
//! text has ids and comes back from them.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::texts;

/// The end of an answer.
pub(super) const END: u32 = 256;
/// A message of the user begins.
pub(super) const USER: u32 = 257;
/// The answer begins.
pub(super) const ASSISTANT: u32 = 258;
/// The first token that is a character.
pub(super) const CHARACTERS_FROM: u32 = 259;
/// Characters that are tokens: those of the learnt Japanese texts that come more than once, and some of the others.
const CHARACTERS: usize = 768;
/// How many tokens there are.
pub(super) const VOCABULARY: usize = CHARACTERS_FROM as usize + CHARACTERS;

/// The characters that are tokens, and the token of each.
struct Characters {
    by_id: Vec<char>,
    ids: HashMap<char, u32>,
}

static TABLE: LazyLock<Characters> = LazyLock::new(Characters::learn);

impl Characters {
    /// The most frequent ones of the learnt Japanese texts; of equals the one with the lower code point.
    fn learn() -> Self {
        let mut counts: HashMap<char, usize> = HashMap::new();
        for text in texts::WITH_CHARACTERS {
            for character in text.chars().filter(|c| !c.is_ascii()) {
                *counts.entry(character).or_default() += 1;
            }
        }
        let mut ranked: Vec<(char, usize)> = counts.into_iter().collect();
        ranked.sort_by_key(|(character, count)| (std::cmp::Reverse(*count), *character));
        let by_id: Vec<char> = ranked
            .into_iter()
            .take(CHARACTERS)
            .map(|(c, _)| c)
            .collect();
        let ids = (CHARACTERS_FROM..)
            .zip(&by_id)
            .map(|(id, c)| (*c, id))
            .collect();
        Self { by_id, ids }
    }
}

/// Puts the ids of a text behind others.
fn encode_into(text: &str, ids: &mut Vec<u32>) {
    let mut bytes = [0; 4];
    for character in text.chars() {
        match TABLE.ids.get(&character) {
            Some(id) => ids.push(*id),
            None => ids.extend(character.encode_utf8(&mut bytes).bytes().map(u32::from)),
        }
    }
}

/// The ids of a text.
pub(super) fn encode(text: &str) -> Vec<u32> {
    let mut ids = Vec::with_capacity(text.len());
    encode_into(text, &mut ids);
    ids
}

/// The ids of a chat as the model reads it.
pub(super) fn render<'m>(messages: impl IntoIterator<Item = &'m str>) -> Vec<u32> {
    let mut ids = Vec::new();
    for content in messages {
        ids.push(USER);
        encode_into(content, &mut ids);
    }
    ids.push(ASSISTANT);
    ids
}

/// The character that a token stands for, if it stands for one.
fn character(id: u32) -> Option<char> {
    let place = usize::try_from(id.checked_sub(CHARACTERS_FROM)?).ok()?;
    TABLE.by_id.get(place).copied()
}

/// The bytes of some ids; marks have none.
pub(super) fn bytes(ids: &[u32]) -> Vec<u8> {
    let mut all = Vec::with_capacity(ids.len());
    let mut four = [0; 4];
    for id in ids {
        match (u8::try_from(*id), character(*id)) {
            (Ok(byte), _) => all.push(byte),
            (_, Some(character)) => all.extend(character.encode_utf8(&mut four).bytes()),
            (_, None) => {}
        }
    }
    all
}

/// One token as people write it.
pub(super) fn spell(id: u32) -> String {
    match id {
        END => "<|end|>".into(),
        USER => "<|user|>".into(),
        ASSISTANT => "<|assistant|>".into(),
        _ => match u8::try_from(id) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            Ok(byte) => format!("<0x{byte:02X}>"),
            Err(_) => character(id).map(String::from).unwrap_or_default(),
        },
    }
}

/// Bytes that become text piece by piece: an unfinished character waits for its rest.
#[derive(Debug, Default)]
pub(super) struct TextPieces {
    waiting: Vec<u8>,
}

impl TextPieces {
    /// The text that is whole after these ids.
    pub(super) fn push(&mut self, ids: &[u32]) -> String {
        self.waiting.extend(bytes(ids));
        let whole = match std::str::from_utf8(&self.waiting) {
            Ok(_) => self.waiting.len(),
            Err(cause) if cause.error_len().is_none() => cause.valid_up_to(),
            Err(_) => self.waiting.len(),
        };
        let rest = self.waiting.split_off(whole);
        let text = String::from_utf8_lossy(&self.waiting).into_owned();
        self.waiting = rest;
        text
    }

    /// What never became whole.
    pub(super) fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.waiting)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_character_waits_for_its_rest() {
        let mut pieces = TextPieces::default();
        let ids = encode("🦀a");
        assert_eq!(ids.len(), 5);
        assert_eq!(pieces.push(&ids[..2]), "");
        assert_eq!(pieces.push(&ids[2..]), "🦀a");
    }

    #[test]
    fn any_text_comes_back() {
        for text in [
            "plain",
            "日本語と code{};",
            "\u{1F980}\n\t",
            "ÿ\u{0}\u{10FFFF}é",
        ] {
            assert_eq!(String::from_utf8(bytes(&encode(text))).unwrap(), text);
        }
        for text in texts::WITH_CHARACTERS
            .iter()
            .chain(texts::CODE)
            .chain(texts::EN)
        {
            assert_eq!(String::from_utf8(bytes(&encode(text))).unwrap(), *text);
        }
    }

    #[test]
    fn every_place_of_the_vocabulary_is_a_token_of_its_own() {
        assert_eq!(TABLE.by_id.len(), CHARACTERS);
        let spelt: std::collections::HashSet<String> = (0..VOCABULARY as u32).map(spell).collect();
        assert_eq!(spelt.len(), VOCABULARY);
    }

    #[test]
    fn japanese_takes_about_one_token_a_character() {
        let text = "朝の市場で魚を買う人が、港から歩いて来た。";
        assert!(encode(text).len() < text.chars().count() * 3 / 2);
    }
}
