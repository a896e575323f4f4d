//! What is judged and what is executed.

use serde_json::json;

use super::support::Place;

#[test]
fn a_rule_for_a_program_does_not_run_a_file_that_is_called_like_a_line() {
    let place = Place::new();
    place.rules("[[rule]]\nverdict = \"allow\"\ncommand = [\"ls\"]\n");
    let evil = place.write("project/ls ./x", "#!/bin/sh\ntouch ../pwned\n");
    std::fs::set_permissions(evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = json!([
        {"call": "terminal/create", "params": {"command": "ls ./x"}},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
    ]);
    let ran = place.run(place.attack(1, &[], &script));
    assert!(!place.home().join("pwned").exists(), "{ran:?}");
}
