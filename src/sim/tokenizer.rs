//! Tokens are the bytes of UTF-8 and three marks.

/// The end of an answer.
pub(super) const END: u32 = 256;
/// A message of the user begins.
pub(super) const USER: u32 = 257;
/// The answer begins.
pub(super) const ASSISTANT: u32 = 258;
/// How many tokens there are.
pub(super) const VOCABULARY: usize = 259;

/// The ids of a text.
pub(super) fn encode(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// The ids of a chat as the model reads it.
pub(super) fn render<'m>(messages: impl IntoIterator<Item = &'m str>) -> Vec<u32> {
    let mut ids = Vec::new();
    for content in messages {
        ids.push(USER);
        ids.extend(content.bytes().map(u32::from));
    }
    ids.push(ASSISTANT);
    ids
}

/// The bytes of some ids; marks have none.
pub(super) fn bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().filter_map(|id| u8::try_from(*id).ok()).collect()
}

/// One token as people write it.
pub(super) fn spell(id: u32) -> String {
    match id {
        END => "<|end|>".into(),
        USER => "<|user|>".into(),
        ASSISTANT => "<|assistant|>".into(),
        byte => match u8::try_from(byte) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            Ok(byte) => format!("<0x{byte:02X}>"),
            Err(_) => String::new(),
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
        let ids = encode("針a");
        assert_eq!(pieces.push(&ids[..2]), "");
        assert_eq!(pieces.push(&ids[2..]), "針a");
    }

    #[test]
    fn any_text_comes_back() {
        for text in ["plain", "日本語と code{};", "\u{1F980}\n\t"] {
            assert_eq!(String::from_utf8(bytes(&encode(text))).unwrap(), text);
        }
    }
}
