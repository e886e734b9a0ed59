//! Every word that a report says by itself, in both languages: the one table.

use crate::judge::figure::{Decision, Origin};
use crate::judge::finding::{ProofVerdict, Tier};
use crate::judge::verdict::Verdict;

/// Language of a rendered report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, with the Japanese word beside each heading.
    En,
    /// Japanese.
    Ja,
}

impl Language {
    /// Tag for documents (`en`).
    pub fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }
}

macro_rules! phrases {
    ($($name:ident: $en:literal, $ja:literal;)*) => {
        /// A phrase of the report.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Phrase {
            $(#[doc = concat!("“", $en, "”.")] $name,)*
        }

        impl Phrase {
            /// Every phrase, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The phrase in a language; `{}` marks what [`fill`] puts in.
            pub fn text(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Self::$name, Language::En) => $en, (Self::$name, Language::Ja) => $ja,)*
                }
            }
        }
    };
}

phrases! {
    // Headline.
    Report: "Gate report", "門の報告";
    CheckCount: "{} checks", "検査 {} 件";
    OneCheck: "1 check", "検査 1 件";
    WhyPass: "every bound clears its limit, and each path that a check names is proven in its own windows", "すべての下限・上限が基準を満たし、検査が求める経路は同じ計測窓の中で証明された";
    WhyPassPaths: "every bound clears its limit, and the path {} is proven in the same windows", "すべての下限・上限が基準を満たし、経路 {} は同じ計測窓の中で証明された";
    WhyPassNoPath: "every bound clears its limit; no check asked for proof of a path", "すべての下限・上限が基準を満たした。経路の証明を求めた検査はない";
    WhyEmpty: "no check was carried out, so nothing is known", "検査が一つも行われておらず、何も分からない";
    AndMore: "and {} more", "ほか {} 件";
    // Headings.
    Verdicts: "Verdicts", "判定";
    Reasons: "Reasons", "根拠";
    NotRun: "NOT RUN", "未実施";
    Proofs: "Proof of path", "経路の証明";
    Figures: "Figures", "計測値";
    Power: "What this run could have seen", "この計測で見分けられる差";
    Identity: "Seat and gate", "席と門";
    Windows: "Windows", "計測窓";
    Differences: "What differs between the builds", "ビルド間の差分";
    Conditions: "Conditions", "計測条件";
    Requests: "Requests", "要求の条件";
    Boot: "Boot {}: {}", "起動 {}: {}";
    Reproduce: "Reproduce", "再現手順";
    Hashes: "Hashes", "ハッシュ";
    Approval: "Approval", "承認";
    // Columns and names of facts.
    Verdict: "verdict", "判定";
    Case: "case", "検査";
    Cases: "cases", "検査";
    Build: "build", "ビルド";
    Figure: "figure", "計測項目";
    Value: "value", "値";
    Reference: "reference", "参照";
    Ratio: "ratio", "比";
    Limit: "limit", "基準";
    Margin: "margin", "余裕";
    SmallestEffect: "smallest effect", "見分けられる最小の差";
    AaFloor: "A/A floor", "A/A 差";
    Observations: "n", "n";
    Attempt: "attempt", "試行";
    Repeats: "repeats", "各回";
    Origin: "origin", "出所";
    Method: "method", "方法";
    SeenIn: "windows", "計測窓";
    Tier: "tier", "段階";
    Source: "source", "出所";
    Expected: "expected", "期待";
    Seen: "seen", "実際";
    Ranks: "ranks", "ランク";
    Holds: "holds", "成否";
    Window: "window", "窓";
    Part: "part", "部分";
    Started: "started (UTC)", "開始 (UTC)";
    Length: "length", "長さ";
    Sent: "requests", "要求";
    UsageTokens: "tokens by usage, in / out", "usage のトークン 入 / 出";
    SeatTokens: "by the server's counters", "サーバーの計数";
    Incidents: "incidents", "異状";
    Name: "name", "名前";
    Why: "why", "理由";
    Gate: "gate", "門";
    GateHash: "gate file, SHA-256", "門ファイルの SHA-256";
    ReportHash: "report.json, SHA-256", "report.json の SHA-256";
    Seat: "seat", "席";
    Server: "server", "サーバー";
    Model: "model", "モデル";
    Fingerprint: "seat fingerprint", "席の指紋";
    Builds: "builds", "ビルド";
    RunId: "run", "実行";
    RunStarted: "started (UTC)", "開始 (UTC)";
    RunLength: "wall time", "所要時間";
    RunEnded: "ended", "終了";
    ToolName: "tool", "道具";
    Ready: "ready after", "準備完了まで";
    Log: "log", "ログ";
    Told: "says of itself", "自己申告";
    Environment: "environment", "環境変数";
    Host: "Host", "ホスト";
    AskedWith: "asked with", "条件";
    Gpu: "GPU", "GPU";
    // Sentences.
    None: "none", "なし";
    NothingNotRun: "none: everything that was declared was carried out", "なし: 宣言した検査はすべて実施した";
    AllPass: "none: every check passes", "なし: 全検査が合格";
    NoProof: "none: no check of this gate names a path, so nothing here proves which code served", "なし: 経路を求める検査がなく、どのコードが応答したかは証明されていない";
    NoWindows: "none: no window was opened", "なし: 計測窓は開かれていない";
    NoFigures: "none", "なし";
    NoDifference: "none: the same command and environment", "なし: 起動コマンドと環境変数は同じ";
    Attached: "attached to what served; the command is not known", "稼働中の席に接続した。起動コマンドは不明";
    Unset: "not set", "未設定";
    NotTold: "not told", "不明";
    NotMeasured: "not measured", "計測なし";
    NoInterval: "no interval", "区間なし";
    AskedAtLine: "gate line {}", "門ファイル {} 行目";
    OnBuild: "on {}", "{}";
    PathOn: "path {} on {}", "経路 {}（{}）";
    Note: "note", "注";
    AbsentLegend: "– is absent, never zero: tokens by usage are absent if any answer sent none; the server's counters where it has none.", "– は「無い」であって 0 ではない。usage を送らない応答が一つでもあれば usage は –、計数のないサーバーでは計数は –。";
    ReproduceText: "The gate file in effect and the evidence lie in the run's directory. The first command judges the recorded evidence again, offline, to the same bytes; the second measures anew.", "有効だった門ファイルと証拠は実行ディレクトリにある。一つ目の命令は記録した証拠を席なしで判定し直し、同じバイト列を出す。二つ目は測り直す。";
    ApprovalText: "Empty until an approver signs the SHA-256 of report.json.", "承認者が report.json の SHA-256 に署名するまで空欄。";
    Approver: "approver", "承認者";
    ApprovalDecision: "decision", "決定";
    Date: "date", "日付";
    Signature: "signature", "署名";
    CutShort: "Cut here to stay under the size that GitHub accepts; the whole is in report.json and report.html.", "GitHub の上限に収めるためここで切った。全文は report.json と report.html にある。";
    MoreInFiles: "figures, windows, recipes and hashes: report.md, report.html, report.json", "計測値・計測窓・起動条件・ハッシュ: report.md、report.html、report.json";
    StripLegend: "dots: repeats · bar: interval · tick: estimate · line: limit · grey: reference band", "点: 各回　帯: 区間　縦線: 推定値　破線: 基準　灰色: 参照の帯";
    Rerun: "earlier runs of this gate that did not pass: {}; judged at alpha / {}", "この門は先に {} 回不合格: 有意水準を 1/{} にして判定";
    NewBuild: "earlier runs do not count: {}", "先の実行は数えない: {}";
    PowerLegend: "smallest effect: distance from the limit that as many observations find four times in five, in the unit of the margin; A/A floor: how far the reference lies from itself, later half of its repeats over the earlier", "見分けられる最小の差: 同じ回数の計測が 5 回に 4 回検出できる、基準からの隔たり（余裕と同じ単位）。A/A 差: 参照ビルド自身の後半の回と前半の回の隔たり";
    NoPower: "none: no limit of this gate is held by a bound", "なし: 区間で判定する基準がない";
    FailedRequests: "{} failed", "失敗 {}";
    Judged: "judged", "判定対象";
}

/// Puts values into the `{}` of a phrase, in order.
pub fn fill(phrase: &str, values: &[&str]) -> String {
    let mut parts = phrase.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        out.push_str(values.get(index).copied().unwrap_or_default());
        out.push_str(part);
    }
    out
}

/// The Japanese word for a verdict.
pub fn verdict_ja(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "合格",
        Verdict::Inconclusive => "判定保留",
        Verdict::Unproven => "未証明",
        Verdict::NotRun => "未実施",
        Verdict::Fail => "不合格",
    }
}

/// A verdict as one cell says it: the word that people and scripts know, with its Japanese in a Japanese report.
pub fn verdict(verdict: Verdict, language: Language) -> String {
    match language {
        Language::En => verdict.word().into(),
        Language::Ja => format!("{} {}", verdict.word(), verdict_ja(verdict)),
    }
}

/// The verdict on a path.
pub fn proof_verdict(verdict: ProofVerdict, language: Language) -> &'static str {
    match (verdict, language) {
        (ProofVerdict::Proven, Language::En) => "PROVEN",
        (ProofVerdict::Proven, Language::Ja) => "PROVEN 証明済み",
        (ProofVerdict::Unproven, Language::En) => "UNPROVEN",
        (ProofVerdict::Unproven, Language::Ja) => "UNPROVEN 未証明",
        (ProofVerdict::Contradicted, Language::En) => "CONTRADICTED",
        (ProofVerdict::Contradicted, Language::Ja) => "CONTRADICTED 反証あり",
    }
}

/// The verdict that a proof stands for when a single colour or word is wanted.
pub fn standing(verdict: ProofVerdict) -> Verdict {
    match verdict {
        ProofVerdict::Proven => Verdict::Pass,
        ProofVerdict::Unproven => Verdict::Unproven,
        ProofVerdict::Contradicted => Verdict::Fail,
    }
}

/// A tier of evidence.
pub fn tier(tier: Tier, language: Language) -> &'static str {
    match (tier, language) {
        (Tier::Declared, Language::En) => "declared",
        (Tier::Declared, Language::Ja) => "宣言 declared",
        (Tier::Echoed, Language::En) => "echoed",
        (Tier::Echoed, Language::Ja) => "復唱 echoed",
        (Tier::Announced, Language::En) => "announced",
        (Tier::Announced, Language::Ja) => "表明 announced",
        (Tier::Resident, Language::En) => "resident",
        (Tier::Resident, Language::Ja) => "常駐 resident",
        (Tier::Moved, Language::En) => "moved",
        (Tier::Moved, Language::Ja) => "作動 moved",
        (Tier::Behaved, Language::En) => "behaved",
        (Tier::Behaved, Language::Ja) => "挙動 behaved",
    }
}

/// Whether a piece of evidence holds; its blanks do not break, so that the mark stays with its word.
pub fn holds(ok: Option<bool>, language: Language) -> &'static str {
    match (ok, language) {
        (Some(true), Language::En) => "✓\u{a0}holds",
        (Some(true), Language::Ja) => "✓\u{a0}成立",
        (Some(false), Language::En) => "✗\u{a0}refutes",
        (Some(false), Language::Ja) => "✗\u{a0}否定",
        (None, Language::En) => "–\u{a0}no\u{a0}evidence",
        (None, Language::Ja) => "–\u{a0}証拠なし",
    }
}

/// The mark of a limit.
pub fn mark(decision: Decision) -> &'static str {
    match decision {
        Decision::Clears => "✓",
        Decision::Misses => "✗",
        Decision::Open => "?",
        Decision::Absent => "–",
    }
}

/// Where a figure comes from.
pub fn origin(origin: Origin, language: Language) -> &'static str {
    match (origin, language) {
        (Origin::Measured, Language::En) => "measured",
        (Origin::Measured, Language::Ja) => "計測",
        (Origin::Reported, Language::En) => "told by the server",
        (Origin::Reported, Language::Ja) => "サーバーの申告",
        (Origin::External, Language::En) => "another tool",
        (Origin::External, Language::Ja) => "外部の道具",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_fill_the_same_blanks() {
        for phrase in Phrase::ALL {
            let blanks = |l| phrase.text(l).matches("{}").count();
            // “on {}” loses nothing in Japanese, and the counts agree everywhere else too.
            assert_eq!(blanks(Language::En), blanks(Language::Ja), "{phrase:?}");
            assert!(!phrase.text(Language::Ja).is_empty() && !phrase.text(Language::En).is_empty());
        }
    }

    #[test]
    fn filling_puts_values_in_order() {
        assert_eq!(
            fill("boot {}: {}", &["b1", "candidate"]),
            "boot b1: candidate"
        );
        assert_eq!(fill("{} of {}", &["1"]), "1 of ");
    }
}
