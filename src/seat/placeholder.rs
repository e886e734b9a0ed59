//! Words in a build's command and environment that are filled in at boot.

/// What the placeholders stand for in one boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filling {
    /// `{port}`: the port of the boot's URL.
    pub port: u16,
    /// `{model}`: the model of the seat.
    pub model: String,
    /// `{gate}`: the folder of the gate file, for scripts beside it.
    pub gate_dir: String,
}

impl Filling {
    /// The text with each placeholder filled in; other braces stay as they are (JSON arguments have them).
    pub fn fill(&self, text: &str) -> String {
        text.replace("{port}", &self.port.to_string())
            .replace("{model}", &self.model)
            .replace("{gate}", &self.gate_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_arguments_keep_their_braces() {
        let filling = Filling {
            port: 8899,
            model: "m".into(),
            gate_dir: "gates".into(),
        };
        assert_eq!(
            filling.fill(r#"{"method":"ngram","p":{port}}"#),
            r#"{"method":"ngram","p":8899}"#
        );
    }
}
