use super::*;

fn e(text: &str) -> Exposition {
    Exposition::parse(text)
}

fn selector(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

/// Movement of `c` with a process whose start time is told and unchanged.
fn same(before: &str, after: &str) -> Movement {
    movement(&e(before), &e(after), &selector("c"), &Continuity::Same)
}

#[test]
fn absent_still_and_moved_are_three_things() {
    assert_eq!(e("c 0\n").read(&selector("c")), Reading::Present(0.0));
    assert_eq!(e("d 0\n").read(&selector("c")), Reading::Absent);
    assert_eq!(e("c NaN\n").read(&selector("c")), Reading::Absent);
    assert_eq!(
        e("c{a=\"1\"} 1\nc{a=\"2\"} 2\n").read(&selector("c")),
        Reading::Present(3.0)
    );
    assert_eq!(same("d 1\n", "d 1\n"), Movement::Absent);
    assert_eq!(same("c 4\n", "c 4\n"), Movement::Still { at: 4.0 });
    assert_eq!(
        same("c{a=\"1\",b=\"2\"} 4\n", "c{b=\"2\",a=\"1\"} 9\n"),
        Movement::Moved { by: 5.0 }
    );
}

#[test]
fn what_appears_counts_from_zero_only_in_a_process_that_is_known() {
    assert_eq!(same("d 1\n", "c 7\n").delta(), Some(7.0));
    let unknown = movement(
        &e("d 1\n"),
        &e("c 7\n"),
        &selector("c"),
        &Continuity::Unknown,
    );
    assert_eq!(
        unknown,
        Movement::AppearedDuring {
            at: 7.0,
            origin: Origin::Unknown
        }
    );
    assert_eq!(unknown.delta(), None);
    // A new child beside a sibling began in the window.
    let child = movement(
        &e("c{a=\"1\"} 1\n"),
        &e("c{a=\"1\"} 1\nc{a=\"2\"} 2\n"),
        &selector("c"),
        &Continuity::Unknown,
    );
    assert_eq!(child, Movement::Moved { by: 2.0 });
}

#[test]
fn one_series_that_falls_is_a_reset_even_if_the_sum_grows() {
    let moved = same(
        "c{a=\"1\"} 5\nc{a=\"2\"} 5\n",
        "c{a=\"1\"} 1\nc{a=\"2\"} 50\n",
    );
    assert_eq!(
        moved,
        Movement::Reset {
            before: 10.0,
            after: 51.0
        }
    );
    assert_eq!(
        same("c 5\n", "d 1\n"),
        Movement::Reset {
            before: 5.0,
            after: 0.0
        }
    );
    assert_eq!(moved.delta(), None);
}

#[test]
fn a_restart_shows_by_start_time_or_by_any_counter_that_fell() {
    let names: Names = &["process_start_time_seconds"];
    let start = |t: u32, c: u32| {
        e(&format!(
            "process_start_time_seconds {t}\n# TYPE c counter\nc {c}\n"
        ))
    };
    assert_eq!(
        continuity(&start(1, 5), &start(1, 6), names),
        Continuity::Same
    );
    assert!(matches!(
        continuity(&start(1, 5), &start(2, 6), names),
        Continuity::Broken { .. }
    ));
    let Continuity::Broken { why } = continuity(&start(1, 5), &start(1, 3), names) else {
        panic!("no fall seen")
    };
    assert_eq!(why, "the counter `c` fell from 5 to 3");
    assert_eq!(
        continuity(&e("c 5\n"), &e("c 6\n"), names),
        Continuity::Unknown
    );
    // A restart that overtakes the old count still shows.
    let broken = continuity(&start(1, 5), &start(2, 60), names);
    assert!(matches!(
        movement(&start(1, 5), &start(2, 60), &selector("c"), &broken),
        Movement::Reset { .. }
    ));
}

#[test]
fn ranks_are_told_apart() {
    let before = e("c{rank=\"0\"} 1\nc{rank=\"1\"} 1\nc 9\n");
    let after = e("c{rank=\"0\"} 4\nc{rank=\"1\"} 1\nc{rank=\"2\"} 3\nc 9\n");
    let seen = movement_by(
        &before,
        &after,
        &selector("c"),
        "rank",
        &Continuity::Unknown,
    );
    assert_eq!(seen["0"], Movement::Moved { by: 3.0 });
    assert_eq!(seen["1"], Movement::Still { at: 1.0 });
    assert_eq!(seen["2"].delta(), Some(3.0));
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_suffix_is_forgiven_with_a_note_and_a_histogram_is_explained() {
    let e = e(
        "# TYPE c_total counter\nc_total 1\n# TYPE h_total histogram\nh_total_count 2\n# TYPE g gauge\ng 1\n",
    );
    let spelled = e.spell(&selector("c"));
    assert_eq!(spelled.selector.name(), "c_total");
    assert_eq!(
        spelled.note.as_deref(),
        Some("`c` is spelled `c_total` by this seat")
    );
    assert_eq!(e.spell(&selector("c_total")).note, None);
    let spelled = e.spell(&selector("h_total"));
    assert_eq!(spelled.selector.name(), "h_total");
    assert!(spelled.note.unwrap().contains("`h_total_count`"));
    // A gauge is never taken for a counter.
    assert_eq!(e.spell(&selector("g_total")).selector.name(), "g_total");
}

#[test]
fn a_gauge_that_stood_still_through_work_is_stale() {
    let work = Movement::Moved { by: 10.0 };
    let see = |a: &str, b: &str, work| freshness(&e(a), &e(b), &selector("g"), work);
    assert_eq!(see("g 2\n", "g 3\n", work), Freshness::Fresh);
    assert_eq!(see("g 2\n", "g 2\n", work), Freshness::Stale { at: 2.0 });
    assert_eq!(
        see("g 2\n", "g 2\n", Movement::Still { at: 1.0 }),
        Freshness::Unknown
    );
    assert_eq!(see("", "", work), Freshness::Unknown);
}
