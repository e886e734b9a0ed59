use super::*;
use crate::dialect;

const ONE: Ranks = Ranks {
    tp: 1,
    pp: 1,
    dp: 1,
    nodes: 1,
};

fn reader(id: &str) -> LogReader {
    LogReader::new(dialect::named(id).unwrap())
}

/// `proc|pid|level|message` of each record.
fn records(id: &str, log: &[u8]) -> Vec<String> {
    let mut seen = Vec::new();
    reader(id)
        .read(log, |l| {
            let pid = l.pid.map(|p| p.to_string()).unwrap_or_default();
            let level = l.level.map(|l| format!("{l:?}")).unwrap_or_default();
            seen.push(format!(
                "{}|{pid}|{level}|{}",
                l.proc.unwrap_or(""),
                l.message
            ));
        })
        .unwrap();
    seen
}

#[test]
fn a_prefix_is_read_in_the_spelling_of_each_vllm_era() {
    let log = "(Worker_TP3 pid=12) INFO 12-01 05:40:01 [a.py:7] hello\n\
        (VllmWorker rank=2 pid=13) WARNING 12-01 05:40:01 [a.py:7] hello\n\
        INFO 12-01 05:40:01 [a.py:7] driver\n\
        \u{1b}[1;36m(EngineCore_DP0 pid=14)\u{1b}[0;0m ERROR 12-01 05:40:01 [a.py:7] red\n\
        myprefix(APIServer pid=1) INFO 12-01 05:40:01 [a.py:7] hello\n\
        (Worker_TP0 pid=5) printed by a library\n\
        bare\n";
    assert_eq!(
        records("vllm", log.as_bytes()),
        [
            "Worker_TP3|12|Info|hello",
            "VllmWorker rank=2|13|Warning|hello",
            "||Info|driver",
            "EngineCore_DP0|14|Error|red",
            "|||myprefix",
            "APIServer|1|Info|hello",
            "Worker_TP0|5||printed by a library",
            "|||bare",
        ]
    );
}

#[test]
fn ranks_come_from_the_prefix_by_era_and_size() {
    let rank = |proc: &str, ranks: Ranks| {
        let log = format!("({proc} pid=12) INFO 12-01 05:40:01 [a.py:7] hello\n");
        let mut seen = None;
        let reader = reader("vllm");
        reader
            .read(log.as_bytes(), |l| seen = reader.rank(l, &ranks))
            .unwrap();
        seen
    };
    let tp8 = Ranks { tp: 8, ..ONE };
    assert_eq!(rank("Worker_TP3", tp8), Some(3));
    assert_eq!(rank("VllmWorker rank=2", tp8), Some(2));
    assert_eq!(rank("VllmWorker-5", tp8), Some(5));
    assert_eq!(rank("Worker", tp8), None);
    assert_eq!(rank("EngineCore", tp8), None);
    assert_eq!(rank("EngineCore", ONE), Some(0));
    assert_eq!(rank("Worker", ONE), Some(0));
    assert_eq!(rank("APIServer", ONE), None);
    assert_eq!(rank("EngineCore_DP1", Ranks { dp: 2, ..ONE }), Some(1));
    assert_eq!(
        rank(
            "EngineCore_DP1",
            Ranks {
                tp: 2,
                dp: 2,
                ..ONE
            }
        ),
        None
    );
}

#[test]
fn a_progress_bar_leaves_its_last_state_and_hides_no_record() {
    let log = "\rLoading:   0%\rLoading: 100%\n\
        (Worker pid=1) INFO 12-01 05:40:01 [a.py:7] FALLBACK\rbar 5%\n\
        bar 9% (Worker pid=1) INFO 12-01 05:40:01 [a.py:7] after\r\n";
    assert_eq!(
        records("vllm", log.as_bytes()),
        [
            "|||Loading: 100%",
            "Worker|1|Info|FALLBACK",
            "|||bar 5%",
            "|||bar 9% ",
            "Worker|1|Info|after"
        ]
    );
}

#[test]
fn two_writers_in_one_line_are_parted_and_a_bare_prefix_owns_nothing() {
    let log = "(Worker_TP0 pid=1) INFO 12-01 05:40:01 [a.py:7] one(Worker_TP1 pid=2) INFO 12-01 05:40:01 [a.py:7] two\n\
        (Worker_TP0 pid=1) (Worker_TP1 pid=2) INFO 12-01 05:40:01 [a.py:7] two\n";
    assert_eq!(
        records("vllm", log.as_bytes()),
        [
            "Worker_TP0|1|Info|one",
            "Worker_TP1|2|Info|two",
            "Worker_TP0|1||",
            "Worker_TP1|2|Info|two"
        ]
    );
}

#[test]
fn a_message_of_several_lines_keeps_its_prefix() {
    let log = "(Worker pid=1) INFO 12-01 05:40:01 [a.py:7] first\r\n(Worker pid=1) INFO 12-01 05:40:01 [a.py:7] \tsecond\r\n";
    assert_eq!(
        records("vllm", log.as_bytes()),
        ["Worker|1|Info|first", "Worker|1|Info|\tsecond"]
    );
}

#[test]
fn json_lines_are_records_too() {
    let log = r#"{"asctime":"12-01 05:40:01","levelname":"INFO","name":"vllm","processName":"Worker_TP1","process":42,"message":"say \"ACTIVE\" twice"}
{"not a log line": 1}
{cut
"#;
    assert_eq!(
        records("vllm", log.as_bytes()),
        [
            r#"Worker_TP1|42|Info|say "ACTIVE" twice"#,
            r#"|||{"not a log line": 1}"#,
            "|||{cut"
        ]
    );
}

#[test]
fn no_bytes_make_it_panic() {
    // A fixed generator: the same bytes on every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut log = Vec::new();
    let seeds: [&[u8]; 6] = [
        b"(Worker pid=1) INFO 12-01 05:40:01 [a.py:7] x",
        b"\x1b[",
        b"\r",
        b"\n",
        b"\xff\xfe",
        b"(W",
    ];
    for _ in 0..4000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let seed = seeds[(state % 6) as usize];
        log.extend_from_slice(&seed[..seed.len() - (state >> 32) as usize % seed.len()]);
        log.push((state >> 40) as u8);
    }
    for id in ["vllm", "llamacpp", "openai"] {
        let mut seen = 0u64;
        let account = reader(id).read(&log[..], |_| seen += 1).unwrap();
        assert_eq!(account.bytes, log.len() as u64);
        assert!(seen >= account.lines);
    }
}
