//! Reports of a small record, in all forms.

use super::*;

const RECORD: &str = "
--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
<== {\"id\":0,\"result\":{\"protocolVersion\":1,\"x\":\"<b>`\u{202e}[31m&\"}}
";

fn report(waivers: &str) -> Report {
    let record = Record::from_transcript(RECORD).unwrap();
    let runs = [Run { name: "hand<shake>".to_owned(), record }];
    let choice =
        Choice { only: vec!["envelope/version".to_owned(), "envelope/one-answer".to_owned()], ..Choice::default() };
    Report::new("my | agent\u{1b}]0;title\u{7}", Side::Agent, &runs, &choice, &Waivers::parse(waivers).unwrap())
}

#[test]
fn a_broken_rule_is_told_with_its_message_and_what_would_be_right() {
    let report = report("");
    assert!(!report.is_conformant());
    let text = report.to_text(true);
    assert!(
        text.starts_with(
            "must: Every message says `\"jsonrpc\":\"2.0\"`. [envelope/version]\n  in hand<shake> (protocol 1): "
        ),
        "{text}"
    );
    assert!(text.contains("\n    <-- {\"id\":0,") && text.contains("\n  instead: "), "{text}");
    assert!(
        text.contains("not-tested  envelope/one-answer") || text.contains("kept        envelope/one-answer"),
        "{text}"
    );
    assert!(
        text.ends_with("agent my | agent\u{fffd}]0;title\u{fffd} (protocol 1): not conformant: 1 rule broken; 0 rules kept, 1 not tested\n"),
        "{text}"
    );
}

#[test]
fn text_of_a_peer_is_harmless_in_every_form() {
    let report = report("");
    let forms = [
        report.to_text(true),
        report.to_markdown(),
        junit(std::slice::from_ref(&report)),
        report.to_json().to_string(),
        sarif(std::slice::from_ref(&report), None).to_string(),
        report.to_badge(),
    ];
    for form in &forms {
        assert!(!form.contains(['\u{202e}', '\u{1b}', '\u{7}']), "{form}");
    }
    assert!(!forms[2].contains("<b>") && forms[2].contains("&lt;b&gt;"), "{}", forms[2]);
    assert!(forms[1].contains("``<-- {") && !forms[1].contains("\n<"), "{}", forms[1]);
}

#[test]
fn a_waiver_counts_as_long_as_it_is_needed() {
    let waived = report("envelope/version: an old proxy");
    assert!(waived.is_conformant(), "{}", waived.verdict());
    assert!(waived.to_text(false).contains("reason: an old proxy"));
    let record =
        Record::from_transcript("--> {'id':0,'method':'initialize'}\n<-- {'id':0,'result':{'protocolVersion':1}}")
            .unwrap();
    let runs = [Run { name: "run".to_owned(), record }];
    let choice = Choice { only: vec!["envelope/version".to_owned()], ..Choice::default() };
    let needless =
        Report::new("a", Side::Agent, &runs, &choice, &Waivers::parse("envelope/version: an old proxy").unwrap());
    assert!(!needless.is_conformant());
    assert!(needless.to_text(false).contains("remove the waiver"));
}

#[test]
fn reports_for_programs_have_their_shape() {
    let report = report("");
    let json = report.to_json();
    assert_eq!(
        (json["type"].as_str(), json["conformant"].as_bool(), json["summary"]["broken"].as_u64()),
        (Some("attache-check"), Some(false), Some(1))
    );
    assert_eq!(json["rules"][0]["findings"][0]["entries"][0], 1);
    let sarif = sarif(std::slice::from_ref(&report), Some("a trace"));
    assert_eq!(
        sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "a%20trace"
    );
    assert!(
        junit(std::slice::from_ref(&report))
            .contains("<testsuite name=\"envelope\" package=\"my | agent\u{fffd}]0;title\u{fffd}\" tests=\"2\" failures=\"1\" skipped=\"1\">")
    );
    assert!(report.to_badge().contains(">not conformant 0/1<"));
}
