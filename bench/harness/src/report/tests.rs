//! The report of results that are made up: no figure here was measured.

use super::*;

const MADE_UP: &str = r#"
{"workload":"w3","peer":"py-sdk","rep":1,"metrics":{"cpu_ms":16000,"wall_ms":17000,"rss_kib":40960}}
{"workload":"w3","peer":"attache","rep":1,"metrics":{"cpu_ms":90,"wall_ms":120,"rss_kib":3072,"instructions":5100}}
{"workload":"w3","peer":"ht-tokio","rep":1,"metrics":{"cpu_ms":60,"wall_ms":80,"rss_kib":2048,"instructions":null}}
{"workload":"w3","peer":"attache","rep":2,"metrics":{"cpu_ms":110,"wall_ms":150,"rss_kib":3072}}
{"workload":"w3","peer":"ht-tokio","rep":2,"metrics":{"cpu_ms":50,"wall_ms":70,"rss_kib":2048}}
{"workload":"w3","peer":"attache","rep":3,"metrics":{"cpu_ms":100,"wall_ms":130,"rss_kib":3072}}
{"workload":"w2","peer":"attache","rep":1,"metrics":{"cpu_ms":20,"messages":10000}}
{"workload":"w2","peer":"ht-tokio","rep":1,"metrics":{"cpu_ms":10,"messages":10000}}
{"workload":"w7","peer":"attache","rep":1,"metrics":{"growth_kib":9216,"bound_kib":8192}}
{"workload":"mine","peer":"a|b","rep":1,"metrics":{"odd":1234567}}
"#;

fn made_up_context() -> Context {
    Context {
        machine: "2 cores".to_owned(),
        cpu: "Made <Up> & Sons".to_owned(),
        kernel: "None 0.0".to_owned(),
        date: "2026-01-31".to_owned(),
        command: "bench/run w3".to_owned(),
        versions: vec![("attache".to_owned(), "0.1.0".to_owned())],
    }
}

fn page() -> String {
    markdown(&Results::parse(MADE_UP).unwrap(), &made_up_context())
}

/// The part of the page from one line to the next empty one after its table.
fn section(heading: &str) -> String {
    let page = page();
    let start = page.find(heading).unwrap_or_else(|| panic!("no `{heading}` in {page}"));
    page[start..].split("\n\n").take(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_workload_has_a_row_a_peer_and_a_ratio_to_the_reference_of_its_gate() {
    let expected = "\
## W3: agent sends 200,000 `agent_message_chunk` of 80 bytes in one turn, burst
| peer | CPU, ms | CPU a message, µs | instructions a message | wall, ms | peak RSS, MiB | CPU a message ÷ ht-tokio |
|---|--:|--:|--:|--:|--:|--:|
| Attaché | 100 (90.0–110) | 0.500 (0.450–0.550) | 5,100 | 130 (120–150) | 3.00 | 1.82 × |
| ht-tokio: hand-tuned, async | 55.0 (50.0–60.0) | 0.275 (0.250–0.300) | – | 75.0 (70.0–80.0) | 2.00 | 1.00 × |
| Python SDK | 16,000 | 80.0 | – | 17,000 | 40.0 | 291 × |";
    assert_eq!(section("## W3:"), expected);
}

#[test]
fn what_nobody_named_is_shown_under_its_own_name() {
    assert_eq!(section("## Mine"), "## Mine\n| peer | odd |\n|---|--:|\n| a\\|b | 1,234,567 |\n");
}

#[test]
fn gates_are_met_or_not_or_not_measured() {
    let page = page();
    for row in [
        "| W3 burst CPU | 2 × ht-tokio | 1.82 × | met |",
        "| W3 burst instructions | 6,000 a message | 5,100 | met |",
        "| W2 CPU | 1.5 × ht-tokio | 2.00 × | **not met** |",
        "| W7 growth | the configured bound + 2 MiB | 9.00 MiB, bound 8.00 MiB | met |",
        "| W8 crates | 30 | – | not measured |",
        "3 met, 1 not met, 18 not measured.",
    ] {
        assert!(page.contains(row), "no `{row}` in {page}");
    }
}

#[test]
fn the_page_says_where_it_comes_from() {
    let page = page();
    for words in ["`bench/run w3` on 2026-01-31", "| machine | 2 cores |", "| attache | 0.1.0 |", "(speed.svg)"] {
        assert!(page.contains(words), "no `{words}` in {page}");
    }
}

#[test]
fn every_gate_is_about_a_workload_a_metric_and_peers_that_are_known() {
    let is_peer = |peer: &str| PEERS.iter().any(|(id, _)| *id == peer);
    for gate in GATES {
        assert!(WORKLOADS.iter().any(|known| known.id == gate.workload), "{}", gate.id);
        assert!(METRICS.iter().any(|known| known.id == gate.metric), "{}", gate.id);
        assert!(is_peer(gate.peer), "{}", gate.id);
        match gate.limit {
            Limit::Times(_, reference) => assert!(is_peer(reference), "{}", gate.id),
            Limit::Above(_, metric) => assert!(METRICS.iter().any(|known| known.id == metric), "{}", gate.id),
            Limit::AtMost(_) => {}
        }
    }
}

#[test]
fn the_plot_has_a_name_and_a_figure_beside_every_bar() {
    let svg = plot::svg(&Results::parse(MADE_UP).unwrap(), &made_up_context());
    for words in [">Attaché<", ">0.5 µs<", ">hand-tuned, no library<", ">80 µs (160 ×)<", "Made &lt;Up&gt; &amp; Sons"]
    {
        assert!(svg.contains(words), "no `{words}` in {svg}");
    }
    assert_eq!(svg.matches("class=\"bar").count(), 5);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn no_results_make_an_empty_plot() {
    let svg = plot::svg(&Results::default(), &made_up_context());
    assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn a_line_that_is_not_a_result_is_named() {
    for (line, what) in [
        ("{", "EOF"),
        ("{\"peer\":\"a\"}", "`workload` is not a string"),
        ("{\"workload\":\"w1\",\"peer\":\"a\"}", "`metrics` is not an object"),
        ("{\"workload\":\"w1\",\"peer\":\"a\",\"metrics\":{\"cpu_ms\":\"1\"}}", "`cpu_ms` is not a number"),
    ] {
        let error = Results::parse(&format!("\n{line}")).err().expect(line).to_string();
        assert!(error.starts_with("line 2 of the results: ") && error.contains(what), "{error}");
    }
}

#[test]
fn figures_have_about_three_digits() {
    let rows = [
        (0.0, "0"),
        (0.1234, "0.123"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (999.6, "1,000"),
        (200_000.0, "200,000"),
        (-1234.0, "-1,234"),
    ];
    for (value, expected) in rows {
        assert_eq!(figure(value), expected);
    }
}

#[test]
fn both_files_are_written() {
    let dir = std::env::temp_dir().join(format!("bench-report-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("results.jsonl"), MADE_UP).unwrap();
    write(&dir.join("results.jsonl"), &dir, &made_up_context()).unwrap();
    assert_eq!(fs::read_to_string(dir.join("RESULTS.md")).unwrap(), page());
    assert!(fs::read_to_string(dir.join("speed.svg")).unwrap().starts_with("<svg "));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn agents_are_shown_side_by_side_with_the_limits_of_ours() {
    let lines = r#"
{"workload":"agents","peer":"attache","rep":1,"metrics":{"initialize_ms":3,"session_ms":7,"rss_kib":9216,"processes":1}}
{"workload":"agents","peer":"attache","rep":2,"metrics":{"initialize_ms":5,"session_ms":7,"rss_kib":9216,"processes":1}}
{"workload":"agents","peer":"gemini","rep":1,"metrics":{"initialize_ms":1500,"processes":2,"disk_bytes":102000000}}
"#;
    let page = agents::markdown(&Results::parse(lines).unwrap(), &made_up_context());
    for line in [
        "| attache | 4.00 (3.00–5.00) | 7.00 | – | 9.00 | 1 | – |",
        "| gemini | 1,500 | – | – | – | 2 | 102 |",
        "| opencode | – | – | – | – | – | – |",
        "| start to `initialize` | 20 ms | 4.00 ms | met |",
        "| `session/new` | 5 ms | 7.00 ms | **not met** |",
        "| binary | 26 MB | – | not measured |",
    ] {
        assert!(page.contains(line), "no `{line}` in {page}");
    }
}
