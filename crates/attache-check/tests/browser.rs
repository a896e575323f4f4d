//! The page of a recording, in a real browser: headless Chromium, where it is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use attache_check::{Record, view};

/// How long a browser may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const RECORD: &str = "
--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'},'capabilities':{}}}
<== {\"id\":0,\"result\":{\"protocolVersion\":2,\"info\":{\"name\":\"a\",\"version\":\"1\"},\"capabilities\":{\"session\":{}}}}
--> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
<-- {'id':1,'result':{'sessionId':'s'}}
(note) greeting
--> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}
<-- {'id':2,'result':{'messageId':'m'}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','messageId':'n','content':{'type':'text','text':'</script><script>document.title=1</script><img src=x onerror=document.title=2>'}}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','messageId':'n','content':{'type':'text','text':' second piece'}}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}}}
";

fn chromium() -> Option<PathBuf> {
    let paths = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| paths.iter().map(|path| path.join(name)).find(|path| path.is_file()))
}

/// What the browser makes of a page.
fn dom(browser: &Path, page: &Path, hash: &str, home: &Path) -> String {
    let out = home.join("dom.html");
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-component-update", "--disable-sync", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .arg(format!("file://{}{hash}", page.display()))
        .stdout(std::fs::File::create(&out).expect("a file"))
        .stderr(Stdio::null())
        .spawn()
        .expect("a browser that starts");
    let begin = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().expect("a child");
            panic!("the browser took longer than {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(out).expect("what the browser made of it")
}

#[test]
fn a_page_works_in_a_browser_and_runs_nothing_of_what_was_said() {
    let Some(browser) = chromium() else {
        eprintln!("SKIPPED: there is no Chromium here");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let page = home.path().join("page.html");
    std::fs::write(&page, view::page("a <b>name</b>", &Record::from_transcript(RECORD).unwrap())).unwrap();
    let dom = |hash| {
        let dom = dom(&browser, &page, hash, home.path());
        assert!(dom.contains("data-ready=\"true\""), "the script ran to its end: {dom}");
        assert!(dom.contains("<title>a &lt;b&gt;name&lt;/b&gt; - attache trace</title>"), "nothing else ran");
        assert!(!dom.contains("<img"), "text is not markup");
        // What is in the data element is no part of what is shown.
        dom.split("<script").next().unwrap().to_owned()
    };
    let messages = dom("");
    assert!(messages.contains("session/update agent_message_chunk") && messages.contains("Findings ("), "{messages}");
    // A row says what the message says, and a note is no method.
    assert!(messages.contains("<span class=\"said\">hi</span>"), "{messages}");
    let menu = |id: &str| {
        let (_, rest) = messages.split_once(&format!("<select id=\"{id}\">")).unwrap();
        rest.split_once("</select>").unwrap().0.to_owned()
    };
    assert!(menu("method").contains("session/prompt") && !menu("method").contains("greeting"), "{}", menu("method"));
    let row = dom("#row=4");
    assert!(row.contains("row 4, "), "{row}");
    assert!(row.contains("answers ") && row.contains("the session at this moment"), "{row}");
    let view = |hash| dom(hash).split_once("<section id=\"view\"").unwrap().1.to_owned();
    let before = view("#at=9");
    assert!(before.contains("&lt;/script&gt;") && !before.contains("second piece"), "{before}");
    let after = view("#at=10");
    assert!(after.contains("&gt; second piece</pre>"), "{after}");
    let turns = dom("#turns");
    assert!(["end_turn", "ends with", "<td>hi</td>"].iter().all(|text| turns.contains(text)), "{turns}");
    assert!(dom("#findings").contains("envelope/version"));
    assert!(dom("#statistics").contains("median ms"));
}
