use super::*;

fn values(text: &str) -> Vec<String> {
    Exposition::parse(text)
        .samples()
        .map(|s| format!("{s:?}"))
        .collect()
}

#[test]
fn names_labels_values_stamps_and_exemplars_are_read() {
    let text = "# HELP a_total what\n# TYPE a_total counter\na_total 3\n\
        b{x=\"1\",y=\"z\",} 1.79610357388e+09 1700000000000\r\n\
        c_bucket{le=\"+Inf\"} 17 # {trace_id=\"#a}\\\"\"} 0.5 1.5\n\
        d NaN\ne -Inf\nf\t+Inf\n{\"g.h\",k=\"v\"} 2\n# EOF\nnot read\n";
    let seen = values(text);
    assert_eq!(
        seen,
        [
            "a_total{} 3",
            "b{x=\"1\",y=\"z\",} 1796103573.88",
            "c_bucket{le=\"+Inf\",} 17",
            "d{} NaN",
            "e{} -inf",
            "f{} inf",
            "g.h{k=\"v\",} 2",
        ]
    );
    assert_eq!(Exposition::parse(text).fault_count(), 0);
}

#[test]
fn escapes_and_braces_inside_label_values_are_text() {
    let text = "m{a=\"x\\\\\",b=\"q\\\"}{\",c=\"l\\nn\",d=\"\\t\"} 1\n";
    let e = Exposition::parse(text);
    let sample = e.samples().next().expect("one sample");
    assert_eq!(sample.label("a"), Some("x\\"));
    assert_eq!(sample.label("b"), Some("q\"}{"));
    assert_eq!(sample.label("c"), Some("l\nn"));
    assert_eq!(sample.label("d"), Some("\\t"));
    assert_eq!(sample.label("e"), None);
}

#[test]
fn garbage_is_counted_with_its_line_and_bounded() {
    let mut text = String::from("ok 1\nx{a=1} 2\ny\n9z 1\nw 1 later\nv{a=\"1\nu one\n");
    for _ in 0..100 {
        text.push_str("<html>\n");
    }
    let e = Exposition::parse(&text);
    assert_eq!(e.len(), 1);
    assert_eq!(e.fault_count(), 106);
    assert_eq!(e.faults().len(), FAULTS_KEPT);
    assert_eq!(
        (e.faults()[0].line, e.faults()[0].what),
        (2, "a label value has no quotes")
    );
    assert_eq!(
        (e.faults()[1].line, e.faults()[1].what),
        (3, "the value is missing")
    );
}

#[test]
fn a_value_that_may_be_cut_is_not_believed() {
    let e = Exposition::parse("a 810.0\nb 81");
    assert_eq!(e.len(), 1);
    assert_eq!(e.faults()[0].line, 2);
    assert!(e.faults()[0].what.contains("cut"));
}

#[test]
fn kinds_follow_the_family_and_never_a_prefix() {
    let e = Exposition::parse(
        "# TYPE it_total histogram\nit_total_count 5\nit_total_sum 9\n# TYPE d_total counter\nd_total 1\n\
         # TYPE d_created gauge\nd_created 1.7e9\n# TYPE om counter\nom_total 1\nom_created 1\nbare 1\n",
    );
    assert_eq!(e.kind("it_total"), Some(Kind::Histogram));
    assert_eq!(e.kind("it_total_count"), Some(Kind::Histogram));
    assert_eq!(e.kind("d_total"), Some(Kind::Counter));
    assert_eq!(e.kind("d_created"), Some(Kind::Gauge));
    assert_eq!(e.kind("om_total"), Some(Kind::Counter));
    assert_eq!(e.kind("om_created"), Some(Kind::Gauge));
    assert_eq!(e.kind("bare"), None);
    assert_eq!(e.named("d").count(), 0);
    assert_eq!(e.named("it_total").count(), 0);
}

#[test]
fn cut_at_any_byte_it_reads_a_prefix_of_the_samples_and_never_panics() {
    let text = "# TYPE a counter\na{x=\"\\\\é\\\"\",y=\"日本\"} 12.5 170 # {t=\"1\"} 1\n{\"n\",z=\"1\"} 1e-3\nb +Inf\n";
    let whole = values(text);
    for end in 0..text.len() {
        let cut = String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned();
        let seen = values(&cut);
        assert_eq!(seen[..], whole[..seen.len()], "cut at {end}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    // A fixed generator: the same damage on every run.
    let text = "# TYPE a counter\na{x=\"\\\\é\\\"\",y=\"日本\"} 12.5 170 # {t=\"1\"} 1\n{\"n\",z=\"1\"} 1e-3\nb +Inf\n";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % bytes.len();
            let signs = b"\\\"{}=,# \n\r\0a1\xff";
            bytes[at] = signs[(state >> 32) as usize % signs.len()];
        }
        let e = Exposition::parse(&String::from_utf8_lossy(&bytes));
        assert!(e.len() <= 8);
        e.samples().for_each(|s| drop(format!("{s:?}")));
    }
}
